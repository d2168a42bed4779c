// Command operator is controller-runtime as a client of the benchmarks: its one controller reconciles pods, which is to
// read the object from the cache and do nothing else, or to fail after that. See ../../CONTRACT.md, "Operators".
package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"aioinformer.dev/benchmarks/peers_go/internal/contract"
)

type subject struct{ manager ctrl.Manager }

func (s subject) Start() {
	go func() {
		if err := s.manager.Start(context.Background()); err != nil {
			contract.Fail(err)
		}
	}()
}

func (s subject) WaitSynced() {
	if !s.manager.GetCache().WaitForCacheSync(context.Background()) {
		panic("a cache that synced is not synced")
	}
}

func (s subject) Reads() map[string]func() { return nil }

// reconciler fails if a phase says so. recorder is nil if failures have no Events.
func reconciler(cache client.Reader, read func(*corev1.Pod), recorder events.EventRecorder) reconcile.Func {
	return func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		entered := contract.Entered()
		var pod corev1.Pod
		if err := cache.Get(ctx, request.NamespacedName, &pod); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		read(&pod)
		contract.Told(entered, pod.Annotations)
		if contract.Failing() {
			err := fmt.Errorf("no quota for %s", pod.Name)
			if recorder != nil {
				recorder.Eventf(&pod, nil, corev1.EventTypeWarning, "ReconcileFailed", "Reconcile", "%v", err)
			}
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, nil
	}
}

// mapper knows pods: discovery is no part of what is measured.
func mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	return known, nil
}

func newManager(given contract.Arguments) (ctrl.Manager, error) {
	read, err := contract.Reader(given.Handler)
	if err != nil {
		return nil, err
	}
	if given.Failures == "none" {
		ctrl.SetLogger(logr.Discard())
	} else {
		ctrl.SetLogger(zap.New()) // to standard error
	}
	config := given.Config()
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:         scheme.Scheme,
		MapperProvider: mapper,
		Metrics:        metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, err
	}
	asking, err := discovery.NewDiscoveryClientForConfigAndClient(config, manager.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	if _, err := asking.ServerVersion(); err != nil {
		return nil, err
	}
	var recorder events.EventRecorder
	if given.Failures == "events" {
		recorder = manager.GetEventRecorder("pods")
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&corev1.Pod{}).
		Complete(reconciler(manager.GetClient(), read, recorder))
	return manager, err
}

func main() {
	given := contract.Parse()
	manager, err := newManager(given)
	if err != nil {
		contract.Fail(err)
	}
	contract.Serve(contract.Version("sigs.k8s.io/controller-runtime"), given, subject{manager})
}

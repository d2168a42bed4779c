// Command clientgo is client-go's shared informer as a client of the benchmarks.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"aioinformer.dev/benchmarks/peers_go/internal/contract"
)

func handler(kind string) (cache.ResourceEventHandler, error) {
	read, err := contract.Reader(kind)
	if err != nil {
		return nil, err
	}
	handle := func(obj any) {
		entered := contract.Entered()
		pod := obj.(*corev1.Pod)
		read(pod)
		contract.Told(entered, pod.Annotations)
	}
	changed := func(old, obj any) {
		if old.(*corev1.Pod).ResourceVersion != obj.(*corev1.Pod).ResourceVersion { // a relist tells of all
			handle(obj)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: changed}, nil
}

type subject struct {
	factories []informers.SharedInformerFactory
	handlers  []cache.ResourceEventHandlerRegistration
}

func newSubject(client kubernetes.Interface, given contract.Arguments) (*subject, error) {
	made := &subject{}
	for i := range given.Informers {
		namespace := fmt.Sprintf("team-%d", i)
		if given.Informers == 1 {
			namespace = corev1.NamespaceAll
		}
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
		informer := factory.Core().V1().Pods().Informer()
		for range given.Handlers {
			own, err := handler(given.Handler)
			if err != nil {
				return nil, err
			}
			registration, err := informer.AddEventHandler(own)
			if err != nil {
				return nil, err
			}
			made.handlers = append(made.handlers, registration)
		}
		made.factories = append(made.factories, factory)
	}
	return made, nil
}

func (s *subject) Start() {
	for _, factory := range s.factories {
		factory.Start(context.Background().Done())
	}
}

func (s *subject) WaitSynced() {
	for _, registration := range s.handlers {
		<-registration.HasSyncedChecker().Done()
	}
}

// Reads are of the first informer: each of a pod of its own choice.
func (s *subject) Reads() map[string]func() {
	pods := s.factories[0].Core().V1().Pods().Lister()
	all, err := pods.List(labels.Everything())
	if err != nil {
		contract.Fail(err)
	}
	var names names
	some := func() *corev1.Pod { return all[rand.IntN(len(all))] }
	return map[string]func(){
		"get": func() {
			wanted := some()
			found, err := pods.Pods(wanted.Namespace).Get(wanted.Name)
			names.look([]*corev1.Pod{found}, err)
		},
		"index": func() { names.look(listed(pods, some().Namespace)) },
		"label": func() {
			names.look(pods.List(labels.SelectorFromSet(labels.Set{contract.Label: some().Labels[contract.Label]})))
		},
	}
}

func listed(pods listers.PodLister, namespace string) ([]*corev1.Pod, error) {
	return pods.Pods(namespace).List(labels.Everything())
}

// names is the length of all names that were looked at.
type names int

func (n *names) look(pods []*corev1.Pod, err error) {
	if err != nil {
		contract.Fail(err)
	}
	for _, pod := range pods {
		*n += names(len(pod.Name))
	}
}

func run(given contract.Arguments) error {
	client, err := kubernetes.NewForConfig(given.Config())
	if err != nil {
		return err
	}
	if _, err := client.Discovery().ServerVersion(); err != nil {
		return err
	}
	made, err := newSubject(client, given)
	if err != nil {
		return err
	}
	contract.Serve(contract.Version("k8s.io/client-go"), given, made)
	return nil
}

func main() {
	if err := run(contract.Parse()); err != nil {
		contract.Fail(err)
	}
}

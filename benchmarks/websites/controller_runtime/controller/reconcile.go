// part: reconcile

// Package controller makes what a Website owns, and keeps it so.
package controller

import (
	"context"
	"fmt"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"aioinformer.dev/benchmarks/websites/api"
)

const finalizer = "example.com/dns"

// Reconciler reconciles Websites.
type Reconciler struct {
	client.Client
	Events events.EventRecorder
	DNS    string
}

// part: rights and manifests
// +kubebuilder:rbac:groups=example.com,resources=websites,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=example.com,resources=websites/status,verbs=patch
// +kubebuilder:rbac:groups=example.com,resources=websites/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// part: reconcile

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		For(&api.Website{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Complete(r)
}

// Reconcile makes what one Website owns.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var site api.Website
	if err := r.Get(ctx, request.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// part: finalizer
	old := site.DeepCopy()
	if !site.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(&site, finalizer) {
			return ctrl.Result{}, nil
		}
		if err := r.dns(ctx, http.MethodDelete, &site); err != nil {
			return ctrl.Result{}, err
		}
		controllerutil.RemoveFinalizer(&site, finalizer)
		return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, &site, client.MergeFrom(old)))
	}
	if controllerutil.AddFinalizer(&site, finalizer) {
		if err := r.Patch(ctx, &site, client.MergeFrom(old)); err != nil {
			return ctrl.Result{}, err
		}
	}
	// part: reconcile
	return ctrl.Result{}, r.publish(ctx, &site)
}

func (r *Reconciler) publish(ctx context.Context, site *api.Website) error {
	if len(site.Status.Conditions) == 0 {
		r.Events.Eventf(site, nil, corev1.EventTypeNormal, "Created", "Reconcile",
			"http://%s is being published", site.Spec.Host)
	}
	metadata := metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}
	config := &corev1.ConfigMap{ObjectMeta: metadata}
	deployment := &appsv1.Deployment{ObjectMeta: metadata}
	service := &corev1.Service{ObjectMeta: metadata}
	for object, fill := range map[client.Object]func(){
		config:     func() { config.Data = map[string]string{"index.html": site.Spec.HTML} },
		deployment: func() { fillDeployment(deployment, site) },
		service: func() {
			service.Spec.Selector = map[string]string{"website": site.Name}
			service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		},
	} {
		if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, object, func() error {
			fill()
			return controllerutil.SetControllerReference(site, object, r.Scheme())
		}); err != nil {
			return err
		}
	}
	if err := r.dns(ctx, http.MethodPut, site); err != nil {
		return err
	}
	return r.writeStatus(ctx, site, deployment.Status.ReadyReplicas)
}

func fillDeployment(deployment *appsv1.Deployment, site *api.Website) {
	labels := map[string]string{"website": site.Name}
	deployment.Spec.Replicas = &site.Spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	pod := &deployment.Spec.Template.Spec
	if len(pod.Containers) != 1 {
		pod.Containers = make([]corev1.Container, 1)
	}
	web := &pod.Containers[0] // keeps what the server has filled in
	web.Name, web.Image = "web", site.Spec.Image
	web.Ports = []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}}
	web.VolumeMounts = []corev1.VolumeMount{{Name: "html", MountPath: "/usr/share/nginx/html"}}
	if len(pod.Volumes) != 1 {
		pod.Volumes = make([]corev1.Volume, 1)
	}
	html := &pod.Volumes[0]
	html.Name = "html"
	if html.ConfigMap == nil {
		html.ConfigMap = &corev1.ConfigMapVolumeSource{}
	}
	html.ConfigMap.Name = site.Name
}

func (r *Reconciler) writeStatus(ctx context.Context, site *api.Website, ready int32) error {
	old := site.DeepCopy()
	condition := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Progressing",
		Message:            fmt.Sprintf("%d of %d replicas are ready", ready, site.Spec.Replicas),
		ObservedGeneration: site.Generation,
	}
	if ready >= site.Spec.Replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, "Available"
	}
	site.Status.URL = "http://" + site.Spec.Host
	site.Status.ReadyReplicas = ready
	meta.SetStatusCondition(&site.Status.Conditions, condition)
	if apiequality.Semantic.DeepEqual(old.Status, site.Status) {
		return nil
	}
	return r.Status().Patch(ctx, site, client.MergeFrom(old))
}

// part: finalizer
func (r *Reconciler) dns(ctx context.Context, method string, site *api.Website) error {
	err := func() error {
		request, err := http.NewRequestWithContext(ctx, method, r.DNS+"/"+site.Spec.Host, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode >= http.StatusBadRequest {
			return fmt.Errorf("%s %s: %s", method, request.URL, answer.Status)
		}
		return nil
	}()
	if err != nil {
		r.Events.Eventf(site, nil, corev1.EventTypeWarning, "DNSFailed", "Reconcile", "%v", err)
	}
	return err
}

// part: end

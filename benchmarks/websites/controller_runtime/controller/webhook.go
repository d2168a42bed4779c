// part: webhook

package controller

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"aioinformer.dev/benchmarks/websites/api"
)

const hostIndex = "spec.host"

// +kubebuilder:webhook:path=/validate-example-com-v1-website,mutating=false,failurePolicy=fail,sideEffects=None,groups=example.com,resources=websites,verbs=create;update,versions=v1,name=websites.example.com,admissionReviewVersions=v1,serviceName=websites,serviceNamespace=websites

// Validator refuses two Websites with one host.
type Validator struct{ client.Reader }

// SetupWithManager adds the webhook.
func (v *Validator) SetupWithManager(ctx context.Context, manager ctrl.Manager) error {
	hosts := func(object client.Object) []string { return []string{object.(*api.Website).Spec.Host} }
	if err := manager.GetFieldIndexer().IndexField(ctx, &api.Website{}, hostIndex, hosts); err != nil {
		return err
	}
	return ctrl.NewWebhookManagedBy(manager, &api.Website{}).WithValidator(v).Complete()
}

// ValidateCreate implements admission.Validator.
func (v *Validator) ValidateCreate(ctx context.Context, site *api.Website) (admission.Warnings, error) {
	var others api.WebsiteList
	if err := v.List(ctx, &others, client.MatchingFields{hostIndex: site.Spec.Host}); err != nil {
		return nil, err
	}
	for _, other := range others.Items {
		if other.Namespace != site.Namespace || other.Name != site.Name {
			return nil, fmt.Errorf("spec.host: is taken by %s/%s", other.Namespace, other.Name)
		}
	}
	return nil, nil
}

// ValidateUpdate implements admission.Validator.
func (v *Validator) ValidateUpdate(ctx context.Context, _, site *api.Website) (admission.Warnings, error) {
	return v.ValidateCreate(ctx, site)
}

// ValidateDelete implements admission.Validator.
func (v *Validator) ValidateDelete(context.Context, *api.Website) (admission.Warnings, error) {
	return nil, nil
}

// part: end

// Command builtin-schema prints what aioinformer/testing/schema/types.json says: what objects of the built-in kinds look
// like, by Kubernetes' own Go types, its OpenAPI definitions and its defaulting functions.
package main

import (
	"reflect"
	"regexp"
	"slices"

	"aioinformer.dev/tests/kubernetes/internal/datafile"
	"aioinformer.dev/tests/kubernetes/internal/gotypes"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admission/install"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apiserverinternal/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/extensions/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/imagepolicy/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install"
)

// scheme has the kinds of the server's three parts.
var scheme = legacyscheme.Scheme

var (
	stable     = regexp.MustCompile(`^v\d+$`)
	objectMeta = reflect.TypeFor[metav1.ObjectMeta]()
)

// A kind is a type that requests have as their bodies.
type kind struct {
	apiVersion, name string
	of               reflect.Type
}

func main() {
	apiextensions.Install(scheme)
	apiregistration.Install(scheme)
	found := kinds()
	names := map[string]map[string]string{}
	for _, each := range found {
		datafile.Put(names, each.apiVersion, each.name, typeOf(each.of))
	}
	findDefaults(found)
	datafile.Write(
		datafile.NewTable("kinds", names),
		datafile.NewTable("types", types),
		datafile.NewTable("defaults", defaults),
		datafile.NewTable("conditional", conditional),
	)
}

// kinds are those that a server has without further flags, in a fixed order.
func kinds() []kind {
	found := []kind{}
	for gvk, of := range scheme.AllKnownTypes() {
		if !stable.MatchString(gvk.Version) || gotypes.IsRemoved(of) {
			continue
		}
		field, isObject := of.FieldByName("ObjectMeta")
		if isObject && field.Type == objectMeta {
			found = append(found, kind{gvk.GroupVersion().String(), gvk.Kind, of})
		}
	}
	found = append(found, kind{"v1", "DeleteOptions", reflect.TypeFor[metav1.DeleteOptions]()})
	slices.SortFunc(found, func(a, b kind) int {
		return slices.Compare([]string{a.apiVersion, a.name}, []string{b.apiVersion, b.name})
	})
	return found
}

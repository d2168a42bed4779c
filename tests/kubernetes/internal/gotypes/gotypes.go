// Package gotypes has what the commands share that read Kubernetes' Go types.
package gotypes

import (
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
)

// Name is the name of a struct type in the data files: core/v1.PodSpec.
func Name(of reflect.Type) string {
	path := strings.TrimPrefix(of.PkgPath(), "k8s.io/")
	for _, prefix := range []string{"api/", "apimachinery/pkg/apis/", "apiextensions-apiserver/pkg/apis/", "kube-aggregator/pkg/apis/"} {
		path = strings.TrimPrefix(path, prefix)
	}
	return path + "." + of.Name()
}

// IsRemoved says whether no server of this version serves a kind any more.
func IsRemoved(of reflect.Type) bool {
	old, isOld := reflect.New(of).Interface().(interface{ APILifecycleRemoved() (major, minor int) })
	if !isOld {
		return false
	}
	_, removed := old.APILifecycleRemoved()
	minor, err := strconv.Atoi(strings.Split(Version(), ".")[1])
	if err != nil {
		panic(err)
	}
	return removed <= minor
}

// Version is that of Kubernetes, whose types have the same one behind a 0.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "k8s.io/api" {
			if module.Replace != nil {
				module = module.Replace
			}
			return "1" + strings.TrimPrefix(module.Version, "v0")
		}
	}
	panic("k8s.io/api is not among the modules")
}

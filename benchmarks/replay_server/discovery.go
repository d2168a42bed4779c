package main

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// discovery is what clients ask for at their start.
var discovery = map[string]any{
	"/version": version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3", Platform: "linux/amd64"},
	"/api":     metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
	"/apis":    metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}},
	"/api/v1": metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: "v1",
		APIResources: []metav1.APIResource{
			{
				Name: "pods", SingularName: "pod", Namespaced: true, Kind: "Pod", ShortNames: []string{"po"},
				Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"},
			},
			{Name: "namespaces", SingularName: "namespace", Kind: "Namespace", Verbs: metav1.Verbs{"get", "list", "watch"}},
		},
	},
	"/api/v1/namespaces": map[string]any{
		"kind": "NamespaceList", "apiVersion": "v1", "metadata": map[string]string{"resourceVersion": "1"}, "items": []any{},
	},
}

func answerDiscovery(response http.ResponseWriter, path string) {
	response.Header().Set("Content-Type", "application/json")
	answer, known := discovery[path]
	if !known {
		response.WriteHeader(http.StatusNotFound)
		answer = metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure,
			Message:  "the server could not find the requested resource",
			Reason:   metav1.StatusReasonNotFound,
			Code:     http.StatusNotFound,
		}
	}
	_, _ = response.Write(mustJSON(answer))
}

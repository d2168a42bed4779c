package contract

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Label is the one that handlers of metadata read.
const Label = "app"

// Reader is what one handler reads of an object, put into a sum of its own, so that nothing can optimise it away.
func Reader(kind string) (func(*corev1.Pod), error) {
	sum := new(int)
	switch kind {
	case "metadata":
		return func(pod *corev1.Pod) {
			*sum += len(pod.Namespace) + len(pod.Name) + len(pod.ResourceVersion) + len(pod.Labels[Label])
		}, nil
	case "field":
		return func(pod *corev1.Pod) {
			*sum += len(pod.Namespace) + len(pod.Name) + len(pod.ResourceVersion) + len(pod.Spec.NodeName)
		}, nil
	case "whole":
		return func(pod *corev1.Pod) {
			*sum += len(pod.Name) + len(pod.Spec.NodeName) + len(pod.Status.Phase)
		}, nil
	}
	return nil, fmt.Errorf("no handler reads %q", kind)
}

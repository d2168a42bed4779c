package informer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// A script, as informer_script.py writes it. That file says what the fields mean.
type script struct {
	Resync    float64  `json:"resync"`
	Transform bool     `json:"transform"`
	WatchList bool     `json:"watch_list"`
	Indexes   []string `json:"indexes"`
	Steps     []step   `json:"steps"`
}

type step struct {
	Do       string   `json:"do"`
	Handler  int      `json:"handler"`
	Resync   *float64 `json:"resync"`
	Index    string   `json:"index"`
	Seconds  float64  `json:"seconds"`
	Items    []object `json:"items"`
	Version  string   `json:"version"`
	Continue string   `json:"token"`
	Error    *failure `json:"error"`
	Events   []event  `json:"events"`
	End      string   `json:"end"`
}

type object struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Version   string `json:"version"`
	UID       string `json:"uid"`
	Color     string `json:"color"`
	Via       string `json:"via"`
}

type event struct {
	Type   string   `json:"type"`
	Object *object  `json:"object"`
	Status *failure `json:"status"`
	Closes string   `json:"closes"`
}

type failure struct {
	Kind    string   `json:"kind"`
	Code    int32    `json:"code"`
	Reason  string   `json:"reason"`
	Message string   `json:"message"`
	Causes  []string `json:"causes"`
}

const (
	colorLabel = "color"
	viaLabel   = "via"
)

func (o *object) pod() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       o.Namespace,
			Name:            o.Name,
			ResourceVersion: o.Version,
			UID:             types.UID(o.UID),
			Labels:          map[string]string{colorLabel: o.Color, viaLabel: o.Via},
		},
	}
}

func (s *step) list() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.ResourceVersion = s.Version
	list.Continue = s.Continue
	for i := range s.Items {
		list.Items = append(list.Items, *s.Items[i].pod())
	}
	return list
}

func (e *event) event() watch.Event {
	var obj runtime.Object
	switch {
	case e.Status != nil && e.Status.Kind == "":
		obj = e.Status.status()
	case e.Object == nil: // of another type than the informer's
		obj = &metav1.APIGroup{}
	default:
		pod := e.Object.pod()
		if e.Closes != "" {
			pod.Annotations = map[string]string{"k8s.io/initial-events-end": e.Closes}
		}
		obj = pod
	}
	return watch.Event{Type: watch.EventType(e.Type), Object: obj}
}

func (f *failure) status() *metav1.Status {
	status := &metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    f.Code,
		Reason:  metav1.StatusReason(f.Reason),
		Message: f.Message,
	}
	if f.Causes != nil {
		status.Details = &metav1.StatusDetails{}
		for _, cause := range f.Causes {
			status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: metav1.CauseType(cause)})
		}
	}
	return status
}

func (f *failure) err() error {
	switch f.Kind {
	case "refused":
		return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case "reset":
		return &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	}
	return &apierrors.StatusError{ErrStatus: *f.status()}
}

// What a watch error handler was told of, in the words that both sides have for it.
func errorText(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Sprintf("%d %s", status.Status().Code, status.Status().Reason)
	}
	var network *net.OpError
	if errors.As(err, &network) {
		return "transport"
	}
	return "other"
}

// How objects are written in traces.
func text(pod *metav1.PartialObjectMetadata) string {
	return pod.ResourceVersion + "/" + string(pod.UID) + "/" + pod.Labels[viaLabel]
}

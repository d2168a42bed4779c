package informer

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// A handler notes what it is told, and stands still while it is held.
type handler struct {
	begin time.Time

	mu           sync.Mutex
	gate         chan struct{}
	registration cache.ResourceEventHandlerRegistration
	calls        []call
}

// A call as the trace has it. Step is filled in when the step ends.
type call struct {
	Step   int     `json:"step"`
	Time   float64 `json:"time"`
	Kind   string  `json:"kind"`
	Key    string  `json:"key"`
	Old    string  `json:"old"`
	New    string  `json:"new"`
	Synced bool    `json:"synced"`
}

func (h *handler) OnAdd(obj any, isInInitialList bool) {
	pod := obj.(*metav1.PartialObjectMetadata)
	kind := "add"
	if isInInitialList {
		kind = "initial"
	}
	h.note(call{Kind: kind, Key: keyOf(pod), New: text(pod)})
}

func (h *handler) OnUpdate(oldObj, newObj any) {
	before, after := oldObj.(*metav1.PartialObjectMetadata), newObj.(*metav1.PartialObjectMetadata)
	h.note(call{Kind: "update", Key: keyOf(after), Old: text(before), New: text(after)})
}

func (h *handler) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		noted := call{Kind: "tombstone", Key: tombstone.Key}
		if pod, ok := tombstone.Obj.(*metav1.PartialObjectMetadata); ok {
			noted.Old = text(pod)
		}
		h.note(noted)
		return
	}
	pod := obj.(*metav1.PartialObjectMetadata)
	h.note(call{Kind: "delete", Key: keyOf(pod), Old: text(pod)})
}

func (h *handler) note(noted call) {
	noted.Time = time.Since(h.begin).Seconds()
	h.mu.Lock()
	// Only in the call itself of an initial add is it certain what the answer has to be.
	noted.Synced = noted.Kind == "initial" && h.registration != nil && h.registration.HasSynced()
	noted.Step = -1
	h.calls = append(h.calls, noted)
	gate := h.gate
	h.mu.Unlock()
	if gate != nil {
		<-gate
	}
}

func (h *handler) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gate == nil {
		h.gate = make(chan struct{})
	}
}

func (h *handler) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gate != nil {
		close(h.gate)
		h.gate = nil
	}
}

// endStep says of all calls since the last step that they were made in this one.
func (h *handler) endStep(step int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.calls) - 1; i >= 0 && h.calls[i].Step < 0; i-- {
		h.calls[i].Step = step
	}
}

func keyOf(pod *metav1.PartialObjectMetadata) string {
	key, err := cache.MetaNamespaceKeyFunc(pod)
	if err != nil {
		panic(err)
	}
	return key
}

package main

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// feeder is a queue that works through a script whenever the controller wants to pop.
type feeder struct {
	*cache.DeltaFIFO
	run     *run
	ops     [][]string
	how     string
	outcome string
	stop    func()
}

// controller has a Controller pop; its reflector never comes to list.
func (r *run) controller(s script) {
	stop := make(chan struct{})
	f := &feeder{DeltaFIFO: r.fifo, run: r, ops: s.Ops, stop: func() { close(stop) }}
	never := errors.New("stopped")
	cache.New(&cache.Config{
		Queue: f,
		ListerWatcher: &cache.ListWatch{
			ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
				<-stop
				return nil, never
			},
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return nil, never },
		},
		RetryOnError: s.Retry,
		Process:      func(interface{}, bool) error { return nil }, // the script's is around it
	}).Run(stop)
}

func (f *feeder) Pop(process cache.PopProcessFunc) (interface{}, error) {
	if f.outcome != "" { // noted only now that the controller has dealt with it
		f.run.note(f.outcome)
		f.outcome = ""
	}
	how := "drop"
	for {
		if len(f.ops) == 0 {
			if f.stop != nil {
				f.stop()
				f.stop = nil
				f.DeltaFIFO.Close()
			}
			if f.run.isEmpty() {
				return nil, cache.ErrFIFOClosed
			}
			break
		}
		op := f.ops[0]
		f.ops = f.ops[1:]
		if op[0] != "pop" {
			f.run.note(kindOf(f.run.do(op)))
		} else if !f.run.isEmpty() {
			how = op[1]
			break
		}
	}
	var item interface{}
	popped, err := f.run.pop(how, func(process cache.PopProcessFunc) (interface{}, error) {
		var err error
		item, err = f.DeltaFIFO.Pop(process)
		return item, err
	})
	f.outcome = "pop" + popped
	return item, err
}

package main

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unsafe"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

//go:linkname processDeltas k8s.io/client-go/tools/cache.processDeltas
func processDeltas(logger klog.Logger, handler cache.ResourceEventHandler, store cache.Store, deltas cache.Deltas, isInInitialList bool, keyFunc cache.KeyFunc) error

//go:linkname processDeltasInBatch k8s.io/client-go/tools/cache.processDeltasInBatch
func processDeltasInBatch(logger klog.Logger, handler cache.ResourceEventHandler, store cache.Store, deltas []cache.Delta, isInInitialList bool, keyFunc cache.KeyFunc) error

// queue is what both queues of this version can do.
type queue interface {
	cache.Queue
	IsClosed() bool
}

type run struct {
	fifo                 queue
	real                 *cache.RealFIFO // the same, if it is one
	consumer             *consumer
	transformer          transformer
	broken               map[string]bool // keys that the queue's key function fails on
	ops                  [][]string
	isProcessing, canAsk bool
	lines                []string
}

func newRun(s script) *run {
	r := &run{consumer: newConsumer(nil), broken: map[string]bool{}, ops: s.Ops}
	var knownObjects cache.KeyListerGetter
	if s.Known != nil {
		r.consumer = newConsumer(*s.Known)
		unreadable := map[string]bool{}
		for _, key := range s.Unreadable {
			unreadable[key] = true
		}
		knownObjects = known{r.consumer.sortedStore, unreadable, s.Ghosts}
	}
	var transform cache.TransformFunc
	if s.Transform {
		transform = r.transformer.transform
	}
	if s.Delta {
		r.fifo = cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
			KnownObjects: knownObjects, EmitDeltaTypeReplaced: s.Replaced, Transformer: transform,
		})
		return r
	}
	if s.Atomic {
		knownObjects = nil
	}
	r.real = cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
		KeyFunction:           r.keyOf,
		KnownObjects:          knownObjects,
		Transformer:           transform,
		AtomicEvents:          s.Atomic,
		UnlockWhileProcessing: s.Unlock,
		EmitDeltaTypeBookmark: s.Bookmarks,
	})
	if s.BatchSize > 0 {
		*private[int](r.real, "batchSize") = s.BatchSize
	}
	r.fifo, r.canAsk = r.real, s.Unlock
	return r
}

// keyOf is the queue's key function, which can be broken.
func (r *run) keyOf(obj interface{}) (string, error) {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if r.broken[key] {
		return "", errors.New("broken")
	}
	return key, err
}

// private is a field that is not exported: there is no other way to see what is queued.
func private[T any](of interface{}, field string) *T {
	return (*T)(unsafe.Pointer(reflect.ValueOf(of).Elem().FieldByName(field).UnsafeAddr()))
}

func (r *run) queued() []string {
	texts := []string{}
	if r.real != nil {
		for _, delta := range *private[[]cache.Delta](r.real, "items") {
			texts = append(texts, showDelta(delta))
		}
		return texts
	}
	items := *private[map[string]cache.Deltas](r.fifo, "items")
	for _, key := range *private[[]string](r.fifo, "queue") {
		texts = append(texts, key+": "+showDeltas(items[key]))
	}
	return texts
}

// note ends an operation: how it went, and how things are now.
func (r *run) note(outcome string) {
	r.lines = append(r.lines, fmt.Sprintf("%s | %s | %s", outcome, strings.Join(r.queued(), "; "), r.synced()))
}

func (r *run) synced() string {
	switch {
	case r.isProcessing && !r.canAsk:
		return "held"
	case r.fifo.HasSynced():
		return "synced"
	}
	return "unsynced"
}

func (r *run) do(op []string) error {
	args := op[1:]
	switch op[0] {
	case "add":
		return r.fifo.Add(parse(args[0]))
	case "update":
		return r.fifo.Update(parse(args[0]))
	case "delete":
		return r.fifo.Delete(parse(args[0]))
	case "delete-as-it-is":
		r.transformer.off = true
		defer func() { r.transformer.off = false }()
		return r.fifo.Delete(parse(args[0]))
	case "replace":
		return r.fifo.Replace(parseAll(args[1:]), args[0])
	case "resync":
		return r.fifo.Resync()
	case "bookmark":
		return r.real.Bookmark(args[0])
	case "close":
		r.fifo.Close()
		return nil
	case "nothing":
		return nil
	}
	panic("no such operation: " + op[0])
}

// work works off what was popped in the way that a script asks for, and has the next operations done meanwhile.
func (r *run) work(how string, meanwhile int, single bool, deltas []cache.Delta, isInInitialList bool) error {
	r.isProcessing = true
	defer func() { r.isProcessing = false }()
	r.all(meanwhile)
	var err error
	if strings.HasPrefix(how, "apply") {
		process := processDeltasInBatch
		if single {
			process = func(logger klog.Logger, handler cache.ResourceEventHandler, store cache.Store, deltas []cache.Delta, isInInitialList bool, keyFunc cache.KeyFunc) error {
				return processDeltas(logger, handler, store, deltas, isInInitialList, keyFunc)
			}
		}
		keyFunc := cache.DeletionHandlingMetaNamespaceKeyFunc
		err = process(klog.Background(), r.consumer, transactional{r.consumer}, deltas, isInInitialList, keyFunc)
	}
	if strings.HasSuffix(how, "fail") {
		return errProcess
	}
	return err
}

// transactional makes a store's transactions be seen.
type transactional struct{ *consumer }

func (t transactional) Transaction(transactions ...cache.Transaction) *cache.TransactionError {
	return t.Indexer.(cache.TransactionStore).Transaction(transactions...)
}

func (r *run) pop(op []string) (string, error) {
	how := op[1]
	meanwhile, _ := strconv.Atoi(op[2])
	for _, key := range op[3:] {
		r.broken[key] = true
	}
	defer clear(r.broken)
	given := ""
	one := func(obj interface{}, isInInitialList bool) error {
		given = " " + mark(isInInitialList) + showDeltas(obj.(cache.Deltas))
		return r.work(how, meanwhile, true, obj.(cache.Deltas), isInInitialList)
	}
	if op[0] == "pop" {
		_, err := r.fifo.Pop(one)
		return given, err
	}
	err := r.real.PopBatch(func(deltas []cache.Delta, isInInitialList bool) error {
		given = " batch " + mark(isInInitialList) + showDeltas(deltas)
		return r.work(how, meanwhile, false, deltas, isInInitialList)
	}, one)
	return given, err
}

// all does so many of the next operations.
func (r *run) all(count int) {
	for ; count > 0 && len(r.ops) > 0; count-- {
		op := r.ops[0]
		r.ops = r.ops[1:]
		switch {
		case op[0] == "drain" && !r.isProcessing:
			if len(r.queued()) > 0 {
				r.ops = append([][]string{{"pop", op[1], "0"}, op}, r.ops...)
				count += 2
			}
		case !strings.HasPrefix(op[0], "pop") && op[0] != "drain":
			r.note(kindOf(r.do(op)))
		case r.isProcessing:
			r.note("is processing")
		case len(r.queued()) == 0 && !r.fifo.IsClosed():
			r.note("waits")
		default:
			given, err := r.pop(op)
			if given != "" {
				given += " -> " + r.consumer.tell()
			}
			r.note(kindOf(err) + given)
		}
	}
}

func runQueue(s script) []string {
	r := newRun(s)
	defer func() {
		if reason := recover(); reason != nil {
			panic(fmt.Sprintf("%v after %s", reason, strings.Join(r.lines, "\n")))
		}
	}()
	r.all(len(s.Ops))
	version := r.consumer.LastStoreSyncResourceVersion()
	return append(r.lines, fmt.Sprintf("%s | %d | %s", showAll(r.consumer.List()), r.transformer.calls, version))
}

// Runs scripts of operations through client-go's DeltaFIFO and Controller: a script a line on standard input, its
// trace a line on standard output. See ../../README.md.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	_ "unsafe" // for linkname

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// What queue_generator.py makes; it says what the fields mean.
type script struct {
	Controller bool       `json:"controller"`
	Retry      bool       `json:"retry"`
	Replaced   bool       `json:"replaced"`
	Transform  bool       `json:"transform"`
	Known      *[]string  `json:"known"`
	Unreadable []string   `json:"unreadable"`
	Ghosts     []string   `json:"ghosts"`
	Ops        [][]string `json:"ops"`
}

//go:linkname processDeltas k8s.io/client-go/tools/cache.processDeltas
func processDeltas(handler cache.ResourceEventHandler, store cache.Store, deltas cache.Deltas, isInInitialList bool) error

type run struct {
	fifo        *cache.DeltaFIFO
	consumer    *consumer
	transformer transformer
	lines       []string
}

func newRun(s script) *run {
	r := &run{consumer: newConsumer(nil)}
	options := cache.DeltaFIFOOptions{EmitDeltaTypeReplaced: s.Replaced}
	if s.Known != nil {
		r.consumer = newConsumer(*s.Known)
		unreadable := map[string]bool{}
		for _, key := range s.Unreadable {
			unreadable[key] = true
		}
		options.KnownObjects = known{r.consumer.sortedStore, unreadable, s.Ghosts}
	}
	if s.Transform {
		options.Transformer = r.transformer.transform
	}
	r.fifo = cache.NewDeltaFIFOWithOptions(options)
	return r
}

// note ends an operation: how it went, and how things are now.
func (r *run) note(outcome string) {
	queued := []string{}
	for _, key := range r.fifo.ListKeys() {
		deltas, _, _ := r.fifo.GetByKey(key)
		queued = append(queued, key+": "+showDeltas(deltas.(cache.Deltas)))
	}
	synced := "unsynced"
	if r.fifo.HasSynced() {
		synced = "synced"
	}
	r.lines = append(r.lines, fmt.Sprintf("%s | %s | %s", outcome, strings.Join(queued, "; "), synced))
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
	case "add-if-not-present":
		return r.fifo.AddIfNotPresent(parseDeltas(args))
	case "close":
		r.fifo.Close()
		return nil
	case "nothing":
		return nil
	}
	panic("no such operation: " + op[0])
}

// pop works one item off in the way that a script asks for, and says what it was.
func (r *run) pop(how string, pop func(cache.PopProcessFunc) (interface{}, error)) (string, error) {
	given := ""
	popped, err := pop(func(obj interface{}, isInInitialList bool) error {
		deltas := obj.(cache.Deltas)
		given = mark(isInInitialList) + showDeltas(deltas)
		var err error
		if strings.HasPrefix(how, "apply") {
			err = processDeltas(r.consumer, r.consumer.sortedStore, deltas, isInInitialList)
		}
		switch {
		case strings.HasSuffix(how, "fail"):
			return errProcess
		case strings.HasSuffix(how, "requeue"):
			return cache.ErrRequeue{}
		case strings.HasSuffix(how, "requeue-error"):
			return cache.ErrRequeue{Err: errProcess}
		}
		return err
	})
	if popped == nil {
		return "", err
	}
	if returned := showDeltas(popped.(cache.Deltas)); returned != strings.TrimPrefix(given, "*") {
		given += " and returned " + returned
	}
	return " " + given + " -> " + r.consumer.tell(), err
}

func (r *run) isEmpty() bool {
	return len(r.fifo.ListKeys()) == 0
}

func (r *run) all(ops [][]string) {
	for _, op := range ops {
		switch {
		case op[0] == "drain":
			for !r.isEmpty() {
				r.all([][]string{{"pop", op[1]}})
			}
		case op[0] != "pop":
			r.note(kindOf(r.do(op)))
		case r.isEmpty() && !r.fifo.IsClosed():
			r.note("waits")
		default:
			popped, err := r.pop(op[1], r.fifo.Pop)
			r.note(kindOf(err) + popped)
		}
	}
}

func (r *run) end() []string {
	return append(r.lines, showAll(r.consumer.List()))
}

func trace(line []byte) (lines []string) {
	var s script
	if err := json.Unmarshal(line, &s); err != nil {
		panic(err)
	}
	r := newRun(s)
	defer func() {
		if reason := recover(); reason != nil {
			lines = append(r.lines, fmt.Sprintf("panic: %v", reason))
		}
	}()
	if s.Controller {
		r.controller(s)
	} else {
		r.all(s.Ops)
	}
	return r.end()
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	utilruntime.ErrorHandlers = nil // they wait
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		if err := encoder.Encode(trace(line)); err != nil {
			panic(err)
		}
		if err := output.Flush(); err != nil {
			panic(err)
		}
	}
}

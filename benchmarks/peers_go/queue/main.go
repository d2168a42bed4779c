// Command queue measures work queues: cycles of Add, Get and Done, a second.
//
//	queue ITEMS
//
// It prints a JSON object a line: the queue (client-go's typed queue, controller-runtime's priority queue), whether
// its metrics are on, and how it was used:
//
//	bulk      all items are added, then one worker takes and finishes them
//	priority  the same, of three priorities in turn
//	waiting   a worker waits in Get for each item: the next is added once the last is done
//	stream    a worker takes items while they are added
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

type result struct {
	Queue      string  `json:"queue"`
	Use        string  `json:"use"`
	Metrics    bool    `json:"metrics"`
	Procs      int     `json:"procs"`
	Cycles     int     `json:"cycles"`
	Wall       float64 `json:"wall_seconds"`
	CPU        float64 `json:"cpu_seconds"`
	PerSecond  float64 `json:"cycles_per_second"`
	CPUPerItem float64 `json:"cpu_microseconds_per_cycle"`
}

// A queue's name turns its metrics on: both kinds of queue register theirs with controller-runtime's registry.
const named = "benchmark"

var priorities = [...]int{100, 0, -100}

func cpu() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

func take(queue workqueue.TypedInterface[string]) {
	key, _ := queue.Get()
	queue.Done(key)
}

func bulk(queue workqueue.TypedInterface[string], keys []string) {
	for _, key := range keys {
		queue.Add(key)
	}
	for range keys {
		take(queue)
	}
}

func priority(queue workqueue.TypedInterface[string], keys []string) {
	prioritised := queue.(priorityqueue.PriorityQueue[string])
	for n, key := range keys {
		prioritised.AddWithOpts(priorityqueue.AddOpts{Priority: &priorities[n%len(priorities)]}, key)
	}
	for range keys {
		take(queue)
	}
}

func waiting(queue workqueue.TypedInterface[string], keys []string) {
	done := make(chan struct{})
	go func() {
		for range keys {
			take(queue)
			done <- struct{}{}
		}
	}()
	for _, key := range keys {
		queue.Add(key)
		<-done
	}
}

func stream(queue workqueue.TypedInterface[string], keys []string) {
	done := make(chan struct{})
	go func() {
		for range keys {
			take(queue)
		}
		close(done)
	}()
	for _, key := range keys {
		queue.Add(key)
	}
	<-done
}

func clientGo(name string) workqueue.TypedInterface[string] {
	return workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: name})
}

func controllerRuntime(name string) workqueue.TypedInterface[string] {
	return priorityqueue.New[string](name)
}

func measure(queue workqueue.TypedInterface[string], use func(workqueue.TypedInterface[string], []string),
	keys []string) result {
	defer queue.ShutDown()
	runtime.GC()
	before, began := cpu(), time.Now()
	use(queue, keys)
	wall, spent := time.Since(began).Seconds(), cpu()-before
	return result{
		Procs:      runtime.GOMAXPROCS(0),
		Cycles:     len(keys),
		Wall:       wall,
		CPU:        spent,
		PerSecond:  float64(len(keys)) / wall,
		CPUPerItem: spent / float64(len(keys)) * 1e6,
	}
}

func run(items int) error {
	keys := make([]string, items)
	for n := range keys {
		keys[n] = fmt.Sprintf("team-%d/web-%06d", n%20, n)
	}
	queues := []struct {
		name string
		make func(string) workqueue.TypedInterface[string]
	}{{"client-go", clientGo}, {"controller-runtime priority", controllerRuntime}}
	uses := []struct {
		name string
		run  func(workqueue.TypedInterface[string], []string)
	}{{"bulk", bulk}, {"priority", priority}, {"waiting", waiting}, {"stream", stream}}
	encoder := json.NewEncoder(os.Stdout)
	for _, kind := range queues {
		for _, use := range uses {
			if use.name == "priority" && kind.name == "client-go" {
				continue // it has none
			}
			for _, name := range []string{"", named} {
				said := measure(kind.make(name), use.run, keys)
				said.Queue, said.Use, said.Metrics = kind.name, use.name, name != ""
				if err := encoder.Encode(said); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func main() {
	items, err := strconv.Atoi(os.Args[1])
	if err == nil {
		err = run(items)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

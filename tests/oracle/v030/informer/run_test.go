// Package informer runs scripts through client-go's SharedIndexInformer.
//
// It is a test for the sake of testing/synctest, whose bubbles have a clock of their own: in one, an hour passes as
// soon as everybody waits for it. Scripts come on standard input, one a line, each is read before its bubble opens,
// and its trace leaves as one line of standard output.
package informer

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// In this long every wait of a reflector is over: client-go's back-off has at most 60 s.
const settling = 61*time.Second + 50*time.Millisecond

func TestScripts(t *testing.T) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	utilruntime.ErrorHandlers = nil // the default one sleeps, by a clock that it shares with all bubbles
	lines := bufio.NewReader(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	os.Stdout = os.Stderr // for what package testing has to say
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var played script
		if err := json.Unmarshal(line, &played); err != nil {
			t.Fatal(err)
		}
		var result *trace
		synctest.Test(t, func(*testing.T) { result = play(&played) })
		answer, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(answer)
		out.WriteByte('\n')
		if err := out.Flush(); err != nil {
			t.Fatal(err)
		}
	}
}

// What happened, to be compared. informer_script.py says what the fields mean.
type trace struct {
	Points []point        `json:"points"`
	Calls  map[int][]call `json:"calls"`
	Errors []watchError   `json:"errors"`
}

type point struct {
	Step     int                 `json:"step"`
	Applied  bool                `json:"applied"`
	Result   string              `json:"result"`
	Time     float64             `json:"time"`
	Requests []asked             `json:"requests"`
	State    string              `json:"state"`
	Streams  int                 `json:"streams"`
	Synced   bool                `json:"synced"`
	Early    bool                `json:"early"`
	Handlers map[int]bool        `json:"handlers"`
	Version  string              `json:"version"`
	Stopped  bool                `json:"stopped"`
	Store    map[string]string   `json:"store"`
	Indexes  map[string][]string `json:"indexes"`
}

type watchError struct {
	Step int    `json:"step"`
	Text string `json:"text"`
}

type run struct {
	script   *script
	begin    time.Time
	server   *server
	informer cache.SharedIndexInformer
	handlers map[int]*handler
	started  bool
	stopping bool
	// Of the first list: whether one is being answered, whether it was, and was said to be too early.
	answering, synced, early bool
	stop                     chan struct{}
	ended                    chan struct{}
	errors                   []string
	trace                    trace
}

func play(played *script) *trace {
	r := &run{
		script:   played,
		begin:    time.Now(),
		server:   newServer(played.WatchList),
		handlers: map[int]*handler{},
		trace:    trace{Points: []point{}, Calls: map[int][]call{}, Errors: []watchError{}},
		stop:     make(chan struct{}),
		ended:    make(chan struct{}),
	}
	indexers := cache.Indexers{}
	for _, name := range played.Indexes {
		indexers[name] = r.indexFunc(name)
	}
	r.informer = cache.NewSharedIndexInformer(r.server, &metav1.PartialObjectMetadata{}, seconds(played.Resync), indexers)
	if err := r.informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		if !errors.Is(err, errStopped) {
			r.errors = append(r.errors, errorText(err))
		}
	}); err != nil {
		panic(err)
	}
	if played.Transform {
		if err := r.informer.SetTransform(transform); err != nil {
			panic(err)
		}
	}
	for number := range played.Steps {
		r.play(number, &played.Steps[number])
	}
	r.release()
	synctest.Wait()
	r.halt()
	if r.started {
		<-r.ended
	}
	for id, each := range r.handlers {
		each.endStep(len(played.Steps))
		r.trace.Calls[id] = each.calls
	}
	return &r.trace
}

func (r *run) play(number int, step *step) {
	r.answering = step.Do == "list"
	applied, result, unsettled := r.do(step)
	synctest.Wait()
	if unsettled {
		time.Sleep(settling)
		synctest.Wait()
	}
	for _, each := range r.handlers {
		each.endStep(number)
	}
	r.trace.Points = append(r.trace.Points, r.point(number, applied, result))
	for _, text := range r.errors {
		r.trace.Errors = append(r.trace.Errors, watchError{number, text})
	}
	r.errors = nil
}

// do is one step: whether it could be done now, what it led to, and whether the reflector may be waiting after it.
func (r *run) do(step *step) (applied bool, result string, unsettled bool) {
	switch step.Do {
	case "start":
		if r.started {
			return
		}
		r.started = true
		go func() {
			defer close(r.ended)
			r.informer.Run(r.stop)
		}()
		return true, "", false
	case "stop":
		if !r.started {
			return
		}
		r.release()
		synctest.Wait()
		r.halt()
		return true, "", false
	case "add_handler":
		return true, r.addHandler(step), false
	case "remove_handler":
		if each := r.handlers[step.Handler]; each != nil && each.registration != nil {
			return true, errorKind(r.informer.RemoveEventHandler(each.registration)), false
		}
	case "hold":
		if each := r.handlers[step.Handler]; each != nil {
			each.hold()
			return true, "", false
		}
	case "release":
		if each := r.handlers[step.Handler]; each != nil {
			each.release()
			return true, "", false
		}
	case "add_indexers":
		return true, errorKind(r.informer.AddIndexers(cache.Indexers{step.Index: r.indexFunc(step.Index)})), false
	case "wait":
		time.Sleep(seconds(step.Seconds))
		return true, "", false
	case "list":
		if r.server.canAnswer(step) {
			if step.Error != nil {
				r.server.reply(answer{err: step.Error.err()})
				return true, "", true
			}
			r.server.reply(answer{list: step.list()})
			return true, "", false
		}
	case "open":
		if r.server.state() == "watch" {
			if step.Error != nil {
				r.server.reply(answer{err: step.Error.err()})
				return true, "", true
			}
			r.server.open()
			return true, "", r.send(step)
		}
	case "events":
		if r.server.state() == "stream" {
			return true, "", r.send(step)
		}
	}
	return
}

func (r *run) send(step *step) (unsettled bool) {
	stream := r.server.stream
	stream.send(step.Events)
	synctest.Wait()
	if step.End != "" && !stream.isStopped() {
		close(stream.events)
		synctest.Wait()
	}
	return stream.isStopped()
}

func (r *run) addHandler(step *step) string {
	if r.handlers[step.Handler] != nil {
		return "taken"
	}
	added := &handler{begin: r.begin, calls: []call{}}
	var err error
	added.mu.Lock() // until it knows its registration
	if step.Resync == nil {
		added.registration, err = r.informer.AddEventHandler(added)
	} else {
		added.registration, err = r.informer.AddEventHandlerWithResyncPeriod(added, seconds(*step.Resync))
	}
	added.mu.Unlock()
	if err == nil {
		r.handlers[step.Handler] = added
	}
	return errorKind(err)
}

func (r *run) release() {
	for _, each := range r.handlers {
		each.release()
	}
}

func (r *run) halt() {
	if !r.stopping {
		r.stopping = true
		close(r.stop)
		close(r.server.stopped)
	}
}

func (r *run) point(number int, applied bool, result string) point {
	r.synced = r.informer.HasSynced()
	made := point{
		Step:     number,
		Applied:  applied,
		Result:   result,
		Time:     time.Since(r.begin).Seconds(),
		Requests: r.server.requests,
		State:    r.server.state(),
		Streams:  r.server.openStreams(),
		Synced:   r.synced,
		Early:    r.early,
		Handlers: map[int]bool{},
		Version:  r.informer.LastSyncResourceVersion(),
		Stopped:  r.informer.IsStopped(),
		Store:    map[string]string{},
		Indexes:  map[string][]string{},
	}
	r.server.requests = []asked{}
	for id, each := range r.handlers {
		made.Handlers[id] = each.registration.HasSynced()
	}
	indexer := r.informer.GetIndexer()
	for _, obj := range indexer.List() {
		pod := obj.(*metav1.PartialObjectMetadata)
		made.Store[keyOf(pod)] = text(pod)
	}
	for name := range indexer.GetIndexers() {
		for _, value := range indexer.ListIndexFuncValues(name) {
			keys, err := indexer.IndexKeys(name, value)
			if err != nil {
				panic(err)
			}
			slices.Sort(keys)
			made.Indexes[name+" "+value] = keys
		}
	}
	return made
}

// An index by the color, or by every letter of it.
func (r *run) indexFunc(name string) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		// Said while the first list is being stored, it is said too early.
		if mayAskWhileStoring && r.answering && !r.synced && r.informer.HasSynced() {
			r.early = true
		}
		color := obj.(*metav1.PartialObjectMetadata).Labels[colorLabel]
		if name == "letters" {
			return strings.Split(color, ""), nil
		}
		return []string{color}, nil
	}
}

// Each call leaves its mark, so that an object which comes by twice can be told.
func transform(obj any) (any, error) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok { // client-go 0.30 does that
		return tombstone, nil
	}
	pod := obj.(*metav1.PartialObjectMetadata).DeepCopy()
	pod.Labels[viaLabel] += "~"
	return pod, nil
}

func errorKind(err error) string {
	switch {
	case err == nil:
		return ""
	case strings.Contains(err.Error(), "stopped already"):
		return "stopped"
	case strings.Contains(err.Error(), "conflict"):
		return "conflict"
	}
	return err.Error()
}

func seconds(value float64) time.Duration {
	return time.Duration(math.Round(value*1000)) * time.Millisecond
}

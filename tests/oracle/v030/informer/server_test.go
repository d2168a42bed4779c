package informer

import (
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

var errStopped = errors.New("stopped")

// A server answers requests when the script says so: one request at a time waits.
type server struct {
	watchList bool
	stopped   chan struct{}

	mu       sync.Mutex
	waiting  *request
	stream   *stream
	opened   int
	closed   int
	requests []asked
}

func newServer(watchList bool) *server {
	return &server{watchList: watchList, stopped: make(chan struct{}), requests: []asked{}}
}

type request struct {
	verb   string
	paged  bool
	answer chan answer
}

type answer struct {
	list   runtime.Object
	stream *stream
	err    error
}

// A request as the trace has it.
type asked struct {
	Verb      string `json:"verb"`
	Version   string `json:"version"`
	Match     string `json:"match"`
	Limit     int64  `json:"limit"`
	Continue  string `json:"token"`
	Bookmarks bool   `json:"bookmarks"`
	Initial   bool   `json:"initial"`
}

func (s *server) List(options metav1.ListOptions) (runtime.Object, error) {
	answered := s.ask("list", options)
	return answered.list, answered.err
}

func (s *server) Watch(options metav1.ListOptions) (watch.Interface, error) {
	answered := s.ask("watch", options)
	if answered.err != nil {
		return nil, answered.err
	}
	return answered.stream, nil
}

// IsWatchListSemanticsUnSupported tells client-go 0.36 whether it may ask for streaming lists.
func (s *server) IsWatchListSemanticsUnSupported() bool {
	return !s.watchList
}

func (s *server) ask(verb string, options metav1.ListOptions) answer {
	select {
	case <-s.stopped:
		return answer{err: errStopped} // who is stopped asks once more, and nobody minds
	default:
	}
	mine := &request{verb, options.Limit > 0 || options.Continue != "", make(chan answer)}
	s.mu.Lock()
	s.waiting = mine
	s.requests = append(s.requests, asked{
		Verb:      verb,
		Version:   options.ResourceVersion,
		Match:     string(options.ResourceVersionMatch),
		Limit:     options.Limit,
		Continue:  options.Continue,
		Bookmarks: options.AllowWatchBookmarks,
		Initial:   options.SendInitialEvents != nil && *options.SendInitialEvents,
	})
	s.mu.Unlock()
	select {
	case answered := <-mine.answer:
		return answered
	case <-s.stopped:
		s.mu.Lock()
		s.waiting = nil
		s.mu.Unlock()
		return answer{err: errStopped}
	}
}

// What the client waits for: "list", "watch", "stream" or "".
func (s *server) state() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.waiting != nil:
		return s.waiting.verb
	case s.stream != nil && !s.stream.isStopped():
		return "stream"
	}
	return ""
}

// Who asks for no pages gets none.
func (s *server) canAnswer(step *step) bool {
	return s.state() == "list" && (s.waiting.paged || step.Continue == "")
}

func (s *server) openStreams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened - s.closed
}

func (s *server) reply(answered answer) {
	s.mu.Lock()
	waiting := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	waiting.answer <- answered
}

func (s *server) open() {
	opened := &stream{server: s, events: make(chan watch.Event), stopped: make(chan struct{})}
	s.mu.Lock()
	s.stream = opened
	s.opened++
	s.mu.Unlock()
	s.reply(answer{stream: opened})
}

// A stream is one watch.
type stream struct {
	server  *server
	events  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

func (s *stream) ResultChan() <-chan watch.Event {
	return s.events
}

func (s *stream) Stop() {
	s.once.Do(func() {
		close(s.stopped)
		s.server.mu.Lock()
		s.server.closed++
		s.server.mu.Unlock()
	})
}

func (s *stream) isStopped() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return false
	}
}

func (s *stream) send(events []event) {
	for i := range events {
		select {
		case s.events <- events[i].event():
		case <-s.stopped:
			return
		}
	}
}

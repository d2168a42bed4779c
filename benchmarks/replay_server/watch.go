package main

import (
	"fmt"
	"net"
	"net/http"
	"sync"
)

// watcher is a client's watch. Only one goroutine writes to it at a time: its own until it is added to the server's
// watchers, the flow's afterwards.
type watcher struct {
	selected selection
	encoding encoding
	conn     net.Conn            // HTTP/1.1: taken over, so that many events are one write
	response http.ResponseWriter // HTTP/2
	out      []byte
	closed   chan struct{}
	close    func()
}

const (
	flushSize = 1 << 16
	chunkTail = "\r\n"
)

// add puts an event into the buffer, an HTTP chunk of its own as the real server writes them.
func (w *watcher) add(kind string, t *template, object int, version uint64, sent int64) {
	if w.conn != nil {
		w.out = fmt.Appendf(w.out, "%x\r\n", w.encoding.eventSize(kind, t))
	}
	w.out = w.encoding.appendEvent(w.out, kind, t, object, version, sent)
	if w.conn != nil {
		w.out = append(w.out, chunkTail...)
	}
}

// addWhole puts an encoded event into the buffer.
func (w *watcher) addWhole(event []byte) {
	if w.conn != nil {
		w.out = fmt.Appendf(w.out, "%x\r\n%s\r\n", len(event), event)
	} else {
		w.out = append(w.out, event...)
	}
}

// flush writes what is in the buffer.
func (w *watcher) flush() {
	var err error
	if w.conn != nil {
		_, err = w.conn.Write(w.out)
	} else if _, err = w.response.Write(w.out); err == nil {
		err = http.NewResponseController(w.response).Flush()
	}
	w.out = w.out[:0]
	if err != nil {
		w.close()
	}
}

// end ends the answer, as a server does that closes a watch.
func (w *watcher) end() {
	if w.conn != nil {
		w.out = append(w.out, "0\r\n\r\n"...)
	}
	w.flush()
	w.close()
}

// watch answers a WATCH: the initial events if they are asked for, and then what flows.
func (s *server) watch(response http.ResponseWriter, request *http.Request, namespace string) {
	selected, err := selectionOf(request, namespace)
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	w := &watcher{
		selected: selected,
		encoding: encodingFor(request.Header.Get("Accept")),
		out:      make([]byte, 0, 2*flushSize),
		closed:   make(chan struct{}),
	}
	w.close = sync.OnceFunc(func() { close(w.closed) })
	if request.ProtoMajor == 1 {
		if !w.takeOver(response) {
			return
		}
		defer w.conn.Close()
	} else {
		w.response = response
		response.Header().Set("Content-Type", w.encoding.watchType())
		go func() { <-request.Context().Done(); w.close() }()
	}
	s.watches.Add(1)
	if request.URL.Query().Get("sendInitialEvents") == "true" {
		s.initialEvents(w)
	}
	w.flush() // at least the headers
	s.addWatcher(w)
	<-w.closed
	s.removeWatcher(w)
}

// takeOver gets the connection of an HTTP/1.1 request, and closes the watch when the client closes it.
func (w *watcher) takeOver(response http.ResponseWriter) bool {
	conn, buffered, err := http.NewResponseController(response).Hijack()
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return false
	}
	w.conn = conn
	w.out = fmt.Appendf(w.out, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n", w.encoding.watchType())
	go func() {
		_, _ = buffered.Reader.ReadByte() // nothing comes until the end
		w.close()
	}()
	return true
}

// initialEvents are every object and the bookmark that says that this was all.
func (s *server) initialEvents(w *watcher) {
	c := s.collection
	c.mu.Lock()
	versions, sent, version := c.versions, c.sent, c.version
	c.mu.Unlock()
	for object := range versions {
		t := c.templateOf(object)
		if !w.selected.has(object, t) {
			continue
		}
		c.mu.Lock()
		itsVersion, itsSent := versions[object], sent[object]
		c.mu.Unlock()
		w.add("ADDED", t, object, itsVersion, itsSent)
		if len(w.out) >= flushSize {
			w.flush()
			select {
			case <-w.closed:
				return
			default:
			}
		}
	}
	w.addWhole(w.encoding.bookmark(version, true))
}

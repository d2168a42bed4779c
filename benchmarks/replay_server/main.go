// The API server of the benchmarks: it replays pods that were encoded beforehand, faster than any client reads.
//
//	replay_server -pods FILE -ca FILE
//
// writes the certificate that its own is signed with, and prints a line of JSON that says where it listens. Requests to
// "control" say what it is to do: /configure?objects=N, /flow?events=N&rate=R&watchers=W&seconds=S, /expire, /counts, and
// /sent: the bytes that clients of plain HTTP got, by User-Agent.
// It ends with its standard input.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

type server struct {
	collection     *collection
	leases         *leases
	connections    connections
	lists, watches atomic.Int64
	flowing        sync.Mutex // held by whoever writes to the watchers

	eventsCreated, eventsPatched atomic.Int64

	mu       sync.Mutex
	watchers map[*watcher]struct{}
}

func (s *server) addWatcher(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[w] = struct{}{}
}

func (s *server) removeWatcher(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watchers, w)
}

// ServeHTTP is what the clients see.
func (s *server) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	s.connections.record(request)
	if s.writeEvent(response, request) {
		return
	}
	path := strings.TrimSuffix(request.URL.Path, "/")
	if strings.HasPrefix(path, "/apis/coordination.k8s.io/") {
		s.leases.ServeHTTP(response, request)
		return
	}
	namespace, ofNamespace := strings.CutPrefix(path, "/api/v1/namespaces/")
	namespace, ofNamespace = strings.CutSuffix(namespace, "/pods")
	if path != "/api/v1/pods" && (!ofNamespace || namespace == "") {
		answerDiscovery(response, path)
		return
	}
	if path == "/api/v1/pods" {
		namespace = ""
	}
	if watch := request.URL.Query().Get("watch"); watch == "true" || watch == "1" || watch == "True" {
		s.watch(response, request, namespace)
	} else {
		s.list(response, request, namespace)
	}
}

// control is what the harness asks for.
func (s *server) control() http.Handler {
	mux := http.NewServeMux()
	number := func(request *http.Request, name string) float64 {
		value, _ := strconv.ParseFloat(request.URL.Query().Get(name), 64)
		return value
	}
	mux.HandleFunc("/configure", func(response http.ResponseWriter, request *http.Request) {
		s.flowing.Lock()
		defer s.flowing.Unlock()
		taking, _ := s.waitForWatchers(0)
		for _, w := range taking {
			s.removeWatcher(w)
			w.close()
		}
		s.collection.reset(int(number(request, "objects")))
		s.leases.reset()
		s.connections.reset()
		for _, count := range []*atomic.Int64{&s.lists, &s.watches, &s.eventsCreated, &s.eventsPatched} {
			count.Store(0)
		}
		writeJSON(response, struct{}{})
	})
	mux.HandleFunc("/flow", func(response http.ResponseWriter, request *http.Request) {
		done, err := s.flow(
			int(number(request, "events")), number(request, "rate"), int(number(request, "watchers")), number(request, "seconds"),
		)
		if err != nil {
			http.Error(response, err.Error(), http.StatusConflict)
			return
		}
		writeJSON(response, done)
	})
	mux.HandleFunc("/expire", func(response http.ResponseWriter, request *http.Request) {
		s.expire()
		writeJSON(response, struct{}{})
	})
	mux.HandleFunc("/counts", func(response http.ResponseWriter, request *http.Request) {
		writeJSON(response, map[string]int64{
			"lists": s.lists.Load(), "watches": s.watches.Load(),
			"events_created": s.eventsCreated.Load(), "events_patched": s.eventsPatched.Load(),
		})
	})
	mux.HandleFunc("/sent", func(response http.ResponseWriter, request *http.Request) {
		writeJSON(response, s.connections.sent())
	})
	return mux
}

func writeJSON(response http.ResponseWriter, value any) {
	response.Header().Set("Content-Type", "application/json")
	_, _ = response.Write(mustJSON(value))
}

func main() {
	pods := flag.String("pods", "", "file of templates, a line of JSON each")
	ca := flag.String("ca", "", "file to write the certificate authority to")
	flag.Parse()
	debug.SetGCPercent(400)
	templates, err := loadTemplates(*pods)
	if err != nil {
		log.Fatal(err)
	}
	if len(templates) == 0 {
		log.Fatalf("%s holds no pods", *pods)
	}
	s := &server{
		collection: &collection{templates: templates}, leases: newLeases(), watchers: map[*watcher]struct{}{},
	}
	s.collection.reset(len(templates))
	tlsConfig, err := selfSigned(*ca)
	if err != nil {
		log.Fatal(err)
	}
	quiet := log.New(io.Discard, "", 0) // clients that leave in the middle of an answer
	plain, secure, control := listen(), listen(), listen()
	go serve(&http.Server{Handler: s, ErrorLog: quiet, ConnContext: withConnection}, countingListener{plain})
	go serve(&http.Server{Handler: s, ErrorLog: quiet, TLSConfig: tlsConfig}, secure)
	go serve(&http.Server{Handler: s.control()}, control)
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{
		"http":    fmt.Sprintf("http://%s", plain.Addr()),
		"https":   fmt.Sprintf("https://%s", secure.Addr()),
		"control": fmt.Sprintf("http://%s", control.Addr()),
	}); err != nil {
		log.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func listen() net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	return listener
}

func serve(server *http.Server, listener net.Listener) {
	if server.TLSConfig != nil {
		log.Fatal(server.ServeTLS(listener, "", ""))
	}
	log.Fatal(server.Serve(listener))
}

package main

import (
	"io"
	"net/http"
	"strings"
)

const eventsPrefix = "/apis/events.k8s.io/v1/namespaces/"

// writeEvent answers requests that create an Event or count its repetitions, and counts them. It keeps none of them.
// It reports whether the request was one.
func (s *server) writeEvent(response http.ResponseWriter, request *http.Request) bool {
	path, isEvent := strings.CutPrefix(request.URL.Path, eventsPrefix)
	if !isEvent {
		return false
	}
	sent, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return true
	}
	switch request.Method {
	case http.MethodPost: // what was sent is an Event in the encoding that the client reads
		s.eventsCreated.Add(1)
		response.Header().Set("Content-Type", request.Header.Get("Content-Type"))
		response.WriteHeader(http.StatusCreated)
		_, _ = response.Write(sent)
	case http.MethodPatch:
		s.eventsPatched.Add(1)
		namespace, name, _ := strings.Cut(path, "/events/")
		writeJSON(response, map[string]any{
			"kind": "Event", "apiVersion": "events.k8s.io/v1",
			"metadata": map[string]string{"namespace": namespace, "name": name},
		})
	default:
		response.WriteHeader(http.StatusMethodNotAllowed)
	}
	return true
}

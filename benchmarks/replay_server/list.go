package main

import (
	"fmt"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// list answers a LIST, or a page of one. The continue token is where to go on, and the list's version. It writes item by
// item, and what is between them apart, as kube-apiserver does since it streams lists (KEP-5116): a pod is two HTTP chunks.
func (s *server) list(response http.ResponseWriter, request *http.Request, namespace string) {
	query := request.URL.Query()
	limit, _ := strconv.Atoi(query.Get("limit"))
	selected, err := selectionOf(request, namespace)
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError) // as the real server answers
		return
	}
	c := s.collection
	c.mu.Lock()
	start, version := 0, c.version
	if token := query.Get("continue"); token != "" {
		if _, err := fmt.Sscanf(token, "%d.%d", &start, &version); err != nil {
			c.mu.Unlock()
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
	}
	versions, sent := c.versions, c.sent
	c.mu.Unlock()
	s.lists.Add(1)

	enc := encodingFor(request.Header.Get("Accept"))
	var objects []int
	size, next := 0, start
	for ; next < len(versions); next++ {
		t := c.templateOf(next)
		if !selected.has(next, t) {
			continue
		}
		if limit > 0 && len(objects) == limit {
			break
		}
		objects = append(objects, next)
		size += enc.itemSize(t)
	}
	meta := metav1.ListMeta{ResourceVersion: fmt.Sprint(version), ShardInfo: selected.info()}
	if remaining := int64(len(versions) - next); remaining > 0 {
		meta.Continue = fmt.Sprintf("%d.%d", next, version)
		if selected == (selection{}) {
			meta.RemainingItemCount = &remaining
		}
	}
	response.Header().Set("Content-Type", enc.listType())
	out := enc.appendListHead(make([]byte, 0, 1<<16), meta, size)
	for i, object := range objects {
		c.mu.Lock()
		itsVersion, itsSent := versions[object], sent[object]
		c.mu.Unlock()
		t := c.templateOf(object)
		_, _ = response.Write(enc.appendItemHead(out, t, i == 0)) // the next write tells whether it was
		if _, err := response.Write(enc.appendItem(out[:0], t, object, itsVersion, itsSent)); err != nil {
			return
		}
		out = out[:0]
	}
	_, _ = response.Write(enc.appendListTail(out)) // who has left needs no answer
}

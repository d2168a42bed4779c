package main

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apisharding "k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/sharding"
)

// selection is what a list or a watch asks for: a namespace, "" for all, and shards, nil for all.
type selection struct {
	namespace string
	shards    apisharding.Selector
}

// selectionOf reads the shard selector of a request with the real server's parser (KEP-5866).
func selectionOf(request *http.Request, namespace string) (selection, error) {
	text := request.URL.Query().Get("shardSelector")
	if text == "" {
		return selection{namespace: namespace}, nil
	}
	shards, err := sharding.Parse(text)
	return selection{namespace, shards}, err
}

// has says whether an object is selected. Its template is t.
func (s selection) has(object int, t *template) bool {
	if s.namespace != "" && s.namespace != t.namespace {
		return false
	}
	if s.shards == nil {
		return true
	}
	var uid [36]byte
	putUID(uid[:], object)
	matches, err := s.shards.Matches(&metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid[:]), Namespace: t.namespace},
	})
	return matches && err == nil
}

// info is what a list says about its shards.
func (s selection) info() *metav1.ShardInfo {
	if s.shards == nil {
		return nil
	}
	return &metav1.ShardInfo{Selector: s.shards.String()}
}

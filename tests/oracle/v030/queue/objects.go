package main

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Objects, tombstones and deltas are written as texts; queue_objects.py says how.

type object struct {
	metav1.ObjectMeta
	text string
}

// keyless is an object without metadata.
type keyless string

func parse(text string) interface{} {
	switch text[0] {
	case '-':
		return keyless(text)
	case '?':
		key, last, known := strings.Cut(text[1:], "=")
		if !known {
			return cache.DeletedFinalStateUnknown{Key: key}
		}
		return cache.DeletedFinalStateUnknown{Key: key, Obj: parse(last)}
	}
	head, _, _ := strings.Cut(text, "#")
	key, version, _ := strings.Cut(head, "@")
	namespace, name, found := strings.Cut(key, "/")
	if !found {
		namespace, name = "", key
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: strings.TrimRight(version, "!~*")}
	return &object{meta, text}
}

func parseAll(texts []string) []interface{} {
	objects := make([]interface{}, 0, len(texts))
	for _, text := range texts {
		objects = append(objects, parse(text))
	}
	return objects
}

func parseDeltas(texts []string) cache.Deltas {
	deltas := cache.Deltas{}
	for _, text := range texts {
		kind, object, _ := strings.Cut(text, " ")
		deltas = append(deltas, cache.Delta{Type: cache.DeltaType(kind), Object: parse(object)})
	}
	return deltas
}

func show(obj interface{}) string {
	switch obj := obj.(type) {
	case nil:
		return "nil"
	case *object:
		return obj.text
	case keyless:
		return string(obj)
	case cache.DeletedFinalStateUnknown:
		if obj.Obj == nil {
			return "?" + obj.Key
		}
		return "?" + obj.Key + "=" + show(obj.Obj)
	}
	return showInfo(obj)
}

func showDelta(delta cache.Delta) string {
	return string(delta.Type) + " " + show(delta.Object)
}

func showDeltas(deltas []cache.Delta) string {
	texts := make([]string, 0, len(deltas))
	for _, delta := range deltas {
		texts = append(texts, showDelta(delta))
	}
	return strings.Join(texts, ", ")
}

func showAll(objects []interface{}) string {
	texts := make([]string, 0, len(objects))
	for _, obj := range objects {
		texts = append(texts, show(obj))
	}
	return strings.Join(texts, " ")
}

var (
	errTransform = errors.New("the transformer failed")
	errProcess   = errors.New("processing failed")
	errIndex     = errors.New("the index function failed")
)

func kindOf(err error) string {
	var keyError cache.KeyError
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, cache.ErrFIFOClosed):
		return "closed"
	case strings.Contains(err.Error(), errTransform.Error()): // not always wrapped
		return "transform"
	case errors.As(err, &keyError):
		return "key"
	case errors.Is(err, errProcess):
		return "process"
	case errors.Is(err, errIndex):
		return "index"
	}
	return err.Error()
}

// transformer marks objects with "~"; it is called again for what it has marked, and then changes nothing.
type transformer struct {
	calls int
	off   bool
}

func (t *transformer) transform(obj interface{}) (interface{}, error) {
	plain, ok := obj.(*object)
	if !ok {
		return obj, nil
	}
	t.calls++
	head, values, indexed := strings.Cut(plain.text, "#")
	switch {
	case t.off || strings.Contains(head, "~"):
		return obj, nil
	case strings.Contains(head, "!"):
		return nil, errTransform
	case indexed:
		return parse(head + "~#" + values), nil
	}
	return parse(head + "~"), nil
}

// consumer is what is behind a queue: a store, and what handlers are told.
type consumer struct {
	sortedStore
	told []string
	last map[string]interface{}
}

func newConsumer(objects []string) *consumer {
	store := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{})
	c := &consumer{sortedStore: sortedStore{store}, last: map[string]interface{}{}}
	for _, obj := range parseAll(objects) {
		if err := store.Add(obj); err != nil {
			panic(err)
		}
		c.note(obj)
	}
	return c
}

func (c *consumer) note(obj interface{}) {
	key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	c.last[key] = obj
}

func (c *consumer) OnAdd(obj interface{}, isInInitialList bool) {
	c.note(obj)
	c.told = append(c.told, fmt.Sprintf("add%s %s", mark(isInInitialList), show(obj)))
}

func (c *consumer) OnUpdate(old, obj interface{}) {
	c.note(obj)
	c.told = append(c.told, "update "+show(old)+" "+show(obj))
}

// OnDelete also says what was stored of a tombstone that has no state.
func (c *consumer) OnDelete(obj interface{}) {
	key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	text := "delete " + show(obj)
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok && tombstone.Obj == nil && c.last[key] != nil {
		text += " stored " + show(c.last[key])
	}
	delete(c.last, key)
	c.told = append(c.told, text)
}

// tell gives what handlers were told since it was last asked.
func (c *consumer) tell() string {
	told := strings.Join(c.told, ", ")
	c.told = nil
	return told
}

func mark(isInInitialList bool) string {
	if isInInitialList {
		return "*"
	}
	return ""
}

// sortedStore lists its keys and objects in an order that can be compared.
type sortedStore struct{ cache.Indexer }

func (s sortedStore) ListKeys() []string {
	keys := s.Indexer.ListKeys()
	sort.Strings(keys)
	return keys
}

func (s sortedStore) List() []interface{} {
	objects := []interface{}{}
	for _, key := range s.ListKeys() {
		obj, _, _ := s.GetByKey(key)
		objects = append(objects, obj)
	}
	return objects
}

// known is a consumer's store as a queue sees it, which need not be the truth.
type known struct {
	sortedStore
	unreadable map[string]bool
	ghosts     []string
}

func (k known) ListKeys() []string {
	keys := map[string]bool{}
	for _, key := range append(k.sortedStore.ListKeys(), k.ghosts...) {
		keys[key] = true
	}
	sorted := []string{}
	for key := range keys {
		sorted = append(sorted, key)
	}
	sort.Strings(sorted)
	return sorted
}

func (k known) GetByKey(key string) (interface{}, bool, error) {
	if k.unreadable[key] {
		return nil, false, errors.New("unreadable")
	}
	return k.sortedStore.GetByKey(key)
}

package main

import (
	"encoding/json"
	"sync"
)

const firstVersion = 1_000_000_000

// collection is what the server has: objects, each a copy of a template, with the version and time of its last change.
type collection struct {
	templates []template

	mu       sync.Mutex
	versions []uint64
	sent     []int64
	version  uint64 // of the collection
	cursor   int    // how many changes there have been
}

// reset gives the collection so many objects, unchanged.
func (c *collection) reset(objects int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versions, c.sent = make([]uint64, objects), make([]int64, objects)
	for object := range c.versions {
		c.versions[object] = firstVersion + uint64(object)
	}
	c.version, c.cursor = firstVersion+uint64(objects), 0
}

func (c *collection) templateOf(object int) *template { return &c.templates[object%len(c.templates)] }

// change gives the next object in turn a new version. The caller holds mu.
func (c *collection) change(sent int64) (object int, version uint64) {
	object = c.cursor * 7919 % len(c.versions)
	c.cursor++
	c.version++
	c.versions[object], c.sent[object] = c.version, sent
	return object, c.version
}

func mustJSON(value any) []byte {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return encoded
}

type marshaler interface{ Marshal() ([]byte, error) }

func mustMarshal(value marshaler) []byte {
	encoded, err := value.Marshal()
	if err != nil {
		panic(err)
	}
	return encoded
}

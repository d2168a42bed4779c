package main

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"aioinformer.dev/tests/kubernetes/internal/datafile"

	"k8s.io/apimachinery/pkg/runtime"
)

// Kubernetes' defaults are code. They show by what that code does to random objects: a field that is missing and gets the
// same value each time has a default; one that gets a value at times has a condition, which is no data.

const (
	objects = 300 // of a kind, from nearly empty to nearly full
	nothing = ""  // the field stays missing
)

// A place is a field of a kind, or the same field of a type wherever it is.
type place struct{ in, path string }

var (
	// results are the values that a missing field got, by the kind's type and the path from there.
	results = map[place]map[string]bool{}
	// owners have the places of a field of a type.
	owners = map[place]map[place]bool{}
	// defaults that only some kinds have for a field of a type, by the kind's type and the path.
	defaults = map[string]map[string]json.RawMessage{}
	// conditional are fields that get a default at times, by their type and name, with an example.
	conditional = map[string]map[string]json.RawMessage{}
)

// findDefaults adds the defaults to types and defaults, and the others to conditional.
func findDefaults(found []kind) {
	for _, each := range found {
		probe(each)
	}
	for field, places := range owners {
		if types[field.in].Properties[field.path].Format == "time" {
			continue // the time of the request
		}
		if value := valueIn(places); value != nothing {
			types[field.in].Properties[field.path].Default = json.RawMessage(value)
			continue
		}
		for at := range places {
			if value := valueIn(map[place]bool{at: true}); value != nothing {
				datafile.Put(defaults, at.in, at.path, json.RawMessage(value))
			} else if len(results[at]) > 1 {
				example := slices.Max(slices.Collect(maps.Keys(results[at])))
				known := string(conditional[field.in][field.path])
				datafile.Put(conditional, field.in, field.path, json.RawMessage(max(example, known)))
			}
		}
	}
}

// valueIn is the value that a missing field always gets in some places, or nothing.
func valueIn(places map[place]bool) string {
	value := nothing
	for at := range places {
		for result := range results[at] {
			if result == nothing || value != nothing && result != value {
				return nothing
			}
			value = result
		}
	}
	return value
}

func probe(of kind) {
	root := typeOf(of.of)
	for seed := range objects {
		filler := newFiller(uint64(seed), float64(seed)/objects)
		before := reflect.New(of.of)
		filler.fill(before.Elem(), &node{Go: root})
		after := before.Interface().(runtime.Object).DeepCopyObject()
		scheme.Default(after)
		compare(root, nil, before.Elem(), reflect.ValueOf(after).Elem())
	}
}

// compare notes what happened to the missing fields of a struct, and of the structs in it.
func compare(root string, path []string, before, after reflect.Value) {
	owner := typeOf(before.Type())
	for name, index := range fieldsOf(before.Type()) {
		old, changed := before.FieldByIndex(index), after.FieldByIndex(index)
		below := append(slices.Clone(path), name)
		if isMissing(old) {
			at := place{root, strings.Join(below, ".")}
			datafile.Put(results, at, resultOf(changed), true)
			datafile.Put(owners, place{owner, name}, at, true)
		} else {
			compareWithin(root, below, old, changed)
		}
	}
}

func compareWithin(root string, path []string, old, changed reflect.Value) {
	switch {
	case isMissing(changed):
	case old.Kind() == reflect.Pointer:
		compareWithin(root, path, old.Elem(), changed.Elem())
	case isStruct(old.Type()):
		compare(root, path, old, changed)
	case old.Kind() == reflect.Slice && old.Len() == changed.Len():
		for i := range old.Len() {
			compareWithin(root, path, old.Index(i), changed.Index(i))
		}
	case old.Kind() == reflect.Map:
		for _, key := range old.MapKeys() {
			if value := changed.MapIndex(key); value.IsValid() {
				compareWithin(root, path, old.MapIndex(key), value)
			}
		}
	}
}

func isStruct(of reflect.Type) bool {
	_, isSpecial := special[of]
	return of.Kind() == reflect.Struct && !isSpecial
}

func isMissing(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Slice, reflect.Map:
		return value.Len() == 0
	case reflect.Struct:
		return !isStruct(value.Type()) && value.IsZero()
	}
	return value.IsZero()
}

func resultOf(value reflect.Value) string {
	if isMissing(value) {
		return nothing
	}
	return datafile.Encoded(value.Interface())
}

var knownFields = map[reflect.Type]map[string][]int{}

// fieldsOf are the fields in JSON: indexes by name.
func fieldsOf(of reflect.Type) map[string][]int {
	if known := knownFields[of]; known != nil {
		return known
	}
	found := map[string][]int{}
	knownFields[of] = found
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			for inner, index := range fieldsOf(field.Type) {
				found[inner] = append([]int{i}, index...)
			}
		} else if name != "-" {
			found[name] = []int{i}
		}
	}
	return found
}

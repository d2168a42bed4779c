package main

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// words are values of strings: those without enums on which defaults depend, such as an image's tag, and others.
var words = []string{"a", "b:latest", "c:1", "Container", "ServiceAccount", "User"}

// A filler makes random objects.
type filler struct {
	random  *rand.Rand
	density float64 // how likely an optional field is there
	open    map[reflect.Type]bool
}

func newFiller(seed uint64, density float64) filler {
	return filler{rand.New(rand.NewPCG(seed, 0)), density, map[reflect.Type]bool{}}
}

func (f filler) has() bool { return f.random.Float64() < f.density }

// fill sets a value, whose schema is known.
func (f filler) fill(value reflect.Value, schema *node) {
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		f.fill(value.Elem(), schema)
	case reflect.Struct:
		f.fillStruct(value, schema)
	case reflect.Slice:
		if schema.Items == nil {
			value.Set(reflect.ValueOf([]byte("a")).Convert(value.Type()))
			return
		}
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		f.fill(value.Index(0), schema.Items)
	case reflect.Map:
		element := reflect.New(value.Type().Elem()).Elem()
		f.fill(element, schema.Items)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(reflect.ValueOf("a").Convert(value.Type().Key()), element)
	case reflect.String:
		value.SetString(f.word(schema))
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32, reflect.Int64:
		value.SetInt(int64(f.random.IntN(3)) + 1)
	}
}

func (f filler) fillStruct(value reflect.Value, schema *node) {
	switch special := value.Addr().Interface().(type) {
	case *resource.Quantity:
		*special = resource.MustParse("1")
	case *intstr.IntOrString:
		*special = intstr.FromInt32(1)
	}
	if !isStruct(value.Type()) || f.open[value.Type()] {
		return // a type that contains itself
	}
	f.open[value.Type()] = true
	defer delete(f.open, value.Type())
	fields := fieldsOf(value.Type())
	properties := types[typeOf(value.Type())].Properties
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field := value.FieldByIndex(fields[name])
		if isStruct(field.Type()) || f.has() {
			f.fill(field, properties[name])
		}
	}
}

func (f filler) word(schema *node) string {
	if len(schema.Enum) > 0 {
		return schema.Enum[f.random.IntN(len(schema.Enum))].(string)
	}
	return words[f.random.IntN(len(words))]
}

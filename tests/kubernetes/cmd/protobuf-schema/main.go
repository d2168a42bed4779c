// Command protobuf-schema prints what aioinformer/objects/protobuf/schema.json says: of every built-in kind, what the fields
// of its protobuf form are called in JSON, and how server-side apply merges it. The Go types have the former in their tags, the
// OpenAPI definitions the latter.
package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"aioinformer.dev/tests/kubernetes/internal/datafile"
	"aioinformer.dev/tests/kubernetes/internal/gotypes"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

// special are messages whose JSON is no object of their fields.
var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():          "time",
	reflect.TypeFor[metav1.MicroTime]():     "microTime",
	reflect.TypeFor[metav1.FieldsV1]():      "raw",
	reflect.TypeFor[runtime.RawExtension](): "raw",
	reflect.TypeFor[resource.Quantity]():    "quantity",
	reflect.TypeFor[intstr.IntOrString]():   "intOrString",
}

var (
	objectMeta = reflect.TypeFor[metav1.ObjectMeta]()
	unmarshals = reflect.TypeFor[interface{ Unmarshal([]byte) error }]()
	customJSON = reflect.TypeFor[json.Marshaler]()
)

// Kinds by apiVersion, and then by their names: the message of each.
var kinds = map[string]map[string]string{}

// Kinds by apiVersion, and then by what their collections are called in paths.
var resources = map[string]map[string]string{}

// Fields of messages: number, name in JSON ("" for a message whose fields are its parent's), type, and when it is shown.
var messages = map[string][][4]any{}

// Keys of lists, which identify their items, by message and field.
var listKeys = map[string]map[string]any{}

// Messages that server-side apply replaces.
var atomic = map[string]bool{}

var definitions = openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef(path) })

func main() {
	for kind, of := range scheme.Scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal {
			continue
		}
		field, isObject := of.FieldByName("ObjectMeta")
		if !isObject || field.Type != objectMeta || gotypes.IsRemoved(of) {
			continue
		}
		datafile.Put(kinds, kind.GroupVersion().String(), kind.Kind, message(of))
		if scheme.Scheme.Recognizes(kind.GroupVersion().WithKind(kind.Kind + "List")) {
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			datafile.Put(resources, kind.GroupVersion().String(), plural.Resource, kind.Kind)
		}
	}
	datafile.Put(kinds, "v1", "Status", message(reflect.TypeFor[metav1.Status]()))
	datafile.Put(kinds, "v1", "DeleteOptions", message(reflect.TypeFor[metav1.DeleteOptions]()))
	partial := schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}.String()
	datafile.Put(kinds, partial, "PartialObjectMetadata", message(reflect.TypeFor[metav1.PartialObjectMetadata]()))
	datafile.Write(
		datafile.NewTable("kinds", kinds),
		datafile.NewTable("resources", resources),
		datafile.NewTable("messages", messages),
		datafile.NewTable("list_keys", listKeys),
		datafile.NewTable("atomic", atomic),
	)
}

// message notes the fields of a struct; what it is called.
func message(of reflect.Type) string {
	name := gotypes.Name(of)
	if _, known := messages[name]; known {
		return name
	}
	messages[name] = nil // some contain themselves
	definition := definitionOf(of)
	if definition.Extensions["x-kubernetes-map-type"] == "atomic" {
		atomic[name] = true
	}
	fields := [][4]any{}
	for i := range of.NumField() {
		field := of.Field(i)
		tag, encoded := field.Tag.Lookup("protobuf")
		if !encoded || tag == "-" {
			continue // TypeMeta, which the envelope has
		}
		number, err := strconv.Atoi(strings.Split(tag, ",")[1])
		datafile.Must(err)
		jsonName, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if jsonName == "-" {
			continue
		}
		shown := shownWhen(field.Type, strings.Split(options, ","))
		fields = append(fields, [4]any{number, jsonName, typeOf(field.Type), shown})
		if keys, found := definition.Properties[jsonName].Extensions["x-kubernetes-list-map-keys"]; found {
			datafile.Put(listKeys, name, jsonName, keys)
		}
	}
	slices.SortFunc(fields, func(a, b [4]any) int { return a[0].(int) - b[0].(int) })
	messages[name] = fields
	return name
}

// definitionOf is the OpenAPI definition of a struct; empty if it has none.
func definitionOf(of reflect.Type) spec.Schema {
	named, isNamed := reflect.Zero(of).Interface().(interface{ OpenAPIModelName() string })
	if !isNamed {
		return spec.Schema{}
	}
	return definitions[named.OpenAPIModelName()].Schema
}

// shownWhen is when encoding/json shows a field: "set" where it is there and not empty, "there" where it is there,
// "null" likewise and null elsewhere, and "always".
func shownWhen(of reflect.Type, options []string) string {
	omitted := slices.Contains(options, "omitempty")
	switch {
	case of.Kind() == reflect.Pointer && omitted:
		return "there"
	case of.Kind() == reflect.Pointer:
		return "null"
	case slices.Contains(options, "omitzero"):
		return "set"
	case of.Kind() == reflect.Struct || !omitted:
		return "always"
	default:
		return "set"
	}
}

func typeOf(of reflect.Type) string {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if name, found := special[of]; found {
		return name
	}
	if of.Kind() == reflect.Slice && reflect.PointerTo(of).Implements(unmarshals) {
		if of.Elem().Kind() != reflect.String {
			panic(fmt.Sprintf("%s is a message, and no list of strings", of))
		}
		return "strings" // in a message of its own, as a map can have no lists
	}
	if of.Implements(customJSON) || reflect.PointerTo(of).Implements(customJSON) {
		panic(fmt.Sprintf("%s has a JSON of its own, which nobody here knows", of))
	}
	switch of.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32, reflect.Int64:
		return "int"
	case reflect.Struct:
		return message(of)
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + typeOf(of.Elem())
	case reflect.Map:
		if of.Key().Kind() != reflect.String {
			panic(fmt.Sprintf("%s has keys that are no strings", of))
		}
		return "map:" + typeOf(of.Elem())
	}
	panic(fmt.Sprintf("%s is of no known kind", of))
}

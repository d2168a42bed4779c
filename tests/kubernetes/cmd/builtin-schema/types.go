package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"aioinformer.dev/tests/kubernetes/internal/datafile"
	"aioinformer.dev/tests/kubernetes/internal/gotypes"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

// node is what the Python class Node reads. A field with a struct has the struct's name as its Go, which has a slash.
type node struct {
	Type        string           `json:"type,omitempty"`
	Format      string           `json:"format,omitempty"`
	Go          string           `json:"go,omitempty"`
	Properties  map[string]*node `json:"properties,omitempty"`
	Items       *node            `json:"items,omitempty"`
	Default     json.RawMessage  `json:"default,omitempty"`
	Zero        json.RawMessage  `json:"zero,omitempty"`
	Required    []string         `json:"required,omitempty"`
	Enum        []any            `json:"enum,omitempty"`
	ListType    string           `json:"list_type,omitempty"`
	ListKeys    []any            `json:"list_keys,omitempty"`
	MergeKey    string           `json:"merge_key,omitempty"`
	Merges      bool             `json:"merges,omitempty"`
	RetainsKeys bool             `json:"retains_keys,omitempty"`
	Preserves   bool             `json:"preserves_unknown,omitempty"`
	Nullable    bool             `json:"nullable,omitempty"`
	IsEmbedded  bool             `json:"is_embedded,omitempty"`
	Within      string           `json:"within,omitempty"`
	Rules       map[string]any   `json:"rules,omitempty"`
}

// special are types with a JSON of their own: type and format.
var special = map[reflect.Type][2]string{
	reflect.TypeFor[metav1.Time]():                                  {"string", "time"},
	reflect.TypeFor[metav1.MicroTime]():                             {"string", "microTime"},
	reflect.TypeFor[resource.Quantity]():                            {"string", "quantity"},
	reflect.TypeFor[intstr.IntOrString]():                           {"", "int-or-string"},
	reflect.TypeFor[metav1.FieldsV1]():                              {},
	reflect.TypeFor[runtime.RawExtension]():                         {},
	reflect.TypeFor[apiextensionsv1.JSON]():                         {},
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       {},
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        {},
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): {},
}

var (
	typeMeta   = reflect.TypeFor[metav1.TypeMeta]()
	marshaler  = reflect.TypeFor[json.Marshaler]()
	modelNamed = reflect.TypeFor[interface{ OpenAPIModelName() string }]()
)

// types by their names, with the fields of embedded structs among their own.
var types = map[string]*node{}

var typeNames = map[reflect.Type]string{}

var definitions = openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef(path) })

// typeOf adds a struct type, and returns its name.
func typeOf(of reflect.Type) string {
	if name, known := typeNames[of]; known {
		return name
	}
	name := gotypes.Name(of)
	typeNames[of] = name
	made := &node{Type: "object", Properties: map[string]*node{}}
	types[name] = made // some contain themselves
	definition := definitionOf(of)
	made.Required = definition.Schema.Required
	made.Rules = rulesOf(definition.Schema)
	addFields(made, of, "", definition.Schema.Properties)
	return name
}

func definitionOf(of reflect.Type) common.OpenAPIDefinition {
	if !of.Implements(modelNamed) {
		panic(fmt.Sprintf("%s has no OpenAPI definition", of))
	}
	name := reflect.Zero(of).Interface().(interface{ OpenAPIModelName() string }).OpenAPIModelName()
	found, known := definitions[name]
	if !known {
		panic(fmt.Sprintf("%s has no OpenAPI definition", name))
	}
	return found
}

// addFields adds the fields of a struct, and of those embedded in it; within are the names of the latter.
func addFields(made *node, of reflect.Type, within string, properties map[string]spec.Schema) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case field.Anonymous && name == "":
			made.IsEmbedded = made.IsEmbedded || field.Type == typeMeta
			addFields(made, field.Type, within+field.Name+".", properties)
		default:
			added := fieldOf(field, strings.Split(options, ","), properties[name])
			added.Within = strings.TrimSuffix(within, ".")
			made.Properties[name] = added
		}
	}
}

func fieldOf(field reflect.StructField, options []string, schema spec.Schema) *node {
	made := valueOf(field.Type, schema)
	if !slices.Contains(options, "omitzero") && !(slices.Contains(options, "omitempty") && canBeEmpty(field.Type)) {
		made.Zero = zeroOf(field.Type)
	}
	strategies := strings.Split(field.Tag.Get("patchStrategy"), ",")
	made.Merges = slices.Contains(strategies, "merge")
	made.RetainsKeys = slices.Contains(strategies, "retainKeys")
	made.MergeKey = field.Tag.Get("patchMergeKey")
	return made
}

// canBeEmpty says whether omitempty omits a zero value: structs are never empty.
func canBeEmpty(of reflect.Type) bool { return of.Kind() != reflect.Struct }

// zeroOf is the JSON of a zero value; the fields of a struct have their own.
func zeroOf(of reflect.Type) json.RawMessage {
	if _, isSpecial := special[of]; of.Kind() == reflect.Struct && !isSpecial {
		return json.RawMessage("{}")
	}
	return json.RawMessage(datafile.Encoded(reflect.Zero(of).Interface()))
}

// valueOf is a field, an item of a list or a value of a map.
func valueOf(of reflect.Type, schema spec.Schema) *node {
	made := &node{Enum: schema.Enum, Rules: rulesOf(schema)}
	made.ListType, _ = schema.Extensions.GetString("x-kubernetes-list-type")
	made.ListKeys, _ = schema.Extensions["x-kubernetes-list-map-keys"].([]any)
	if of.Kind() == reflect.Pointer {
		of, made.Nullable = of.Elem(), true
	}
	if known, isSpecial := special[of]; isSpecial {
		made.Type, made.Format, made.Go = known[0], known[1], of.String()
		made.Preserves = known[0] == "" && known[1] == ""
		return made
	}
	if of.Implements(marshaler) || reflect.PointerTo(of).Implements(marshaler) {
		panic(fmt.Sprintf("%s has a JSON of its own, which this command does not know", of))
	}
	switch of.Kind() {
	case reflect.String:
		made.Type = "string"
	case reflect.Bool:
		made.Type = "boolean"
	case reflect.Int32, reflect.Int64:
		made.Type, made.Format = "integer", of.Kind().String()
	case reflect.Float64:
		made.Type, made.Format = "number", "double"
	case reflect.Struct:
		made.Go = typeOf(of)
		return made
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			made.Type, made.Format = "string", "byte"
			break
		}
		made.Type, made.Items = "array", valueOf(of.Elem(), itemsOf(schema))
	case reflect.Map:
		made.Type, made.Items = "object", valueOf(of.Elem(), valuesOf(schema))
	default:
		panic(fmt.Sprintf("%s is of no known kind", of))
	}
	if of.Name() != "" && of.PkgPath() != "" || of.Kind() == reflect.Map && of.Key().PkgPath() != "" {
		made.Go = of.String() // the loader knows the others
	}
	return made
}

func itemsOf(schema spec.Schema) spec.Schema {
	if schema.Items == nil || schema.Items.Schema == nil {
		return spec.Schema{}
	}
	return *schema.Items.Schema
}

func valuesOf(schema spec.Schema) spec.Schema {
	if schema.AdditionalProperties == nil || schema.AdditionalProperties.Schema == nil {
		return spec.Schema{}
	}
	return *schema.AdditionalProperties.Schema
}

func rulesOf(schema spec.Schema) map[string]any {
	rules := map[string]any{}
	for _, name := range []string{"x-kubernetes-map-type", "x-kubernetes-unions"} {
		if value, found := schema.Extensions[name]; found {
			rules[name] = value
		}
	}
	return rules
}

package main

import (
	"fmt"
	"sort"
	"strings"

	"k8s.io/client-go/tools/cache"
)

// runStore runs a script through an Indexer.
func runStore(s script) []string {
	lines := []string{}
	indexers := cache.Indexers{}
	for _, name := range s.Indexes {
		indexers[name] = indexFunc(name)
	}
	store := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, indexers)
	for _, op := range s.Ops {
		lines = append(lines, doStore(store, op)+" | "+showStore(store))
	}
	return lines
}

// indexFunc is an index of a name: "namespace"; else what objects say for it, "#a,b" for the index "values" and the
// first letters of those for any other.
func indexFunc(name string) cache.IndexFunc {
	if name == cache.NamespaceIndex {
		return cache.MetaNamespaceIndexFunc
	}
	return func(obj interface{}) ([]string, error) {
		plain, ok := obj.(*object)
		if !ok {
			return nil, errIndex
		}
		_, listed, indexed := strings.Cut(plain.text, "#")
		if !indexed {
			return nil, nil
		}
		values := strings.Split(listed, ",")
		if name != "values" {
			for i, value := range values {
				values[i] = value[:1]
			}
		}
		return values, nil
	}
}

func doStore(store cache.Indexer, op []string) string {
	args := op[1:]
	switch op[0] {
	case "add":
		return kindOf(store.Add(parse(args[0])))
	case "update":
		return kindOf(store.Update(parse(args[0])))
	case "delete":
		return kindOf(store.Delete(parse(args[0])))
	case "replace":
		return kindOf(store.Replace(parseAll(args[1:]), args[0]))
	case "bookmark":
		store.Bookmark(args[0])
		return "ok"
	case "resync":
		return kindOf(store.Resync())
	case "get":
		obj, _, err := store.Get(parse(args[0]))
		return kindOf(err) + " " + show(obj)
	case "get-by-key":
		obj, _, err := store.GetByKey(args[0])
		return kindOf(err) + " " + show(obj)
	case "index":
		return found(store.Index(args[0], parse(args[1])))
	case "by-index":
		return found(store.ByIndex(args[0], args[1]))
	case "index-keys":
		keys, err := store.IndexKeys(args[0], args[1])
		if err != nil {
			return indexError(err)
		}
		return "ok " + strings.Join(keys, " ")
	case "list-index-func-values":
		values := store.ListIndexFuncValues(args[0])
		sort.Strings(values)
		return "ok " + strings.Join(values, " ")
	case "add-indexers":
		indexers := cache.Indexers{}
		for _, name := range args {
			indexers[name] = indexFunc(name)
		}
		if err := store.AddIndexers(indexers); err != nil {
			return indexError(err)
		}
		return "ok"
	}
	panic("no such operation: " + op[0])
}

func found(objects []interface{}, err error) string {
	if err != nil {
		return indexError(err)
	}
	texts := []string{}
	for _, obj := range objects {
		texts = append(texts, show(obj))
	}
	sort.Strings(texts)
	return "ok " + strings.Join(texts, " ")
}

func indexError(err error) string {
	switch {
	case strings.HasPrefix(err.Error(), "Index with name"):
		return "unknown"
	case strings.HasPrefix(err.Error(), "indexer conflict"):
		return "conflict"
	}
	return kindOf(err)
}

// showStore shows all that can be asked of a store.
func showStore(store cache.Indexer) string {
	parts := []string{showAll(sortedStore{store}.List()), store.LastStoreSyncResourceVersion()}
	names := []string{}
	for name := range store.GetIndexers() {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		values := store.ListIndexFuncValues(name)
		sort.Strings(values)
		listed := []string{}
		for _, value := range values {
			keys, err := store.IndexKeys(name, value)
			if err != nil {
				panic(err)
			}
			listed = append(listed, fmt.Sprintf("%q: %s", value, strings.Join(keys, " ")))
		}
		parts = append(parts, name+" {"+strings.Join(listed, "; ")+"}")
	}
	return strings.Join(parts, " | ")
}

package main

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// showInfo shows what stands for an object in a delta that is about more than one.
func showInfo(obj interface{}) string {
	switch obj := obj.(type) {
	case cache.ReplacedAllInfo:
		return obj.ResourceVersion + "[" + showAll(obj.Objects) + "]"
	case cache.BookmarkInfo:
		return obj.ResourceVersion
	case cache.SyncAllInfo:
		return "all"
	}
	return fmt.Sprintf("%T", obj)
}

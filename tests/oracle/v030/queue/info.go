package main

import "fmt"

// showInfo shows what stands for an object in a delta that is about more than one: there is none yet.
func showInfo(obj interface{}) string {
	return fmt.Sprintf("%T", obj)
}

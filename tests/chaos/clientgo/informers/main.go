// Command informers runs informers of client-go and says on standard output, a JSON object a line, what their
// handlers are told, every request that is made, and on the word "dump" on standard input what the caches hold.
//
//	informers KUBECONFIG NAMESPACE VERSION/PLURAL...
//
// It ends when standard input is closed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

type line struct {
	Resource string                       `json:"resource,omitempty"`
	Kind     string                       `json:"kind,omitempty"`
	Key      string                       `json:"key,omitempty"`
	Version  string                       `json:"version,omitempty"`
	Request  string                       `json:"request,omitempty"`
	Status   int                          `json:"status,omitempty"`
	Caches   map[string]map[string]string `json:"caches,omitempty"`
}

type output struct {
	lock    sync.Mutex
	encoder *json.Encoder
}

func (o *output) say(said line) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if err := o.encoder.Encode(said); err != nil {
		os.Exit(1) // nobody listens any more
	}
}

// counted says every request, also those that did not reach the server: 0 is their status.
type counted struct {
	next http.RoundTripper
	out  *output
}

func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	status := 0
	if err == nil {
		status = response.StatusCode
	}
	c.out.say(line{Request: request.Method + " " + request.URL.RequestURI(), Status: status})
	return response, err
}

func handler(resource string, out *output) cache.ResourceEventHandler {
	say := func(kind string, obj any) {
		object := obj.(*unstructured.Unstructured)
		key := object.GetNamespace() + "/" + object.GetName()
		out.say(line{Resource: resource, Kind: kind, Key: key, Version: object.GetResourceVersion()})
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { say("add", obj) },
		UpdateFunc: func(_, obj any) { say("update", obj) },
		DeleteFunc: func(obj any) {
			if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				out.say(line{Resource: resource, Kind: "missed", Key: missed.Key})
				return
			}
			say("delete", obj)
		},
	}
}

func parse(word string) schema.GroupVersionResource {
	parts := strings.Split(word, "/")
	if len(parts) == 2 {
		return schema.GroupVersionResource{Version: parts[0], Resource: parts[1]}
	}
	return schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
}

func contents(stores map[string]cache.Store) map[string]map[string]string {
	caches := map[string]map[string]string{}
	for resource, store := range stores {
		caches[resource] = map[string]string{}
		for _, obj := range store.List() {
			object := obj.(*unstructured.Unstructured)
			caches[resource][object.GetNamespace()+"/"+object.GetName()] = object.GetResourceVersion()
		}
	}
	return caches
}

func run(kubeconfig, namespace string, resources []string) error {
	out := &output{encoder: json.NewEncoder(os.Stdout)}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, out} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	stores := map[string]cache.Store{}
	for _, word := range resources {
		resource := parse(word)
		informer := factory.ForResource(resource).Informer()
		if _, err := informer.AddEventHandler(handler(resource.Resource, out)); err != nil {
			return err
		}
		stores[resource.Resource] = informer.GetStore()
	}
	ctx, stop := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	for words := bufio.NewScanner(os.Stdin); words.Scan(); {
		if words.Text() == "dump" {
			out.say(line{Caches: contents(stores)})
		}
	}
	stop()
	factory.Shutdown()
	return nil
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		panic(err)
	}
}

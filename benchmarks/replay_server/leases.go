package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

var leaseResource = coordinationv1.Resource("leases")

// leases are the Leases of replicas, in memory and as JSON: enough for elections and for tables of owners.
type leases struct {
	http.ServeMux

	mu      sync.Mutex
	items   map[string]*coordinationv1.Lease
	version uint64
}

func newLeases() *leases {
	l := &leases{items: map[string]*coordinationv1.Lease{}}
	l.answer("GET "+leasesPath, l.list)
	l.answer("POST "+leasesPath, l.create)
	l.answer("GET "+leasesPath+"/{name}", l.get)
	l.answer("PUT "+leasesPath+"/{name}", l.update)
	l.answer("DELETE "+leasesPath+"/{name}", l.delete)
	return l
}

// reset deletes all Leases.
func (l *leases) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.items)
}

// answer calls a function for a request, one at a time, and writes what it returns.
func (l *leases) answer(pattern string, call func(*http.Request) (any, error)) {
	l.HandleFunc(pattern, func(response http.ResponseWriter, request *http.Request) {
		l.mu.Lock()
		value, err := call(request)
		encoded := mustJSON(value)
		l.mu.Unlock()
		response.Header().Set("Content-Type", "application/json")
		if err != nil {
			status := apierrors.NewBadRequest(err.Error())
			_ = errors.As(err, &status)
			response.WriteHeader(int(status.ErrStatus.Code))
			encoded = mustJSON(status.ErrStatus)
		}
		_, _ = response.Write(encoded)
	})
}

func (l *leases) list(request *http.Request) (any, error) {
	selector, err := labels.Parse(request.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	list := coordinationv1.LeaseList{
		TypeMeta: metav1.TypeMeta{Kind: "LeaseList", APIVersion: "coordination.k8s.io/v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(l.version)},
		Items:    []coordinationv1.Lease{},
	}
	for _, lease := range l.items {
		if lease.Namespace == request.PathValue("namespace") && selector.Matches(labels.Set(lease.Labels)) {
			list.Items = append(list.Items, *lease)
		}
	}
	return list, nil
}

func (l *leases) create(request *http.Request) (any, error) {
	lease, err := leaseOf(request)
	if err != nil {
		return nil, err
	}
	lease.Namespace = request.PathValue("namespace")
	if _, exists := l.items[keyOf(lease.Namespace, lease.Name)]; exists {
		return nil, apierrors.NewAlreadyExists(leaseResource, lease.Name)
	}
	lease.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", l.version+1))
	return l.keep(lease), nil
}

func (l *leases) get(request *http.Request) (any, error) {
	name := request.PathValue("name")
	lease := l.items[keyOf(request.PathValue("namespace"), name)]
	if lease == nil {
		return nil, apierrors.NewNotFound(leaseResource, name)
	}
	return lease, nil
}

func (l *leases) update(request *http.Request) (any, error) {
	if _, err := l.get(request); err != nil {
		return nil, err
	}
	lease, err := leaseOf(request)
	if err != nil {
		return nil, err
	}
	former := l.items[keyOf(request.PathValue("namespace"), request.PathValue("name"))]
	if err := requireVersion(former, lease.ResourceVersion); err != nil {
		return nil, err
	}
	lease.Name, lease.Namespace, lease.UID = former.Name, former.Namespace, former.UID
	return l.keep(lease), nil
}

func (l *leases) delete(request *http.Request) (any, error) {
	if _, err := l.get(request); err != nil {
		return nil, err
	}
	var options metav1.DeleteOptions
	if request.ContentLength != 0 {
		if err := json.NewDecoder(request.Body).Decode(&options); err != nil {
			return nil, err
		}
	}
	key := keyOf(request.PathValue("namespace"), request.PathValue("name"))
	if wanted := options.Preconditions; wanted != nil && wanted.ResourceVersion != nil {
		if err := requireVersion(l.items[key], *wanted.ResourceVersion); err != nil {
			return nil, err
		}
	}
	delete(l.items, key)
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}, nil
}

func (l *leases) keep(lease *coordinationv1.Lease) *coordinationv1.Lease {
	l.version++
	lease.ResourceVersion = fmt.Sprint(l.version)
	lease.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
	l.items[keyOf(lease.Namespace, lease.Name)] = lease
	return lease
}

func keyOf(namespace, name string) string { return namespace + "/" + name }

func leaseOf(request *http.Request) (*coordinationv1.Lease, error) {
	lease := new(coordinationv1.Lease)
	return lease, json.NewDecoder(request.Body).Decode(lease)
}

// requireVersion returns a conflict unless the Lease has this version; "" is any.
func requireVersion(lease *coordinationv1.Lease, version string) error {
	if version == "" || version == lease.ResourceVersion {
		return nil
	}
	return apierrors.NewConflict(leaseResource, lease.Name, fmt.Errorf("it has the version %s, not %s", lease.ResourceVersion, version))
}

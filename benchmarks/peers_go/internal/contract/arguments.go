// Package contract is what every client of the benchmarks does: see ../../../CONTRACT.md.
package contract

import (
	"flag"
	"fmt"
	"os"
	"path"
	"runtime"
	"runtime/debug"

	"k8s.io/client-go/rest"
)

// Arguments are those that concern a client in Go.
type Arguments struct {
	Server, CA, Encoding, Initial, Handler, Failures string

	Objects, Handlers, Informers int
}

// Parse reads the command line; what does not concern a client in Go is accepted and forgotten.
func Parse() Arguments {
	var given Arguments
	flag.StringVar(&given.Server, "server", "", "URL")
	flag.StringVar(&given.CA, "ca", "", "PEM file to verify the server with")
	flag.StringVar(&given.Encoding, "encoding", "json", "json or protobuf")
	flag.StringVar(&given.Initial, "initial", "list", "list or watchlist")
	flag.StringVar(&given.Handler, "handler", "metadata", "metadata, field or whole")
	flag.StringVar(&given.Failures, "failures", "none", "none, logged or events")
	flag.IntVar(&given.Objects, "objects", 0, "pods in the beginning")
	flag.IntVar(&given.Handlers, "handlers", 1, "handlers of each informer")
	flag.IntVar(&given.Informers, "informers", 1, "1: all namespaces")
	for _, other := range []string{"form", "loop", "probe"} {
		flag.String(other, "", "does not concern this client")
	}
	flag.Parse()
	// Feature gates of client-go are read once, when something first asks for one.
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", fmt.Sprint(given.Initial == "watchlist")); err != nil {
		Fail(err)
	}
	return given
}

// Config is how to reach the server: without client-go's own limit of five requests a second, which pages of a list would meet.
func (a Arguments) Config() *rest.Config {
	config := &rest.Config{Host: a.Server, QPS: -1}
	config.CAFile = a.CA
	if a.Encoding == "protobuf" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	} else {
		config.ContentType = "application/json"
	}
	return config
}

// Version is what a client of a module calls itself.
func Version(module string) string {
	version := "unknown"
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range build.Deps {
			if dependency.Path == module {
				version = dependency.Version
			}
		}
	}
	return fmt.Sprintf("%s %s, %s", path.Base(module), version, runtime.Version())
}

// Unsupported ends a client that has nothing to do in a scenario.
func Unsupported(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(3)
}

// Fail ends a client that cannot go on.
func Fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

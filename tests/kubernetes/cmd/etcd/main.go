// Command etcd is where the API server keeps its objects.
package main

import (
	"os"

	"aioinformer.dev/tests/kubernetes/internal/leash"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	leash.Hold()
	etcdmain.Main(os.Args)
}

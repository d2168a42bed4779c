package informer

import (
	"time"
	_ "unsafe" // for go:linkname
)

// A reflector that does not resync waits on this channel, which no bubble made: its wait is not one that a bubble
// knows for one, and the bubble's time stands still. On nil it waits as long. client-go 0.36 has nil there itself.
//
//go:linkname neverExitWatch k8s.io/client-go/tools/cache.neverExitWatch
var neverExitWatch <-chan time.Time

// client-go 0.30 holds the queue, which says whether it is synced, while it stores.
const mayAskWhileStoring = false

func init() {
	neverExitWatch = nil
}

package contract

import (
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var started = time.Now()
var monotonicThen = func() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		Fail(err)
	}
	return now.Nano()
}()

// Monotonic is CLOCK_MONOTONIC in nanoseconds, read as Go reads it, which is without a system call.
func Monotonic() int64 { return monotonicThen + int64(time.Since(started)) }

// CPU is the seconds of user and system time that this process has had.
func CPU() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		Fail(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// Settle collects garbage and gives free memory back: twice, as finalizers and pools let go in the second round only.
func Settle() {
	debug.FreeOSMemory()
	debug.FreeOSMemory()
}

// Latency is in microseconds.
type Latency struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// Percentiles are by nearest rank; it sorts the nanoseconds that it is given.
func Percentiles(nanoseconds []int64) *Latency {
	slices.Sort(nanoseconds)
	count := len(nanoseconds)
	if count == 0 {
		return &Latency{}
	}
	at := func(thousandth int) float64 {
		rank := (count*thousandth + 999) / 1000
		return float64(nanoseconds[max(rank, 1)-1]) / 1e3
	}
	return &Latency{Count: count, P50: at(500), P90: at(900), P99: at(990), P999: at(999), Max: at(1000)}
}

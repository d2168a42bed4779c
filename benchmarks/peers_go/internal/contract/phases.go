package contract

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const annotation = "benchmark.example.com/sent"

// Subject is what is measured.
type Subject interface {
	// Start begins to inform; each object that a handler is told of goes to Tally.
	Start()
	// WaitSynced returns once everything has synced.
	WaitSynced()
	// Reads returns one of each kind of read, to be timed: "get", "index" and "label"; nil if there is no cache.
	Reads() map[string]func()
}

type phase struct {
	expected  int64
	told      atomic.Int64
	stamped   bool
	latencies []int64
	over      chan struct{}
	cpu       float64
	ended     int64
}

var current atomic.Pointer[phase]

// failing is whether every reconcile fails, from the first phase of failures on.
var failing atomic.Bool

// Failing reports whether a reconcile must fail.
func Failing() bool { return failing.Load() }

func begin(expected int, stamped bool) *phase {
	next := &phase{expected: int64(expected), stamped: stamped, over: make(chan struct{})}
	if stamped {
		next.latencies = make([]int64, expected)
	}
	if expected == 0 {
		close(next.over)
	}
	current.Store(next)
	return next
}

// Entered is to be called first of all in a handler: whether the call is one of a stamped phase, and the clock.
func Entered() int64 {
	if current.Load().stamped {
		return Monotonic()
	}
	return 0
}

// Told counts a handler's call, last of all; entered is what Entered gave.
func Told(entered int64, annotations map[string]string) {
	now := current.Load()
	told := now.told.Add(1)
	if told > now.expected {
		return
	}
	if now.stamped {
		sent, err := strconv.ParseInt(annotations[annotation], 10, 64)
		if err != nil {
			Fail(err)
		}
		now.latencies[told-1] = entered - sent
	}
	if told == now.expected {
		now.ended, now.cpu = Monotonic(), CPU()
		close(now.over)
	}
}

type answer struct {
	Phase   string              `json:"phase"`
	Version string              `json:"version,omitempty"`
	Wall    float64             `json:"wall,omitempty"`
	CPU     float64             `json:"cpu,omitempty"`
	Ended   int64               `json:"ended,omitempty"`
	Latency *Latency            `json:"latency_us,omitempty"`
	Reads   map[string]*Latency `json:"read_us,omitempty"`
}

func say(said answer) {
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		Fail(err)
	}
}

// Serve goes through the phases as standard input tells. The subject is set up and has asked for /version already.
func Serve(version string, given Arguments, subject Subject) {
	current.Store(&phase{}) // so that a handler that is told of something before its time finds one
	Settle()
	say(answer{Phase: "ready", Version: version})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		cpu, began := CPU(), Monotonic()
		switch words[0] {
		case "sync":
			syncing := begin(given.Objects*given.Handlers, false)
			subject.Start()
			<-syncing.over
			subject.WaitSynced()
			said := answer{Phase: "synced", CPU: CPU() - cpu, Wall: float64(Monotonic()-began) / 1e9}
			Settle()
			say(said)
		case "watch":
			expected := number(words[1]) * given.Handlers
			watching := begin(expected, words[2] == "stamped")
			say(answer{Phase: "watching"})
			<-watching.over
			said := answer{Phase: "watched", CPU: watching.cpu - cpu, Ended: watching.ended}
			if watching.stamped {
				said.Latency = Percentiles(watching.latencies)
			}
			say(said)
		case "fail":
			failing.Store(true)
			Settle()
			cpu = CPU()
			counting := begin(number(words[1])*given.Handlers, false)
			say(answer{Phase: "watching"})
			<-counting.over
			Settle()
			say(answer{Phase: "watched", CPU: counting.cpu - cpu, Ended: counting.ended})
		case "reads":
			begin(0, false)
			say(answer{Phase: "watching"})
			times := read(subject.Reads(), number(words[1]))
			say(answer{Phase: "watched", CPU: CPU() - cpu, Ended: Monotonic(), Reads: times})
		case "exit":
			return
		}
	}
}

func number(word string) int {
	parsed, err := strconv.Atoi(word)
	if err != nil {
		Fail(err)
	}
	return parsed
}

// read does each of the reads ten times a second.
func read(reads map[string]func(), seconds int) map[string]*Latency {
	if reads == nil {
		Unsupported("it has no cache that could be read")
	}
	taken := map[string][]int64{}
	ticks := time.NewTicker(time.Second / 10)
	defer ticks.Stop()
	for range seconds * 10 {
		<-ticks.C
		for kind, do := range reads {
			began := Monotonic()
			do()
			taken[kind] = append(taken[kind], Monotonic()-began)
		}
	}
	said := map[string]*Latency{}
	for kind, nanoseconds := range taken {
		said[kind] = Percentiles(nanoseconds)
	}
	return said
}

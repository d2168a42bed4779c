package main

import (
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// flowed says how changes were sent.
type flowed struct {
	Events int   `json:"events"`
	First  int64 `json:"first"` // CLOCK_MONOTONIC in nanoseconds when the first was sent
	Last   int64 `json:"last"`
	// LateUs is by how much the last one was sent later than the rate says: that of a client that cannot follow grows.
	LateUs float64 `json:"late_us"`
}

func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return now.Nano()
}

// flow sends changes to the watchers.
//
// events is how many; rate is how many a second, evenly, or 0 for as fast as the clients take them; watchers is for how
// many watches to wait before. It ends early when seconds have passed, if that is not 0.
func (s *server) flow(events int, rate float64, watchers int, seconds float64) (done flowed, err error) {
	s.flowing.Lock()
	defer s.flowing.Unlock()
	taking, err := s.waitForWatchers(watchers)
	if err != nil {
		return done, err
	}
	runtime.LockOSThread() // the kernel's timer, not the scheduler's: that one is a millisecond late
	defer runtime.UnlockOSThread()
	start := monotonic()
	for ; done.Events < events; done.Events++ {
		if rate > 0 {
			due := start + int64(float64(done.Events)/rate*1e9)
			sleepUntil(due)
			done.LateUs = float64(monotonic()-due) / 1e3
		}
		now := monotonic()
		if seconds > 0 && float64(now-start) > seconds*1e9 {
			break
		}
		if done.Events == 0 {
			done.First = now
		}
		done.Last = now
		if s.sendChange(taking, now, rate > 0) == 0 {
			return done, errors.New("no client watches a changed object")
		}
	}
	for _, w := range taking {
		if len(w.out) > 0 {
			w.flush()
		}
	}
	return done, nil
}

// sendChange sends the next change to those whom it concerns, and gives how many those are.
func (s *server) sendChange(taking []*watcher, now int64, atOnce bool) (told int) {
	c := s.collection
	c.mu.Lock()
	object, version := c.change(now)
	c.mu.Unlock()
	t := c.templateOf(object)
	for _, w := range taking {
		if !w.selected.has(object, t) {
			continue
		}
		select {
		case <-w.closed:
			continue
		default:
		}
		told++
		w.add("MODIFIED", t, object, version, now)
		if atOnce || len(w.out) >= flushSize {
			w.flush()
		}
	}
	return told
}

func sleepUntil(due int64) {
	until := unix.NsecToTimespec(due)
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil) == unix.EINTR {
	}
}

const patience = 60 * time.Second

// waitForWatchers waits until there are so many watches, and gives them.
func (s *server) waitForWatchers(wanted int) ([]*watcher, error) {
	deadline := time.Now().Add(patience)
	for {
		s.mu.Lock()
		taking := make([]*watcher, 0, len(s.watchers))
		for w := range s.watchers {
			taking = append(taking, w)
		}
		s.mu.Unlock()
		if len(taking) >= wanted {
			return taking, nil
		}
		if time.Now().After(deadline) {
			return nil, errors.New("the client does not watch")
		}
		time.Sleep(time.Millisecond)
	}
}

// expire ends all watches with 410 Gone, so that the clients list anew.
func (s *server) expire() {
	s.flowing.Lock()
	defer s.flowing.Unlock()
	taking, _ := s.waitForWatchers(0)
	for _, w := range taking {
		s.removeWatcher(w)
		w.addWhole(w.encoding.expired())
		w.end()
	}
}

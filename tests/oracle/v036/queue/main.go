// Runs scripts of operations through client-go's RealFIFO, DeltaFIFO and indexer: a script a line on standard
// input, its trace a line on standard output. See ../../README.md.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// What queue_generator.py and store_generator.py make; they say what the fields mean.
type script struct {
	Store      bool       `json:"store"`
	Delta      bool       `json:"delta"`
	Replaced   bool       `json:"replaced"`
	Transform  bool       `json:"transform"`
	Known      *[]string  `json:"known"`
	Unreadable []string   `json:"unreadable"`
	Ghosts     []string   `json:"ghosts"`
	Atomic     bool       `json:"atomic"`
	Bookmarks  bool       `json:"bookmarks"`
	Unlock     bool       `json:"unlock"`
	BatchSize  int        `json:"batch_size"`
	Indexes    []string   `json:"indexes"`
	Ops        [][]string `json:"ops"`
}

func trace(line []byte) (lines []string) {
	var s script
	if err := json.Unmarshal(line, &s); err != nil {
		panic(err)
	}
	defer func() {
		if reason := recover(); reason != nil {
			lines = append(lines, fmt.Sprintf("panic: %v", reason))
		}
	}()
	if s.Store {
		lines = runStore(s)
	} else {
		lines = runQueue(s)
	}
	return lines
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	utilruntime.ErrorHandlers = nil // they wait
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		if err := encoder.Encode(trace(line)); err != nil {
			panic(err)
		}
		if err := output.Flush(); err != nil {
			panic(err)
		}
	}
}

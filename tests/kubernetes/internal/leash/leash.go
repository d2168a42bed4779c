// Package leash ends a server together with the process that started it, however that one ends.
package leash

import (
	"io"
	"os"
)

// Variable is set by a parent that holds the other end of this process's standard input.
const Variable = "AIOINFORMER_LEASH"

// Hold exits the process once standard input is closed, if the parent asked for that.
func Hold() {
	if os.Getenv(Variable) == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}

// Package datafile prints the data files that the commands make.
package datafile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"aioinformer.dev/tests/kubernetes/internal/gotypes"
)

// A Table is a member of the file's object.
type Table struct {
	name  string
	lines map[string]string
}

// NewTable is a table that the file has under a name.
func NewTable[T any](name string, entries map[string]T) Table {
	lines := map[string]string{}
	for key, value := range entries {
		lines[key] = Encoded(value)
	}
	return Table{name, lines}
}

// Put adds a value to a table of tables.
func Put[K, L comparable, V any](table map[K]map[L]V, first K, second L, value V) {
	if table[first] == nil {
		table[first] = map[L]V{}
	}
	table[first][second] = value
}

// Write prints the tables, a line an entry, so that one sees what a new version of Kubernetes brings.
func Write(tables ...Table) {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	fmt.Fprintf(out, "{\n\"version\": %s", Encoded(gotypes.Version()))
	for _, table := range tables {
		fmt.Fprintf(out, ",\n%s: {", Encoded(table.name))
		comma := ""
		for _, key := range slices.Sorted(maps.Keys(table.lines)) {
			fmt.Fprintf(out, "%s\n  %s: %s", comma, Encoded(key), table.lines[key])
			comma = ","
		}
		fmt.Fprint(out, "\n}")
	}
	fmt.Fprintln(out, "\n}")
}

// Encoded is a value as JSON.
func Encoded(value any) string {
	out, err := json.Marshal(value)
	Must(err)
	return string(out)
}

// Must ends the command if something failed.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

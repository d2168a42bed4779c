package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
)

// What a template has in the place of what differs between its copies, as benchmarks/pods.py writes it.
const (
	nameMark    = "QQQQQ"
	uidMark     = "ffffffff-ffff-4fff-8fff-ffffffffffff"
	versionMark = "9999999999"
	sentMark    = "0000000000000000000"
)

// form is a template in one encoding, and where in it to write.
type form struct {
	bytes                    []byte
	name, uid, version, sent int
}

// template is a pod without an identity.
type template struct {
	namespace string
	json      form // an item of a list: no kind, no apiVersion
	protobuf  form // the message Pod
}

func newForm(encoded []byte) (form, error) {
	made := form{bytes: encoded}
	for mark, at := range map[string]*int{nameMark: &made.name, uidMark: &made.uid, versionMark: &made.version, sentMark: &made.sent} {
		if *at = bytes.Index(encoded, []byte(mark)); *at < 0 || bytes.Count(encoded, []byte(mark)) != 1 {
			return made, fmt.Errorf("%q is not once in %.200q", mark, encoded)
		}
	}
	return made, nil
}

// appendTo appends the template as that object at that version.
func (f *form) appendTo(out []byte, object int, version uint64, sent int64) []byte {
	start := len(out)
	out = append(out, f.bytes...)
	copied := out[start:]
	putName(copied[f.name:], object)
	putUID(copied[f.uid:], object)
	putDigits(copied[f.version:f.version+len(versionMark)], version)
	putDigits(copied[f.sent:f.sent+len(sentMark)], uint64(sent))
	return out
}

func loadTemplates(path string) ([]template, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<22)
	var templates []template
	for lines.Scan() {
		made, err := newTemplate(bytes.Clone(lines.Bytes()))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, len(templates)+1, err)
		}
		templates = append(templates, made)
	}
	return templates, lines.Err()
}

func newTemplate(line []byte) (made template, err error) {
	var pod corev1.Pod
	if err = json.Unmarshal(line, &pod); err != nil {
		return made, err
	}
	encoded, err := pod.Marshal()
	if err != nil {
		return made, err
	}
	made.namespace = pod.Namespace
	if made.json, err = newForm(line); err != nil {
		return made, err
	}
	made.protobuf, err = newForm(encoded)
	return made, err
}

const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// putName writes the end of an object's name, as name_suffix in benchmarks/pods.py makes it.
func putName(out []byte, object int) {
	scrambled := object * 7_368_787 % (27 * 27 * 27 * 27 * 27)
	for i := range len(nameMark) {
		out[i] = alphabet[scrambled%27]
		scrambled /= 27
	}
}

// putUID writes an object's uid, as uid in benchmarks/pods.py makes it.
func putUID(out []byte, object int) {
	const hex = "0123456789abcdef"
	var digits [16]byte
	binary.BigEndian.PutUint64(digits[:8], mix(uint64(2*object)))
	binary.BigEndian.PutUint64(digits[8:], mix(uint64(2*object+1)))
	at := 0
	for i, digit := range digits {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out[at] = '-'
			at++
		}
		out[at], out[at+1] = hex[digit>>4], hex[digit&15]
		at += 2
	}
	out[14], out[19] = '4', '8'
}

// mix is SplitMix64.
func mix(number uint64) uint64 {
	z := (number + 1) * 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// putDigits fills out with a decimal number and the zeros before it.
func putDigits(out []byte, number uint64) {
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = byte('0' + number%10)
		number /= 10
	}
}

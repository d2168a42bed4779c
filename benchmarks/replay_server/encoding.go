package main

import (
	"encoding/binary"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// encoding is how a request is answered.
type encoding interface {
	listType() string
	watchType() string
	// appendListHead begins a list whose items have so many bytes together.
	appendListHead(out []byte, meta metav1.ListMeta, items int) []byte
	// itemSize is what appendItemHead and appendItem append.
	itemSize(t *template) int
	appendItemHead(out []byte, t *template, first bool) []byte
	appendItem(out []byte, t *template, object int, version uint64, sent int64) []byte
	appendListTail(out []byte) []byte
	// eventSize is what appendEvent appends.
	eventSize(kind string, t *template) int
	appendEvent(out []byte, kind string, t *template, object int, version uint64, sent int64) []byte
	bookmark(version uint64, initialEventsEnd bool) []byte
	expired() []byte
}

// encodingFor is what a client asks for with its Accept header.
func encodingFor(accept string) encoding {
	first, _, _ := strings.Cut(accept, ",")
	if strings.HasPrefix(strings.TrimSpace(first), "application/vnd.kubernetes.protobuf") {
		return protobufEncoding{}
	}
	return jsonEncoding{}
}

func bookmarkOf(version uint64, initialEventsEnd bool) corev1.Pod {
	var pod corev1.Pod
	pod.ResourceVersion = fmt.Sprint(version)
	if initialEventsEnd {
		pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return pod
}

var tooOld = metav1.Status{
	TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
	Status:   metav1.StatusFailure,
	Message:  "too old resource version",
	Reason:   metav1.StatusReasonExpired,
	Code:     410,
}

type jsonEncoding struct{}

func (jsonEncoding) listType() string  { return "application/json" }
func (jsonEncoding) watchType() string { return "application/json" }

func (jsonEncoding) appendListHead(out []byte, meta metav1.ListMeta, _ int) []byte {
	out = append(out, `{"kind":"PodList","apiVersion":"v1","metadata":`...)
	out = append(out, mustJSON(meta)...)
	return append(out, `,"items":[`...)
}

func (jsonEncoding) itemSize(*template) int { return 0 } // nobody needs to know

func (jsonEncoding) appendItemHead(out []byte, _ *template, first bool) []byte {
	if first {
		return out
	}
	return append(out, ',')
}

func (jsonEncoding) appendItem(out []byte, t *template, object int, version uint64, sent int64) []byte {
	return t.json.appendTo(out, object, version, sent)
}

func (jsonEncoding) appendListTail(out []byte) []byte { return append(out, "]}\n"...) }

const (
	eventHead = `{"type":"`
	eventKind = `","object":{"kind":"Pod","apiVersion":"v1",`
	eventTail = "}\n"
)

func (jsonEncoding) eventSize(kind string, t *template) int {
	return len(eventHead) + len(kind) + len(eventKind) + len(t.json.bytes) - 1 + len(eventTail)
}

func (jsonEncoding) appendEvent(out []byte, kind string, t *template, object int, version uint64, sent int64) []byte {
	out = append(out, eventHead...)
	out = append(out, kind...)
	out = append(out, eventKind...)
	start := len(out) - 1 // over the item's own brace, put right below
	out = t.json.appendTo(out[:start], object, version, sent)
	out[start] = ','
	return append(out, eventTail...)
}

func (jsonEncoding) bookmark(version uint64, initialEventsEnd bool) []byte {
	pod := bookmarkOf(version, initialEventsEnd)
	pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	return fmt.Appendf(nil, `{"type":"BOOKMARK","object":%s}`+"\n", mustJSON(pod))
}

func (jsonEncoding) expired() []byte {
	return fmt.Appendf(nil, `{"type":"ERROR","object":%s}`+"\n", mustJSON(tooOld))
}

type protobufEncoding struct{}

func (protobufEncoding) listType() string  { return "application/vnd.kubernetes.protobuf" }
func (protobufEncoding) watchType() string { return "application/vnd.kubernetes.protobuf;stream=watch" }

func (protobufEncoding) appendListHead(out []byte, meta metav1.ListMeta, items int) []byte {
	encoded := mustMarshal(&meta)
	head := append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(encoded))), encoded...)
	out = appendUnknownHead(out, "PodList", len(head)+items)
	return append(out, head...)
}

func (protobufEncoding) itemSize(t *template) int {
	size := len(t.protobuf.bytes)
	return 1 + uvarintSize(size) + size
}

func (protobufEncoding) appendItemHead(out []byte, t *template, _ bool) []byte {
	return binary.AppendUvarint(append(out, 2<<3|2), uint64(len(t.protobuf.bytes)))
}

func (protobufEncoding) appendItem(out []byte, t *template, object int, version uint64, sent int64) []byte {
	return t.protobuf.appendTo(out, object, version, sent)
}

func (protobufEncoding) appendListTail(out []byte) []byte { return append(out, unknownTail...) }

func (protobufEncoding) eventSize(kind string, t *template) int {
	return 4 + eventMessageSize(kind, unknownSize("Pod", len(t.protobuf.bytes)))
}

func (protobufEncoding) appendEvent(out []byte, kind string, t *template, object int, version uint64, sent int64) []byte {
	out = appendEventHead(out, kind, unknownSize("Pod", len(t.protobuf.bytes)))
	out = appendUnknownHead(out, "Pod", len(t.protobuf.bytes))
	out = t.protobuf.appendTo(out, object, version, sent)
	return append(out, unknownTail...)
}

func (protobufEncoding) bookmark(version uint64, initialEventsEnd bool) []byte {
	pod := bookmarkOf(version, initialEventsEnd)
	return wholeEvent("BOOKMARK", "Pod", mustMarshal(&pod))
}

func (protobufEncoding) expired() []byte { return wholeEvent("ERROR", "Status", mustMarshal(&tooOld)) }

// A protobuf body is "k8s\0" and the message runtime.Unknown: typeMeta, raw, contentEncoding, contentType.
var unknownTail = []byte{3<<3 | 2, 0, 4<<3 | 2, 0}

func appendUnknownHead(out []byte, kind string, raw int) []byte {
	out = append(out, "k8s\x00"...)
	out = append(out, 1<<3|2, byte(6+len(kind)), 1<<3|2, 2, 'v', '1', 2<<3|2, byte(len(kind)))
	out = append(out, kind...)
	return binary.AppendUvarint(append(out, 2<<3|2), uint64(raw))
}

func unknownSize(kind string, raw int) int {
	return 4 + 8 + len(kind) + 1 + uvarintSize(raw) + raw + len(unknownTail)
}

// appendEventHead begins a frame of a watch: its length, and the message WatchEvent: type, object (RawExtension: raw).
func appendEventHead(out []byte, kind string, object int) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(eventMessageSize(kind, object)))
	out = append(append(out, 1<<3|2, byte(len(kind))), kind...)
	out = binary.AppendUvarint(append(out, 2<<3|2), uint64(1+uvarintSize(object)+object))
	return binary.AppendUvarint(append(out, 1<<3|2), uint64(object))
}

func eventMessageSize(kind string, object int) int {
	extension := 1 + uvarintSize(object) + object
	return 2 + len(kind) + 1 + uvarintSize(extension) + extension
}

func wholeEvent(kind, objectKind string, raw []byte) []byte {
	out := appendEventHead(nil, kind, unknownSize(objectKind, len(raw)))
	out = append(appendUnknownHead(out, objectKind, len(raw)), raw...)
	return append(out, unknownTail...)
}

func uvarintSize(number int) int {
	size := 1
	for number >= 0x80 {
		number >>= 7
		size++
	}
	return size
}

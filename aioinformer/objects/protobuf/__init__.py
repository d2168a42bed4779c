"""Reads Kubernetes' protobuf: built-in kinds in two thirds of JSON's bytes, and most bytes are skipped."""

from .envelope import (
    MAGIC,
    Envelope,
    read_envelope,
    read_event,
    read_head,
    read_list_meta,
    read_shard_selector,
    read_status,
    status_of,
)
from .form import ProtobufForm, form_of
from .schema import JSONField, is_atomic, is_known, json_fields, kind_of, message_of
from .wire import PIECE, PROTOBUF_ERRORS, long_number, piece, pieces

__all__ = [
    "MAGIC",
    "PIECE",
    "PROTOBUF_ERRORS",
    "Envelope",
    "JSONField",
    "ProtobufForm",
    "form_of",
    "is_atomic",
    "is_known",
    "json_fields",
    "kind_of",
    "long_number",
    "message_of",
    "piece",
    "pieces",
    "read_envelope",
    "read_event",
    "read_head",
    "read_list_meta",
    "read_shard_selector",
    "read_status",
    "status_of",
]

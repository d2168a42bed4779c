"""Reads Kubernetes' protobuf: built-in kinds in two thirds of JSON's bytes, and most bytes are skipped."""

from .envelope import (
    MAGIC,
    Envelope,
    read_envelope,
    read_event,
    read_head,
    read_list_meta,
    read_status,
    status_of,
)
from .form import ProtobufForm, form_of
from .schema import is_known, kind_of
from .wire import PIECE, PROTOBUF_ERRORS, long_number, piece, pieces

__all__ = [
    "MAGIC",
    "PIECE",
    "PROTOBUF_ERRORS",
    "Envelope",
    "ProtobufForm",
    "form_of",
    "is_known",
    "kind_of",
    "long_number",
    "piece",
    "pieces",
    "read_envelope",
    "read_event",
    "read_head",
    "read_list_meta",
    "read_status",
    "status_of",
]

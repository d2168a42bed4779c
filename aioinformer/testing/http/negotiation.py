"""Content negotiation: choose an answer's encoding and view by the Accept header."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from aioinformer.objects.protobuf.schema import message_of
from aioinformer.testing.errors import StatusError
from aioinformer.testing.http.encodings import ENCODINGS, JSON, PROTOBUF, YAML, Encoding
from aioinformer.testing.http.views import META_GROUP, PARTIAL, MetadataView, TableView, View, plain_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.resources import ResourceType

_MEDIA_TYPES = [encoding.media_type for encoding in ENCODINGS]
_STREAMS = [f"{encoding.media_type};stream=watch" for encoding in ENCODINGS if encoding.stream_type]
_VERSIONS = ("v1", "v1beta1")


class _Clause(NamedTuple):
    """An alternative of an Accept header: a media type, possibly with ``*``, and its parameters."""

    media_type: str
    parameters: dict[str, str]

    def takes(self, encoding: Encoding) -> bool:
        stream = self.parameters.get("stream")
        is_known_stream = stream is None or (stream == "watch" and bool(encoding.stream_type))
        return is_known_stream and self.media_type in (encoding.media_type, "application/*", "*/*")

    @property
    def converts(self) -> bool:
        """True if it requests another kind than the object's own."""
        return not self.parameters.keys().isdisjoint(("as", "g", "v"))


def negotiate(accept: str, resource: ResourceType, include: str = "", verb: str = "get") -> View:
    """Return the view that an Accept header requests.

    Args:
        accept: The header.
        resource: The resource.
        include: The content of a table's rows; see ``TableView``.
        verb: The verb of the request; some encodings have no watches.

    Raises:
        StatusError: 406 if the server supports no alternative.
    """
    clauses = _clauses(accept)
    # The real server routes requests for built-in resources by exact media types only.
    if not resource.custom and all(clause.media_type not in (*_MEDIA_TYPES, "*/*") for clause in clauses):
        raise _not_acceptable([*_MEDIA_TYPES, *(_STREAMS if verb in ("list", "watch") else ())])
    watching = verb == "watch"
    unknown_stream = not any(clause.takes(encoding) for clause in clauses for encoding in ENCODINGS)
    for clause, encoding in _choices(clauses):
        if watching and not encoding.stream_type:
            continue
        if (view := _view(resource, encoding, clause, include)) is not None:
            return view
    offered = _STREAMS if watching and not unknown_stream else _MEDIA_TYPES
    message = f"only the following media types are accepted: {', '.join(offered)}"
    raise StatusError(406, message=message)


def encoding_of_document(accept: str, offered: tuple[Encoding, ...] = (JSON, YAML)) -> Encoding:
    """Return the encoding of a document that is no object of a resource, such as the list of groups.

    Raises:
        StatusError: 406 if the server supports no alternative.
    """
    for clause, encoding in _choices(_clauses(accept)):
        if encoding in offered and clause.media_type != "application/*":
            return encoding
    raise _not_acceptable([JSON.media_type] if offered == (JSON,) else _MEDIA_TYPES)


def _not_acceptable(offered: list[str]) -> StatusError:
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}"
    return StatusError(406, message=message, details={})


def encoding_of_status(accept: str) -> Encoding:
    """Return the encoding of a Status for an Accept header; JSON if no alternative fits.

    Alternatives that convert objects do not apply to a Status.
    """
    return next((encoding for clause, encoding in _choices(_clauses(accept)) if not clause.converts), JSON)


def _choices(clauses: list[_Clause]) -> Iterator[tuple[_Clause, Encoding]]:
    """Yield the possible choices, best first."""
    for clause in clauses:
        yield from ((clause, encoding) for encoding in ENCODINGS if clause.takes(encoding))


def _view(resource: ResourceType, encoding: Encoding, clause: _Clause, include: str) -> View | None:
    """Return the view that a clause requests, or None if this encoding does not support it."""
    if not clause.converts:
        has_it = encoding is not PROTOBUF or (
            not resource.custom and _is_known(resource.api_version, resource.kind)
        )
        return plain_view(resource, encoding) if has_it else None
    shape, group, version = (clause.parameters.get(name, "") for name in ("as", "g", "v"))
    if group != META_GROUP or version not in _VERSIONS:
        return None
    if shape == "Table" and encoding is not PROTOBUF:
        return TableView(resource, version, include, encoding)
    if shape in (PARTIAL, f"{PARTIAL}List") and (
        encoding is not PROTOBUF or _is_known(f"{group}/{version}", PARTIAL)
    ):
        return MetadataView(resource, encoding, version, of_lists=shape != PARTIAL)
    return None


def _is_known(api_version: str, kind: str) -> bool:
    return message_of(api_version, kind) is not None


@lru_cache(maxsize=256)
def _clauses(accept: str) -> list[_Clause]:
    """Return the alternatives, best first: exact media types before wildcards, then by quality."""
    ranked: list[tuple[tuple[int, float], _Clause]] = []
    for text in (accept or "*/*").split(","):
        media_type, *rest = (part.strip() for part in text.split(";"))
        parameters = {name: value for name, _, value in (part.partition("=") for part in rest) if value}
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        clause = _Clause("*/*" if media_type == "*" else media_type, parameters)
        ranked.append(((media_type.count("*"), -quality), clause))
    return [clause for _, clause in sorted(ranked, key=lambda ranked: ranked[0])]

"""LIST: the meaning of resourceVersion, pages and their continue tokens."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from aioinformer.testing.errors import (
    StatusError,
    bad_request,
    field_forbidden,
    field_not_supported,
    invalid,
    resource_version_too_large,
)
from aioinformer.testing.http.selection import Selection
from aioinformer.testing.strconv import parse_uint

if TYPE_CHECKING:
    from aioinformer.testing.storage.storage import StoredCollection, StoredObject

_EXPIRED = "The resourceVersion for the provided list is too old."

_INCONSISTENT = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)

_LATEST = -1
"""The version in a continue token that means "the newest"."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The query parameters of a list or a watch."""

    selection: Selection = field(default_factory=Selection)
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_token: str = ""
    send_initial_events: bool | None = None
    allow_bookmarks: bool = False
    timeout_seconds: int | None = None

    def validate(self) -> None:
        """Check the parameters of a list as the real server does.

        Raises:
            StatusError: 422 for a combination that the real server refuses.
        """
        match = self.resource_version_match
        causes = []
        if match:
            path = "resourceVersionMatch"
            if not self.resource_version:
                causes.append(
                    field_forbidden(path, f"{path} is forbidden unless resourceVersion is provided")
                )
            if self.continue_token:
                causes.append(field_forbidden(path, f"{path} is forbidden when continue is provided"))
            if match not in ("Exact", "NotOlderThan"):
                causes.append(field_not_supported(path, match, ["Exact", "NotOlderThan", ""]))
            if match == "Exact" and self.resource_version == "0":
                causes.append(field_forbidden(path, f'{path} "exact" is forbidden for resourceVersion "0"'))
        if self.send_initial_events is not None:
            causes.append(field_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
        if causes:
            raise invalid("ListOptions", "meta.k8s.io", "", causes)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list: the objects, their version, the token of the next page, and the applied shard selector."""

    items: list[StoredObject]
    resource_version: int
    continue_token: str = ""
    remaining: int | None = None
    shards: str = ""


class _Token(msgspec.Struct):
    """A continue token, in the real server's form."""

    v: str = ""
    rv: int = 0
    start: str = ""


def _encode_token(resource_version: int, start: str) -> str:
    token = msgspec.json.encode(_Token("meta.k8s.io/v1", resource_version, start))
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _decode_token(text: str) -> _Token:
    try:
        token = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_Token)
    except (ValueError, msgspec.MsgspecError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
    if token.v != "meta.k8s.io/v1":
        raise bad_request(
            "invalid continue token: continue key is not valid: server does not recognize this encoded version "
            f"{token.v}"
        )
    if not token.rv or not token.start:
        raise bad_request(
            "invalid continue token: continue key is not valid: incorrect encoded start resourceVersion "
            "(version meta.k8s.io/v1)"
        )
    return token


def parse_resource_version(text: str) -> int:
    """Return a resourceVersion as a number; 0 if it is empty.

    Raises:
        StatusError: 500 if it is no number, as the real server answers a watch.
    """
    if not text:
        return 0
    try:
        return parse_uint(text)
    except ValueError as error:
        raise StatusError(500, "", f'resourceVersion: Invalid value: "{text}": {error}') from error


def list_page(collection: StoredCollection, options: ListOptions, current: int) -> Page:
    """Return the page that a list asks for.

    Args:
        collection: The resource's objects.
        options: The list's parameters; a limit at resourceVersion "0" is ignored, as by the real server's watch cache.
        current: The server's version.

    Raises:
        StatusError: 400, 410, 422 or 504, as the real server answers.
    """
    options.validate()
    limit, start = options.limit, ""
    try:
        asked = parse_resource_version(options.resource_version)
    except StatusError as error:
        raise bad_request(f"invalid resource version: {error.message}") from error
    if options.continue_token:
        token = _decode_token(options.continue_token)
        if asked:
            raise bad_request("specifying resource version is not allowed when using continue")
        version, start = (current if token.rv == _LATEST else token.rv), token.start
        if version < collection.log.floor:
            raise StatusError(
                410, "Expired", _INCONSISTENT, continue_token=_encode_token(_LATEST, token.start)
            )
    elif options.resource_version_match == "Exact" or (
        limit and asked and options.resource_version_match != "NotOlderThan"
    ):
        version = asked
        if version < collection.log.floor:
            raise StatusError(410, message=_EXPIRED)
    else:
        version = current
        if options.resource_version == "0":
            limit = 0
    if max(version, asked) > current:
        raise resource_version_too_large(max(version, asked), current)
    return _page_of(
        collection.at(version, options.selection.namespace, start), options.selection, limit, version
    )


def _page_of(objects: list[StoredObject], selection: Selection, limit: int, version: int) -> Page:
    if not selection.has_selectors:
        if not limit or len(objects) <= limit:
            return Page(objects, version)
        token = _encode_token(version, objects[limit - 1].key + "\0")
        return Page(objects[:limit], version, token, len(objects) - limit)
    if selection.fields.exact("metadata.name") and (
        selection.namespace or (objects and not objects[0].namespace)
    ):
        limit = 0  # the real server gets the object by its name
    shards = str(selection.shards)
    matching: list[StoredObject] = []
    for index, stored in enumerate(objects):
        if not selection.matches(stored):
            continue
        matching.append(stored)
        if limit and len(matching) == limit and index + 1 < len(objects):
            return Page(matching, version, _encode_token(version, stored.key + "\0"), shards=shards)
    return Page(matching, version, shards=shards)

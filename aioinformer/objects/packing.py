"""Compresses the bytes of KubeObjects with a zstd dictionary. uid and resourceVersion stay readable."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from .kube_object import (
    AS_JSON,
    Form,
    KubeObject,
    Wanted,
)

if TYPE_CHECKING:
    import zstandard

_UID = 16
_HEAD = _UID + 8
"""Bytes of uid and resourceVersion, in front of the compressed bytes. They are zero if there is none, or one of an
unusual form, which is kept as a string."""


class ZstdPacking:
    """Compresses and decompresses with one dictionary, which lives as long as the objects that need it.

    Only one thread may pack. All threads may unpack.
    """

    def __init__(self, zstd: Any, dictionary: zstandard.ZstdCompressionDict, level: int) -> None:
        form = zstd.FORMAT_ZSTD1_MAGICLESS
        params = zstd.ZstdCompressionParameters.from_level(
            level,
            source_size=8 * 1024,
            dict_size=len(dictionary.as_bytes()),
            format=form,
            write_checksum=False,
            write_dict_id=False,
        )
        dictionary.precompute_compress(compression_params=params)
        self._compress = zstd.ZstdCompressor(dict_data=dictionary, compression_params=params).compress
        self.unpacking = _PerThread(
            lambda: zstd.ZstdDecompressor(dict_data=dictionary, format=form).decompress
        )
        self._forms: dict[Form, ZstdForm] = {}

    def has(self, obj: KubeObject) -> bool:
        """Return whether an object is compressed with this dictionary."""
        return isinstance(obj._form, ZstdForm) and obj._form.packing is self

    def pack(self, obj: KubeObject) -> KubeObject:
        """Return the object, compressed."""
        plain = unpack(obj)
        form = plain._form
        uid, version = obj.uid, obj.resource_version
        uid_bytes, version_bytes = _uid_bytes(uid), _version_bytes(version)
        kept = b"".join(
            (uid_bytes or bytes(_UID), version_bytes or bytes(_HEAD - _UID), self._compress(plain._kept))
        )
        return msgspec.structs.replace(  # a subclass may have more fields
            obj,
            _kept=kept,
            _uid="" if uid_bytes else uid,
            _version="" if version_bytes else version,
            _labels=None,
            _spec=None,
            _form=self._forms.get(form) or self._forms.setdefault(form, ZstdForm(self, form)),
        )


class ZstdForm:
    """The form of compressed bytes.

    Args:
        packing: The dictionary.
        inner: The form of the decompressed bytes.
    """

    def __init__(self, packing: ZstdPacking, inner: Form) -> None:
        self.packing = packing
        self.inner = inner

    def plain(self, obj: KubeObject) -> KubeObject:
        """Return an object of this form, decompressed."""
        kept = self.packing.unpacking.call(obj._kept[_HEAD:])
        return msgspec.structs.replace(
            obj, _kept=kept, _uid=obj.uid, _version=obj.resource_version, _form=self.inner
        )

    def raw_of(self, obj: KubeObject) -> bytes:
        return self.plain(obj).raw

    def fields_of(self, obj: KubeObject, wanted: Wanted = ()) -> dict[str, Any] | None:
        return None if self.inner is AS_JSON else self.plain(obj)._fields(wanted)

    def uid_of(self, obj: KubeObject) -> str:
        uid = obj._kept[:_UID]
        return _uid_text(uid) if any(uid) else ""

    def version_of(self, obj: KubeObject) -> str:
        return str(int.from_bytes(obj._kept[_UID:_HEAD], "big") or "")


def unpack(obj: KubeObject) -> KubeObject:
    """Return an object, decompressed if it is compressed."""
    return obj._form.plain(obj) if isinstance(obj._form, ZstdForm) else obj


class _PerThread(threading.local):
    """A decompressor for each thread: objects are read in any thread, and a decompressor works in one at a time."""

    def __init__(self, make: Callable[[], Callable[[bytes], bytes]]) -> None:
        self.call = make()


def _uid_bytes(uid: str) -> bytes:
    """Return the bytes of a UUID; empty for a uid of another form."""
    try:
        packed = bytes.fromhex(uid.replace("-", ""))
    except ValueError:
        return b""
    return packed if len(packed) == _UID and _uid_text(packed) == uid and any(packed) else b""


def _uid_text(uid: bytes) -> str:
    text = uid.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _version_bytes(version: str) -> bytes:
    """Return the bytes of a decimal resourceVersion; empty for one of another form."""
    usual = version.isascii() and version.isdecimal() and len(version) < 20 and version[0] != "0"
    return int(version).to_bytes(_HEAD - _UID, "big") if usual else b""

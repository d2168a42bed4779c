"""UndecodableObject: an object that does not fit the object type of its reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import DecodeError
from .codec import codec_for
from .keys import same_version
from .kube_object import KubeObject, _NoAttribute
from .meta import TypeMeta


class UndecodableObject(KubeObject, frozen=True, eq=False, gc=False):
    """An object that does not fit the object type, as the server sent it.

    It takes the place of the object on its way to the cache, so that the cache does not keep an older state. Its key,
    versions, ``metadata`` and fields can be read, as those of every KubeObject. Code for the object type never gets
    one, except where the documentation says so.

    Attributes:
        last: The last state that fitted, which is older than this one; None if none is known.
    """

    _reason: str = ""
    last: Any = None

    if not TYPE_CHECKING:
        spec = _NoAttribute("the object does not fit its type; read it as obj['spec'], and see obj.error")
        status = _NoAttribute("the object does not fit its type; read it as obj['status'], and see obj.error")

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}: the object does not fit its type; read it "
                f"as obj[{name!r}], and see obj.error"
            )

    @property
    def reason(self) -> str:
        """Why it does not fit: the field, the expected and the actual type. It is the same in all versions."""
        return self._reason or f"{self.key} does not fit its object type"

    @property
    def error(self) -> DecodeError:
        """The reason, with the version. Another error at each use."""
        return DecodeError(f"{self.reason}, version {self.resource_version or 'unknown'}")

    def after(self, old: Any) -> UndecodableObject:
        """Return this object with ``last``, from the state that it replaces in a cache, which may be undecodable."""
        last = old.last if isinstance(old, UndecodableObject) else old
        return self if last is None else msgspec.structs.replace(self, last=last)

    def last_before(self, obj: Any) -> Any:
        """Return the old state of an update by an object that fits; None if the update is an add.

        It is an add also if the old state has the same version: such an update would pass for a resync.
        """
        return None if same_version(self.last, obj) else self.last

    def __reduce__(self) -> tuple[Any, ...]:
        return undecodable, (self.raw, self._type_meta, self._reason)


def undecodable(
    value: Any, type_meta: TypeMeta | None, reason: str, *, has_namespace: bool = True
) -> UndecodableObject:
    """Return a list's item, or an event's object, as an UndecodableObject.

    Args:
        value: As for ``Codec.decode``.
        type_meta: As for ``Codec.decode``.
        reason: Why it does not fit.
        has_namespace: Whether keys have the namespace; not if the object type has no field for it.

    Raises:
        DecodeError: Not even its name can be read.
    """
    whole = codec_for(KubeObject).decode(value, type_meta)
    return UndecodableObject(
        whole._kept,
        whole.key if has_namespace else whole.name,
        whole._uid,
        whole._version,
        whole._type_meta,
        whole._labels,
        whole._spec,
        whole._form,
        reason,
    )

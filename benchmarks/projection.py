"""The measured projection of pods: a Struct of five fields."""

from __future__ import annotations

import msgspec


class Labels(msgspec.Struct, gc=False):
    app: str


class Meta(msgspec.Struct, gc=False):
    name: str
    namespace: str
    resourceVersion: str  # noqa: N815
    labels: Labels


class Spec(msgspec.Struct, gc=False):
    nodeName: str  # noqa: N815


class Pod(msgspec.Struct, gc=False):
    """A projection of five fields."""

    metadata: Meta
    spec: Spec

"""What the schema of a class takes, the class decodes: random classes and values, on the real kube-apiserver.

``AIOINFORMER_FIELDS=10000`` tries 10,000 random types of fields, with ten values each, instead of a few.
"""

from __future__ import annotations

import asyncio
import json
import os
import types
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from aioinformer import ApiError, Client, KubeObject, Resource
from aioinformer.errors import DecodeError
from aioinformer.objects.encoding import fields_of
from aioinformer.testing import APIServer
from aioinformer.typed import CustomResource, crd

from ..kubernetes.controlplane import ControlPlane
from . import random_kinds, random_models
from .random_kinds import Field, values_of

pytestmark = [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes"), pytest.mark.timeout(7200)]

FIELDS = int(os.environ.get("AIOINFORMER_FIELDS", "90"))
FIELDS_OF_A_CLASS, VALUES_OF_A_FIELD = 30, 10

GROUP = "random.example.com"


class Classes(NamedTuple):
    """A library of classes.

    Attributes:
        kinds: Random types of fields.
        make: Returns a class with fields.
    """

    kinds: st.SearchStrategy[Any]
    make: Callable[[str, list[Field]], Any]


STRUCTS = Classes(random_kinds.kinds, random_kinds.struct_of)
MODELS = Classes(random_models.kinds, random_models.model_of)


def kind_of(classes: Classes, fields: list[Any]) -> type[CustomResource]:
    """Return a new kind with these types in its spec. An object has one of them, so all may be missing."""
    spec = classes.make("Spec", [Field(kind, has_default=True) for kind in fields])
    return types.new_class(
        f"Random{uuid4().hex}",
        (CustomResource,),
        {"group": GROUP, "version": "v1"},
        lambda body: body.update(__annotations__={"spec": spec}, __module__=__name__),
    )


def split_batches(items: list[Example], size: int) -> Iterator[list[Example]]:
    left = iter(items)
    while batch := [*islice(left, size)]:
        yield batch


async def serve(client: Client, definition: dict[str, Any]) -> None:
    """Create a definition and wait until its objects can be listed."""
    await Resource(client, "crds").create(definition)
    names = definition["spec"]["names"]
    async with asyncio.timeout(20):
        while True:
            try:
                await Resource(client, f"{GROUP}/v1", names["plural"], kind=names["kind"]).list()
            except ApiError:
                await asyncio.sleep(0.02)
            else:
                return


async def answers(
    client: Client, kind: type[CustomResource], specs: list[Any]
) -> list[KubeObject | ApiError]:
    """Create an object of each spec; return it as the server has it, or the refusal."""
    definition = crd(kind)
    await serve(client, definition)
    names: dict[str, str] = definition["spec"]["names"]
    resource = Resource(client, f"{GROUP}/v1", names["plural"], kind=names["kind"])
    at_once = asyncio.Semaphore(20)

    async def create(number: int, spec: Any) -> KubeObject | ApiError:
        async with at_once:
            try:
                return await resource.create(
                    {"metadata": {"name": f"n{number}", "namespace": "default"}, "spec": spec}
                )
            except ApiError as error:
                return error

    created = await asyncio.gather(*(create(number, spec) for number, spec in enumerate(specs)))
    await Resource(client, "crds").delete(definition["metadata"]["name"])
    return created


def has_equal_numbers(value: Any) -> bool:
    """Return whether a list has 1 and 1.0, which the real server takes for different members of a set."""
    if isinstance(value, dict):
        return any(map(has_equal_numbers, value.values()))
    if not isinstance(value, list):
        return False
    numbers = [item for item in value if isinstance(item, (int, float))]
    return len({*numbers}) < len({(type(item), item) for item in numbers}) or any(
        map(has_equal_numbers, value)
    )


def with_floats(value: Any) -> Any:
    """Return a value with large numbers as floats: Go writes 1e20 as 100000000000000000000."""
    if isinstance(value, dict):
        return {name: with_floats(part) for name, part in value.items()}
    if isinstance(value, list):
        return [*map(with_floats, value)]
    return float(value) if isinstance(value, int) and abs(value) > 2**63 else value


async def differences(
    control_plane: ControlPlane, kind: type[CustomResource], specs: list[Any]
) -> tuple[list[str], int, list[tuple[str, Any]]]:
    """Return what is wrong, how many values were taken, and what the class writes of each.

    Wrong is what the class cannot decode, and what the embedded server does otherwise.
    """
    async with Client.from_kubeconfig(path=str(control_plane.kubeconfig)) as client:
        real = await answers(client, kind, specs)
    async with APIServer() as server, Client.from_url(server.url) as client:
        embedded = await answers(client, kind, specs)
    wrong: list[str] = []
    written: list[tuple[str, Any]] = []
    taken = 0
    for spec, theirs, ours in zip(specs, real, embedded, strict=True):
        shown = json.dumps(spec)
        if isinstance(theirs, ApiError) or isinstance(ours, ApiError):
            if type(theirs) is not type(ours) and not has_equal_numbers(spec):
                wrong.append(f"{shown}: real {theirs!s:.400}, embedded {ours!s:.400}")
            continue
        taken += 1
        if with_floats(theirs["spec"]) != with_floats(ours["spec"]):
            wrong.append(f"{shown}: real {theirs['spec']}, embedded {ours['spec']}")
        for obj in (theirs, ours):
            try:
                decoded = obj.decode(kind)
                assert type(decoded) is kind
                written.append((shown, fields_of(decoded)["spec"]))
            except (DecodeError, RecursionError) as error:
                wrong.append(f"{shown}: {error}")
    return wrong, taken, written


class Example(NamedTuple):
    """The type of a field, and values for it."""

    kind: Any
    values: list[Any]


async def refusals(kind: type[CustomResource], written: list[tuple[str, Any]]) -> list[str]:
    """Return what the class writes and the server refuses, of values that it has read."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        again = await answers(client, kind, [spec for _, spec in written])
    return [
        f"{shown} was written as {spec}: {answer!s:.400}"
        for (shown, spec), answer in zip(written, again, strict=True)
        if isinstance(answer, ApiError)
    ]


def examples(classes: Classes, count: int) -> list[Example]:
    """Return random types with values for them. Hypothesis draws them, but does not wait for a server."""
    drawn: list[Example] = []

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(data=st.data())
    def draw(data: st.DataObject) -> None:
        kind = data.draw(classes.kinds)
        schema = schema_of(kind_of(classes, [kind]))["f0"]
        values = st.lists(values_of(schema), min_size=VALUES_OF_A_FIELD, max_size=VALUES_OF_A_FIELD)
        drawn.append(Example(kind, data.draw(values)))

    draw()
    return drawn


def schema_of(kind: type[CustomResource]) -> dict[str, Any]:
    """Return the schemas of the spec's fields."""
    schema: Any = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    fields: dict[str, Any] = schema["properties"]["spec"]["properties"]
    return fields


@pytest.mark.parametrize("classes", [STRUCTS, MODELS], ids=["Structs", "models"])
def test_a_class_decodes_what_the_server_takes(control_plane: ControlPlane, classes: Classes) -> None:
    wrong: list[str] = []
    taken = 0
    for batch in split_batches(examples(classes, FIELDS), FIELDS_OF_A_CLASS):
        kind = kind_of(classes, [example.kind for example in batch])
        specs = [{f"f{number}": value} for number, example in enumerate(batch) for value in example.values]
        mismatches, accepted, written = asyncio.run(differences(control_plane, kind, specs))
        wrong += [*mismatches, *asyncio.run(refusals(kind, written))]
        taken += accepted
    assert not wrong, "\n".join(wrong)
    assert 0.1 < taken / (FIELDS * VALUES_OF_A_FIELD) < 0.9  # many values are hostile

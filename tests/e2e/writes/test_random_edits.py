"""Random edits through random classes: the real server has exactly what each means, or it has not changed."""

from __future__ import annotations

import copy
import json
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from aioinformer.errors import AmbiguousEditError
from aioinformer.operator.webhooks.patching import json_patch
from tests.edits.campaign import Campaign
from tests.edits.classes import class_of
from tests.edits.editing import Edit
from tests.edits.kinds import EVERYTHING, definition
from tests.edits.nodes import normal

from ..api import Object, Resource
from ..clusters import KubernetesCluster
from ..conftest import REAL
from ..definitions import define
from ..hooking import allow, deny, patch, serve_hooks

pytestmark = [*REAL, pytest.mark.asyncio(loop_factories=["asyncio"])]  # about objects, not about sockets

EDITS = int(os.environ.get("EDITS", "300"))


async def test_an_edit_changes_exactly_what_it_means_or_nothing(real: KubernetesCluster) -> None:
    await define(real.api, definition())
    async with real.client() as client:
        campaign = Campaign(real.api, client, real.namespace)
        await campaign.run(range(EDITS))
    for verb, least in {"update": EDITS // 5, "status": EDITS // 20, "apply": EDITS // 40}.items():
        assert campaign.outcomes[verb, "changed"] >= least, campaign.outcomes
    assert campaign.outcomes["update", "refused"], campaign.outcomes


async def test_a_webhook_changes_exactly_what_it_means_or_denies(
    real: KubernetesCluster, tmp_path: Path
) -> None:
    await define(real.api, definition())
    meant: dict[str, Object | None] = {}
    outcomes: Counter[str] = Counter()

    def mutate(request: Object) -> Object | bytes:
        original: dict[str, Any] = request["object"]
        name = original["metadata"]["name"]
        random = Random(name)
        raw = json.dumps(original).encode()
        view = class_of(EVERYTHING, "spec", random, has_defaults=False)
        edited = msgspec.json.decode(raw, type=view.type)
        wanted, edit = copy.deepcopy(original), Edit(random)
        edit.apply(view, edited, wanted)
        if not edit.is_visible:
            return allow(request)
        try:
            steps = json_patch(raw, edited)
        except AmbiguousEditError as error:
            meant[name] = None
            return deny(str(error)) if edit.may_be_refused else b"refused without reason"
        meant[name] = wanted
        return patch(*steps) if steps else allow(request)

    path = Resource(EVERYTHING.api_version, EVERYTHING.plural).path(real.namespace)
    rule = {"apiGroups": ["edits.example.com"], "resources": ["everythings"]}
    async with (
        serve_hooks(real, tmp_path) as hooks,
        hooks.register("Mutating", hooks.hook("edit", mutate, rule=rule)),
    ):
        for seed in range(100):
            name = f"hooked-{seed}"
            obj = {
                "apiVersion": EVERYTHING.api_version,
                "kind": "Everything",
                **EVERYTHING.node.make(Random(seed)),
            }
            obj["metadata"] |= {"name": name}
            answer = await real.api.ask("POST", path, obj)
            wanted = meant.get(name, obj)
            if wanted is None:
                assert answer.status == 400, answer.body
                outcomes["denied"] += 1
                continue
            if answer.status == 422:  # a new item without a key, which the class does not have
                outcomes["invalid"] += 1
                continue
            assert answer.status == 201, answer.body
            assert normal(EVERYTHING.node, answer.body)["spec"] == normal(EVERYTHING.node, wanted)["spec"], (
                name
            )
            outcomes["changed" if wanted["spec"] != obj["spec"] else "unchanged"] += 1
    assert outcomes["changed"] > 50, outcomes

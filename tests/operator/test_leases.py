"""The names of Leases: every name of an operator gives one that the server and a Sharding accept."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import Client, ConfigError
from aioinformer.operator import RunOptions
from aioinformer.operator.leases import election_lease_of, sharding_name_of, sharding_of


@pytest.mark.parametrize(
    ("name", "election", "sharding"),
    [
        ("websites", "websites", "websites"),
        ("websites.example.com", "websites.example.com", "websites-example-com"),
        ("my_module.make_Manager", "my-module.make-manager", "my-module-make-manager"),
    ],
)
def test_leases_have_the_operators_name(name: str, election: str, sharding: str) -> None:
    assert (election_lease_of(name, RunOptions()), sharding_name_of(name, RunOptions())) == (
        election,
        sharding,
    )


def test_long_names_are_shortened_and_stay_distinct() -> None:
    names = [f"{'a' * 30}-{'b' * 60}{end}" for end in "12"]
    shortened = [sharding_name_of(name, RunOptions()) for name in names]
    assert len({*shortened}) == 2
    client = Client.from_url("http://127.0.0.1:1")
    for name, label in zip(names, shortened, strict=True):
        sharding = sharding_of(client, name, RunOptions(shards=8, lease_namespace="home"))
        assert sharding is not None
        assert (sharding.name, sharding.namespace, sharding.slots) == (label, "home", 8)


def test_an_installation_may_name_its_leases() -> None:
    options = RunOptions(lease_name="other", shards=8, lease_namespace="home")
    assert election_lease_of("websites", options) == "other"
    sharding = sharding_of(Client.from_url("http://127.0.0.1:1"), "websites", options)
    assert sharding is not None
    assert sharding.name == "other"


@pytest.mark.parametrize("name", ["a/b", "Other", "-a", 3])
def test_names_that_no_lease_can_have_are_refused(name: Any) -> None:
    with pytest.raises(ConfigError, match="lease_name must be"):
        RunOptions(lease_name=name)


def test_without_shards_there_is_no_sharding() -> None:
    assert sharding_of(Client.from_url("http://127.0.0.1:1"), "websites", RunOptions()) is None

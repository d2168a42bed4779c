"""The life of two Websites, the same for each framework."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from aioinformer import ApiError, Client, NotFoundError, Resource
from aioinformer.testing import eventually

from .dns import DNS

Object = dict[str, Any]
OWNED = ("configmaps", "deployments", "services")
EDITS: dict[str, Object] = {
    "configmaps": {"data": {"index.html": "defaced"}},
    "deployments": {"spec": {"replicas": 7}},
    "services": {"spec": {"selector": {"website": "other"}}},
}
"""What is changed by hand."""


def website(namespace: str, name: str, host: str, **spec: Any) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Website",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"host": host, "image": "nginx:1", "html": "hello", **spec},
    }


class Story:
    """What a user does with Websites, and what an operator has to make of it.

    Args:
        client: The user's.
        dns: The operator's DNS API.
        namespace: Where the Websites are. It is empty.
        patience: Seconds that the operator may take for a step.
    """

    def __init__(self, client: Client, dns: DNS, namespace: str, patience: float = 30.0) -> None:
        self._dns = dns
        self._namespace = namespace
        self._eventually = partial(eventually, within=patience)
        self._sites = Resource(client, "example.com/v1", "websites", dict, kind="Website")
        self._owned = {resource: Resource(client, resource, dict) for resource in OWNED}
        self._events = Resource(client, "v1", "events", dict)

    async def play(self) -> None:
        """Play the whole story."""
        await self.create()
        await self.edit_by_hand()
        await self.become_ready()
        await self.two_with_one_host()
        await self.delete_while_dns_fails()

    async def create(self) -> None:
        """A Website gets what it owns, a DNS record, a status and an Event."""
        await self._eventually(self._first_is_created, what="a webhook that allows")
        assert (await self._get("sites"))["spec"]["replicas"] == 2, "the default"
        await self._eventually(lambda: self._condition("False"), what="a condition")
        uid = (await self._get("sites"))["metadata"]["uid"]
        for resource in OWNED:
            (owner,) = (await self._get(resource))["metadata"]["ownerReferences"]
            assert (owner["uid"], owner["controller"]) == (uid, True)
        assert (await self._get("configmaps"))["data"] == {"index.html": "hello"}
        pod = (await self._get("deployments"))["spec"]["template"]["spec"]
        assert pod["volumes"][0]["configMap"]["name"] == "a"
        assert pod["containers"][0]["volumeMounts"][0]["mountPath"] == "/usr/share/nginx/html"
        assert (await self._get("services"))["spec"]["ports"][0]["port"] == 80
        await self._eventually(lambda: "a.example.com" in self._dns.records, what="a DNS record")
        await self._eventually(lambda: self._has_event("Created"), what="an Event")

    async def edit_by_hand(self) -> None:
        """Changes by hand of what it owns are corrected; a deleted object is made again."""
        for name, edit in EDITS.items():
            was = await self._get(name)
            await self._owned[name].patch(self._key, edit)

            async def is_corrected(name: str = name, was: Object = was) -> bool:
                now = await self._get(name)
                parts = ("data", "spec")
                return all(now.get(part) == was.get(part) for part in parts)

            await self._eventually(is_corrected, what=f"corrected {name}")
        await self._owned["services"].delete(self._key)
        await self._eventually(lambda: self._get("services"), what="another Service")

    async def become_ready(self) -> None:
        """The status follows the Deployment, and the Deployment follows the Website."""
        status = {"replicas": 2, "readyReplicas": 2}
        await self._owned["deployments"].patch_status(self._key, {"status": status})
        await self._eventually(lambda: self._condition("True"), what="readiness")
        reported = (await self._get("sites"))["status"]
        assert (reported["url"], reported["readyReplicas"]) == ("http://a.example.com", 2)
        await self._sites.patch(self._key, {"spec": {"replicas": 3}})

        async def is_scaled() -> bool:
            return bool((await self._get("deployments"))["spec"]["replicas"] == 3)

        await self._eventually(is_scaled, what="three replicas")
        await self._eventually(lambda: self._condition("False"), what="no readiness")

    async def two_with_one_host(self) -> None:
        """Another Website with the same host is refused; so is what the schema does not allow."""
        sites = self._sites
        await self._eventually(self._second_is_refused, what="a webhook that refuses")
        await sites.create(website(self._namespace, "b", "b.example.com"))
        await self._eventually(lambda: "b.example.com" in self._dns.records, what="another DNS record")
        invalid: dict[str, Object] = {
            "c": {"host": "no_host"},
            "d": {"replicas": 11, "host": "d.example.com"},
        }
        for name, spec in invalid.items():
            with pytest.raises(ApiError, match=r"spec\."):
                await sites.create(website(self._namespace, name, **spec))
        with pytest.raises(ApiError, match="host cannot change"):
            await sites.patch(self._key, {"spec": {"host": "z.example.com"}})
        await sites.delete(f"{self._namespace}/b")
        await self._eventually(lambda: self._is_gone("b"), what="the end of the second Website")

    async def delete_while_dns_fails(self) -> None:
        """A deleted Website stays until its DNS record is removed. What it owns is the garbage collector's."""
        self._dns.failures = 2
        await self._sites.delete(self._key)
        await self._eventually(lambda: self._is_gone("a"), what="the end of the Website")
        assert (self._dns.failures, self._dns.records) == (0, set())
        await self._eventually(lambda: self._has_event("DNSFailed"), what="an Event of the failure")

    @property
    def _key(self) -> str:
        return f"{self._namespace}/a"

    async def _get(self, which: str) -> Object:
        return await (self._sites if which == "sites" else self._owned[which]).get(self._key)

    async def _is_gone(self, name: str) -> bool:
        try:
            await self._sites.get(f"{self._namespace}/{name}")
        except NotFoundError:
            return True
        return False

    async def _condition(self, status: str) -> bool:
        site = await self._get("sites")
        generation = site["metadata"]["generation"]
        return any(
            (condition["type"], condition["status"], condition["observedGeneration"])
            == ("Ready", status, generation)
            for condition in site.get("status", {}).get("conditions", ())
        )

    async def _has_event(self, reason: str) -> bool:
        return any(event["reason"] == reason for event in await self._events.list(self._namespace))

    async def _first_is_created(self) -> bool:
        try:
            await self._sites.create(website(self._namespace, "a", "a.example.com"))
        except ApiError as error:
            if "failed calling webhook" not in str(error):
                raise
            return False  # the operator is starting
        return True

    async def _second_is_refused(self) -> bool:
        try:
            await self._sites.create(website(self._namespace, "second", "a.example.com"))
        except ApiError as error:
            return f"is taken by {self._key}" in str(error)
        await self._sites.delete(f"{self._namespace}/second")
        return False

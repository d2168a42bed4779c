"""A stream whose bytes change in transit ends with a DamagedError, unlike a stream that was cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from aioinformer import Client, ListOptions, ListWatch, TransportError
from aioinformer.errors import DamagedError
from aioinformer.testing import APIServer

from ..chaos.proxy import Proxy
from .clusters import write_kubeconfig


@pytest.mark.parametrize("damaged", [True, False])
async def test_a_stream_whose_bytes_are_damaged(library: str, tmp_path: Path, damaged: bool) -> None:
    async with APIServer(token="t", tls=True) as server, Proxy(server.url) as proxy:
        path = write_kubeconfig(tmp_path / "config", proxy.url, {"token": "t"}, ca=server.ca_pem)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            watch = await ListWatch.for_resource(client, "v1", "configmaps").watch(
                ListOptions(resource_version=str(server.resource_version))
            )
            server.create("v1", "configmaps", {"metadata": {"name": "a"}})
            assert await anext(watch)
            if damaged:
                proxy.corrupt()
            else:
                proxy.cut_in_the_middle()
            server.create("v1", "configmaps", {"metadata": {"name": "b"}})
            with pytest.raises(TransportError, match="the response broke off") as caught:
                await anext(watch)
            assert isinstance(caught.value, DamagedError) is damaged
            await watch.aclose()  # type: ignore[attr-defined]

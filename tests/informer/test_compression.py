"""compression.py: compressed KubeObjects equal plain ones."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import (
    Compression,
    ConfigError,
    Indexer,
    KubeObject,
    ListWatch,
    SharedIndexInformer,
    SharedInformerFactory,
    add_finalizer,
    contains_finalizer,
)
from aioinformer.informer.compression import Compressor
from aioinformer.objects.keys import (
    labels_of,
    meta_namespace_key_func,
    namespace_of,
    resource_version_of,
    same_version,
)
from aioinformer.objects.kube_object import AS_JSON

from ..objects.test_kube_object import FULL, encode, json_values
from ..samples import (
    LONG,
    POD,
    SMALL,
    Meta,
    Pod,
    compress_object,
    pod,
)
from ..steps import full_default_executor, run_during, until
from ..virtual_time import virtual_time

UIDS = [
    "",
    "u",
    "0f8b0c1e-7b1d-4daf-8e78-9e6aa1b965f4",
    "0F8B0C1E-7B1D-4DAF-8E78-9E6AA1B965F4",
    "0f8b0c1e7b1d4daf8e789e6aa1b965f4",
    "00000000-0000-0000-0000-000000000000",
]
VERSIONS = ["", "0", "1", "007", "18446744073709551615", "18446744073709551616", "9" * 19, "abc", "٣", "-1"]


@pytest.mark.parametrize("uid", UIDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_any_uid_and_version_survive(uid: str, version: str) -> None:
    plain = pod(version=version, metadata={"uid": uid})
    packed = compress_object(plain)
    assert (packed.uid, packed.resource_version) == (uid, version)
    assert (packed.metadata.uid, packed.metadata.resource_version) == (uid, version)
    assert resource_version_of(packed) == version
    assert same_version(packed, plain) is same_version(plain, packed) is (version != "")
    assert packed == plain
    assert hash(packed) == hash(plain)
    assert repr(packed) == repr(plain)


@given(
    fields=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5), json_values, max_size=4
    ),
    labels=st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3) | st.none(),
)
def test_any_object_survives(fields: dict[str, Any], labels: Any) -> None:
    metadata = {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "1", "labels": labels}
    try:
        plain = KubeObject.from_bytes(encode({**fields, "metadata": metadata}), POD)
    except UnicodeEncodeError:
        return
    packed = compress_object(plain)
    assert packed.raw == plain.raw
    assert packed == plain == packed.to_dict() == plain.to_dict()
    assert dict(packed) == dict(plain)
    assert list(packed) == list(plain)
    assert len(packed) == len(plain)
    assert all(packed[field] == value for field, value in plain.items())
    assert "nothing" not in packed
    assert packed.get("nothing", 1) == 1


class TestCompressedObject:
    plain = KubeObject.from_bytes(encode(FULL), POD)

    def test_all_fields_are_equal(self) -> None:
        packed = compress_object(self.plain)
        assert packed.raw == self.plain.raw
        assert (packed.key, packed.name, packed.namespace) == ("ns/a", "a", "ns")
        assert (packed.api_version, packed.kind) == ("v1", "Pod")
        assert packed.metadata == self.plain.metadata
        for name in ("labels", "annotations", "finalizers", "owner_references", "creation_timestamp"):
            assert getattr(packed.metadata, name) == getattr(self.plain.metadata, name)
        assert packed.decode(dict) == self.plain.to_dict()
        assert packed.decode(KubeObject) == self.plain
        assert (meta_namespace_key_func(packed), namespace_of(packed)) == ("ns/a", "ns")
        assert labels_of(packed) == {"app": "x"}
        assert packed == FULL

    def test_changes_by_a_reader_do_not_reach_the_cache(self) -> None:
        packed = compress_object(self.plain)
        packed["spec"]["nodeName"] = "changed"
        packed.metadata.labels["app"] = "changed"
        assert packed.to_dict() == FULL

    def test_finalizer_helpers_accept_it(self) -> None:
        packed = compress_object(self.plain)
        assert contains_finalizer(packed, "f")
        changed, _ = add_finalizer(packed, "g")
        assert changed.metadata.finalizers == ["f", "g"]
        assert packed.metadata.finalizers == ["f"]

    def test_different_objects_are_not_equal(self) -> None:
        one, other = compress_object(pod(spec=1)), compress_object(pod(spec=2))
        assert one != other
        assert one == compress_object(pod(spec=1))
        assert one != compress_object(pod(spec=1, version="2"))

    def test_copy_and_pickle(self) -> None:
        packed = compress_object(self.plain)
        assert copy.copy(packed) is packed
        assert copy.deepcopy([packed])[0] is packed
        thawed = pickle.loads(pickle.dumps(packed))
        assert thawed == packed
        assert thawed._form is AS_JSON

    def test_subclass_keeps_its_type_and_fields(self) -> None:
        class Cave(KubeObject, frozen=True):
            depth: int = 0

        packed: Any = compress_object(msgspec.structs.replace(Cave.from_bytes(pod().raw), depth=7))
        assert type(packed) is Cave
        assert packed.depth == 7

    def test_garbage_collector_does_not_track_it(self) -> None:
        assert not gc.is_tracked(compress_object(self.plain))

    def test_it_is_smaller(self) -> None:
        assert len(compress_object(pod(spec=LONG))._kept) < len(pod(spec=LONG).raw) / 2

    def test_many_threads_can_read_it(self) -> None:
        packed = compress_object(pod(spec=LONG))
        with ThreadPoolExecutor(8) as threads:
            read = list(threads.map(lambda _: packed.raw, range(2000)))
        assert set(read) == {pod(spec=LONG).raw}


class TestOptions:
    def test_invalid_options_are_refused(self) -> None:
        for wrong in ({"level": 0}, {"level": 20}, {"dictionary_size": 1}, {"samples": 1}, {"samples": -1}):
            with pytest.raises(ConfigError):
                Compression(**wrong)
        for compress in (1, "yes", None):
            with pytest.raises(ConfigError, match="must be True, False or a Compression"):
                SharedIndexInformer(ListWatch(nothing, nothing), KubeObject, compress=compress)  # type: ignore[arg-type]

    @pytest.mark.parametrize("object_type", [dict, Pod])
    def test_only_kube_objects_are_compressed(self, object_type: type[Any]) -> None:
        with pytest.raises(ConfigError, match="only KubeObjects"):
            SharedIndexInformer(ListWatch(nothing, nothing), object_type, compress=True)

    def test_error_names_the_missing_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "zstandard", None)
        with pytest.raises(ConfigError, match=r"pip install 'aioinformer\[compression\]'"):
            SharedIndexInformer(ListWatch(nothing, nothing), KubeObject, compress=True)

    def test_zstandard_is_imported_only_if_needed(self) -> None:
        code = "import sys, aioinformer; assert 'zstandard' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_factory_makes_separate_informers_for_compression(self) -> None:
        from aioinformer import Client

        factory = SharedInformerFactory(Client.from_url("http://127.0.0.1:1"))
        plain, packed = (factory.for_resource("v1", "pods", compress=compress) for compress in (False, True))
        assert plain is not packed
        assert factory.for_resource("v1", "pods", compress=True) is packed


async def nothing(*_: Any) -> Any:
    raise AssertionError


def lengths(store: Indexer[KubeObject]) -> int:
    return sum(len(obj._kept) for obj in store.list())


def of_one_kind(kind: str, count: int) -> list[KubeObject]:
    """Return objects that compress well together, but not with objects of another kind."""
    spec = {f"{n}": sha256(f"{kind} {n}".encode()).hexdigest() for n in range(10)}
    return [pod(f"{kind}-{n}", kind=kind, spec=spec) for n in range(count)]


class TestDictionaries:
    """The first dictionary holds the first objects; later ones are trained, again when the cache has changed."""

    def cache(self, **options: Any) -> tuple[Compressor, Indexer[KubeObject]]:
        compressor = Compressor(Compression(**options))
        return compressor, Indexer(pack=compressor.pack)

    def test_first_objects_are_the_first_dictionary(self) -> None:
        compressor, cache = self.cache(dictionary_size=2000)
        objects = of_one_kind("pod", 10)
        packed = [compressor.pack(obj) for obj in objects]
        assert packed[0]._form is AS_JSON
        assert packed[-1]._form is not AS_JSON
        cache.replace(packed)  # objects from before the dictionary are packed now
        assert None not in {obj._form for obj in cache.list()}
        assert cache.list() == objects

    @virtual_time
    async def test_next_dictionary_is_trained(self) -> None:
        compressor, cache = self.cache(dictionary_size=4096, samples=100)
        synced = asyncio.Event()
        objects = of_one_kind("pod", 60) + of_one_kind("node", 60)
        for obj in objects:
            cache.add(obj)
        before = lengths(cache)
        old = cache.list()[-1]._form
        gone = weakref.ref(old)
        del old
        async with run_during(compressor.run(cache, lambda: wait(synced))):
            await until(lambda: lengths(cache) < 0.9 * before)
            assert cache.list() == objects
            synced.set()
            await asyncio.sleep(1)

        def is_released() -> bool:
            gc.collect()
            return gone() is None

        await until(is_released)  # the thread that packed last may still hold it

    async def test_training_works_while_the_default_executor_is_full(self) -> None:
        compressor, cache = self.cache(dictionary_size=4096, samples=100)
        synced = asyncio.Event()
        for obj in of_one_kind("pod", 60) + of_one_kind("node", 60):
            cache.add(obj)
        before = lengths(cache)
        async with full_default_executor(), run_during(compressor.run(cache, lambda: wait(synced))):
            async with asyncio.timeout(20):
                await until(lambda: lengths(cache) < 0.9 * before)

    @virtual_time
    async def test_dictionary_is_trained_again_after_the_cache_changed(self) -> None:
        compressor, cache = self.cache(dictionary_size=1024, samples=50)
        for obj in of_one_kind("pod", 100):
            cache.add(obj)
        async with run_during(compressor.run(cache, nothing_to_wait_for)):
            await asyncio.sleep(1)
            objects = of_one_kind("deployment", 100)
            cache.replace(objects)
            before = lengths(cache)
            await until(lambda: lengths(cache) < 0.9 * before)
            assert cache.list() == objects

    @virtual_time
    async def test_dictionary_is_trained_again_after_a_late_change(self) -> None:
        compressor, cache = self.cache(dictionary_size=1024, samples=50)
        cache.replace(of_one_kind("pod", 100))
        async with run_during(compressor.run(cache, nothing_to_wait_for)):
            for _ in range(40):
                cache.replace(of_one_kind("pod", 100))
                await asyncio.sleep(1)
            cache.replace(of_one_kind("deployment", 100))
            before = lengths(cache)
            for _ in range(2):
                await asyncio.sleep(1)
                cache.replace(of_one_kind("deployment", 100))
            assert lengths(cache) < 0.5 * before

    @virtual_time
    async def test_few_objects_are_compressed_after_sync(self) -> None:
        compressor, cache = self.cache(dictionary_size=100_000)
        for obj in of_one_kind("pod", 20):
            cache.add(obj)
        before = lengths(cache)
        async with run_during(compressor.run(cache, nothing_to_wait_for)):
            await until(lambda: lengths(cache) < before / 2)

    @virtual_time
    async def test_changes_during_compression_are_kept(self) -> None:
        compressor, cache = self.cache(dictionary_size=1024, samples=50)
        objects = {obj.key: obj for obj in of_one_kind("pod", 500)}
        for obj in objects.values():
            cache.add(obj)
        async with run_during(compressor.run(cache, nothing_to_wait_for)):
            for n in range(300):
                newer = pod(f"pod-{n}", version="2")
                cache.add(newer)
                objects[newer.key] = newer
                cache.delete(pod(f"pod-{499 - n // 2}"))
                objects.pop(f"ns/pod-{499 - n // 2}", None)
                await asyncio.sleep(0)
            assert {obj.key: obj for obj in cache.list()} == objects

    @virtual_time
    async def test_cancel_at_any_step_keeps_the_cache(self) -> None:
        for steps in range(60):
            compressor, cache = self.cache(dictionary_size=1024, samples=20)
            objects = of_one_kind("pod", 40)
            for obj in objects:
                cache.add(obj)
            task = asyncio.create_task(compressor.run(cache, nothing_to_wait_for))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()
            assert cache.list() == objects


async def wait(event: asyncio.Event) -> None:
    await event.wait()


async def nothing_to_wait_for() -> None:
    pass


def test_sample_helper_compresses() -> None:
    assert compress_object(pod())._form is not AS_JSON
    assert compress_object(pod()).decode(Pod) == Pod(Meta("a", "ns", "1"))
    assert SMALL.samples == 8

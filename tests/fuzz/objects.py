"""Hostile objects in a small cluster: decoded, handled, cached, queued and scheduled by the daemon's own parts.

However it is: nothing fails but by a field error, pods that are harmless are still decided on, and when the hostile
objects are gone, so is all trace of them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, Final

from hypothesis import strategies as st

from podium.client.informer_set import InformerSet
from podium.config import default_configuration
from podium.daemon.observers import Observers
from podium.daemon.options import Options
from podium.daemon.scheduler import Scheduler
from podium.objects.errors import FieldError
from podium.objects.resource_types import ALL, NODES, PODS
from podium.objects.wire import BrokenObject, ObjectDecoder
from podium.telemetry import Metrics
from tests.fuzz.crowds import crowds
from tests.fuzz.examples import HOSTNAME, NAMESPACE, SCHEDULER, ZONE, example
from tests.fuzz.limits import MeasuringLoop, WorkingClock, stall_s
from tests.fuzz.mutations import Json, Mutation, apply, encode, mutations
from tests.unit.binder.builders import Request, regular_answer

_NODES: Final = 12
_SETTLED_S: Final = 60.0
_BY_KIND: Final = {resource_type.kind: resource_type for resource_type in ALL}
_NAMES: Final = {
    "Node": "node-1",
    "PersistentVolumeClaim": "data",
    "PersistentVolume": "pv-1",
    "StorageClass": "fast",
    "CSINode": "node-1",
    "CSIDriver": "csi.example.com",
    "Namespace": NAMESPACE,
}
_SECTIONS: Final = tuple(name for name in example(PODS.type)["spec"] if name not in ("nodeName", "schedulerName"))
_CLUSTER_WIDE: Final = ("Node", "Namespace", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver", "DeviceClass")


@dataclass(frozen=True)
class Hostile:
    """One object: a kind, the parts that it has if it is a pod, and how it departs from what is usual."""

    kind: str
    sections: tuple[str, ...]
    node_name: str
    changes: tuple[Mutation, ...]

    def versions(self) -> Iterator[bytes]:
        """As it is at first, and after it has changed once more."""
        for count in (len(self.changes) - 1, len(self.changes)):
            yield encode(self._with_names(apply(self._usual(), self.changes[:count])))

    def _usual(self) -> Json:
        example_object = example(_BY_KIND[self.kind].type)
        if self.kind == "Pod":
            spec = {name: part for name, part in example_object["spec"].items() if name in self.sections}
            example_object["spec"] = {**_plain_spec(), **spec, "nodeName": self.node_name}
        example_object["metadata"]["name"] = _NAMES.get(self.kind, "hostile")
        if self.kind in _CLUSTER_WIDE:
            del example_object["metadata"]["namespace"]
        return example_object

    def _with_names(self, manifest: Json) -> Json:
        """With the names that an API server sees to, so that it can be deleted."""
        if isinstance(manifest, dict):
            metadata = manifest.get("metadata")
            own = {"name": _NAMES.get(self.kind, "hostile"), "uid": f"hostile-{self.kind}"}
            place = {} if self.kind in _CLUSTER_WIDE else {"namespace": NAMESPACE}
            manifest["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), **own, **place}
        return manifest


def inputs() -> st.SearchStrategy[list[Hostile]]:
    """A hostile pod, pending or bound, and some other objects."""
    changes = st.lists(mutations(), min_size=1, max_size=4).map(tuple)
    sections = st.lists(st.sampled_from(_SECTIONS), max_size=3, unique=True).map(tuple)
    where = st.sampled_from(("", "", "", "node-1", "node-x"))
    of_a_pod = st.one_of(changes, st.tuples(crowds()), st.tuples(crowds(), mutations()))
    pod = st.builds(Hostile, st.just("Pod"), sections, where, of_a_pod)
    other_kinds = st.builds(Hostile, st.sampled_from(sorted(_BY_KIND)), sections, where, changes)
    one_of_a_kind = st.lists(other_kinds, max_size=2, unique_by=lambda hostile: hostile.kind)
    return st.builds(
        lambda first, others_of_kind: [*(hostile for hostile in others_of_kind if hostile.kind != "Pod"), first],
        pod,
        one_of_a_kind,
    )


def check(hostiles: list[Hostile]) -> float:
    """See that the cluster gets over it. Returns: the longest stretch of CPU time without a break."""
    versions = [(hostile.kind, *hostile.versions()) for hostile in hostiles]
    return stall_s(lambda: _run(versions))


def _run(versions: list[tuple[str, bytes, bytes]]) -> float:
    with asyncio.Runner(loop_factory=MeasuringLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, MeasuringLoop)
        runner.run(_suffer(versions, loop))
        return loop.longest_s


async def _suffer(versions: list[tuple[str, bytes, bytes]], loop: MeasuringLoop) -> None:
    await _Cluster().suffer(versions, loop)


class _Server:
    """Takes every request for good."""

    async def request(self, method: str, path: str, body: bytes | None = None, **_: Any) -> bytes:
        return encode(regular_answer(Request(method, path, body)))


class _Wired:
    """The daemon's parts, fed by hand."""

    def __init__(self) -> None:
        clock, random, metrics = WorkingClock(), Random(1), Metrics()
        self.surprises: list[BaseException | str] = []
        metrics.count_unexpected_error = self._note_surprise  # type: ignore[method-assign]
        server: Any = _Server()
        self.informers = InformerSet(
            server, clock=clock, random=random, on_handler_error=lambda _, error: self._note_surprise("", "")
        )
        observers, config = Observers(metrics, "server"), default_configuration()
        self.scheduler = Scheduler(
            config, Options(), server, self.informers, observers, clock=clock, random=random, metrics=metrics
        )

    def _note_surprise(self, where: str, name: str) -> None:
        error = sys.exception()
        if not isinstance(error, FieldError):
            self.surprises.append(error or f"unexpected error in {where} {name}")


class _Cluster:
    def __init__(self) -> None:
        self._app = _Wired()
        self._decoders = {resource.kind: ObjectDecoder(resource) for resource in self._app.informers.resources}
        self._pods = self._app.informers.informer(PODS)
        self._nodes = self._app.informers.informer(NODES)
        self._version = 100

    async def suffer(self, versions: list[tuple[str, bytes, bytes]], loop: MeasuringLoop) -> None:
        """Live through it: hostile objects come, change and go, and others have to be served all the while."""
        app, scheduler = self._app, self._app.scheduler
        for line in _harmless():
            self._take(*line)
        loop.longest_s = 0.0
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(scheduler.loop.run())
            tasks.create_task(scheduler.writes.recorder.run())
            for turn in (1, 2):
                for version in versions:
                    self._take(version[0], "MODIFIED", version[turn])
                    await asyncio.sleep(0)
                await self._settle(f"plain-{turn}")
            for kind, _, last in versions:
                self._take(kind, "DELETED", last)
                await asyncio.sleep(0)
            for line in _harmless():
                self._take(*line)
            await self._settle("plain-3")
            self._check_recovered()
            scheduler.loop.stop()
            await scheduler.loop.wait_ended()
            await scheduler.writes.recorder.aclose(1.0)
        if app.surprises:
            first = app.surprises[0]
            raise first if isinstance(first, Exception) else AssertionError(first)

    def _take(self, kind: str, change: str, content: bytes) -> None:
        """As `Reflector._deliver` does with one line; what is not watched does not come."""
        decoder = self._decoders.get(kind)
        if decoder is None:
            return
        self._version += 1
        line = b'{"type":"%b","object":%b}' % (change.encode(), content.replace(b'"10"', b'"%d"' % self._version))
        event: Any = decoder.event(line)
        informer = self._app.informers.informer(_BY_KIND[kind])
        if isinstance(event.object, BrokenObject):
            informer.mark_broken(event.object, deleted=change == "DELETED")
        elif change == "DELETED":
            informer.drop(event.object)
        else:
            informer.put(event.object)

    async def _settle(self, name: str) -> None:
        """Time passes, a pod comes, and somebody has to decide on it."""
        await asyncio.sleep(_SETTLED_S)
        self._take("Pod", "ADDED", encode(_plain_pod(name, NAMESPACE)))
        await asyncio.sleep(_SETTLED_S)
        assert not self._app.scheduler.queue.statistics().active, "a pod was not decided on"

    def _check_recovered(self) -> None:
        cache, pod = self._app.scheduler.cache, self._pods.get(f"{NAMESPACE}/plain-3")
        assert pod is not None
        assert cache.is_assumed(pod.uid), "a plain pod finds no place after the hostile objects have gone"
        pods_left = [pod.key for pod in self._pods.list() if pod.uid.startswith("hostile")]
        assert not pods_left, pods_left


# ---------------------------------------------------------------- what is there besides


@cache
def _harmless() -> tuple[tuple[str, str, bytes], ...]:
    """A cluster with nodes, pods on them, and storage, as the lines of watches."""
    manifests: list[tuple[str, Json]] = [("Node", _numbered_node(number)) for number in range(_NODES)]
    for number in range(_NODES):
        pod = _plain_pod(f"running-{number}", NAMESPACE)
        pod["spec"]["nodeName"] = f"node-{number}"
        if number % 3 == 0:
            pod["spec"]["affinity"] = example(PODS.type)["spec"]["affinity"]
        manifests.append(("Pod", pod))
    for kind in ("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode", "Namespace"):
        example_object = example(_BY_KIND[kind].type)
        example_object["metadata"] |= {"name": _NAMES[kind], "uid": f"plain-{kind}"}
        if kind in _CLUSTER_WIDE:
            del example_object["metadata"]["namespace"]
        manifests.append((kind, example_object))
    return tuple((kind, "ADDED", encode(manifest)) for kind, manifest in manifests)


def _numbered_node(number: int) -> Json:
    example_node = example(NODES.type)
    labels = {HOSTNAME: f"node-{number}", ZONE: f"zone-{number % 3}"}
    example_node["metadata"] = {
        "name": f"node-{number}",
        "uid": f"node-{number}",
        "resourceVersion": "10",
        "labels": labels,
    }
    example_node["spec"] = {}
    return example_node


def _plain_pod(name: str, namespace: str) -> Json:
    metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "10", "labels": {"app": "web"}}
    return {"metadata": metadata, "spec": _plain_spec()}


def _plain_spec() -> Json:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "50m", "memory": "16Mi"}}}
    return {"schedulerName": SCHEDULER, "containers": [container]}

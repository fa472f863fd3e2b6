"""What VolumeBinding does between its decision and the binding, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from podium.config.args import VolumeBindingArgs
from podium.framework.contract.bind import PreBindPreFlightResult
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.status import SKIP, Status, unresolvable
from podium.objects import resource_types
from podium.objects.api_errors import Conflict
from podium.objects.core import Pod
from podium.plugins.volume_binding import VolumeBinding
from tests.builders import node, snapshot_of
from tests.unit.plugins.storage import (
    RESOURCES,
    SELECTED_NODE,
    ZONE,
    claim,
    storage_class,
    user,
    volume,
)
from tests.virtual_time import VIRTUAL_TIME, LoopClock

pytestmark = pytest.mark.anyio

STATIC = storage_class(provisioner="kubernetes.io/no-provisioner")
DYNAMIC = storage_class("made")


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


class Store:
    """Objects that change; implements `Lister`."""

    def __init__(self) -> None:
        self.items: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        return self.items.get(key)

    def list(self) -> Any:
        return self.items.values()


class Server:
    """Objects, and a client that writes them; the listers hear of a write at once, or when told."""

    def __init__(self, *items: Any, is_slow: bool = False) -> None:
        self.stores: dict[Any, Store] = {}
        self.is_slow = is_slow
        self.writes: list[tuple[str, Mapping[str, Any]]] = []
        self.refused: dict[str, Exception] = {}
        self._unheard: list[Any] = []
        self._version = 100
        for item in items:
            self.put(item)

    def lister(self, resource: Any) -> Store:
        return self.stores.setdefault(resource, Store())

    def put(self, item: Any) -> None:
        resource = RESOURCES.get(type(item)) or (resource_types.PODS if isinstance(item, Pod) else resource_types.NODES)
        self.lister(resource).items[item.key] = item

    def drop(self, item: Any) -> None:
        for store in self.stores.values():
            store.items.pop(item.key, None)

    def newer(self, item: Any, **fields: Any) -> Any:
        """The object, changed by somebody."""
        self._version += 1
        metadata = replace(item.metadata, resource_version=str(self._version))
        if "annotations" in fields:
            metadata = replace(metadata, annotations=fields.pop("annotations"))
        return replace(item, metadata=metadata, spec=replace(item.spec, **fields))

    async def patch(self, resource: Any, item: Any, change: Mapping[str, Any]) -> Any:
        await anyio.sleep(0.01)
        if item.key in self.refused:
            raise self.refused[item.key]
        assert self.lister(resource).items[item.key].metadata.resource_version == item.metadata.resource_version
        self.writes.append((item.key, change))
        newer_object = self.newer(item)
        self._unheard.append(newer_object)
        if not self.is_slow:
            self.hear()
        return newer_object

    def hear(self) -> None:
        for item in self._unheard:
            self.put(item)
        self._unheard.clear()


class Scene:
    """A pod on its way to a node."""

    def __init__(self, *items: Any, wanting: Pod, timeout_s: int = 600, is_slow: bool = False) -> None:
        nodes = [node(name, labels={ZONE: name}) for name in ("a", "b")]
        self.server = Server(*items, *nodes, wanting, is_slow=is_slow)
        self.current = snapshot_of(*nodes)
        self.clock = LoopClock()
        self.client = self.server
        self.plugin = VolumeBinding(VolumeBindingArgs(timeout_s), self)  # type: ignore[arg-type]
        self.wanting = wanting
        self.state = CycleState()

    def lister(self, resource: Any) -> Store:
        return self.server.lister(resource)

    def snapshot(self) -> Any:
        return self.current

    def decide(self, wanting: Pod | None = None) -> dict[str, tuple[str, ...]]:
        """PreFilter and Filter; the reasons by rejected node."""
        pod = wanting or self.wanting
        self.state = CycleState()
        _, status = self.plugin.pre_filter(self.state, pod, self.current)
        assert status is None, status
        judged = {name: self.plugin.filter(self.state, pod, self.current.node(row)) for name, row in self.rows()}
        return {name: status.reasons for name, status in judged.items() if status is not None}

    def rows(self) -> list[tuple[str, int]]:
        return sorted(self.current.row_of.items())

    def reserve(self, node_name: str = "a") -> Status | None:
        self.decide()
        return self.plugin.reserve(self.state, self.wanting, node_name)

    async def pre_bind(self, node_name: str = "a") -> str:
        """PreBind: "" for success, or what it fails with."""
        status = await self.plugin.pre_bind(self.state, self.wanting, node_name)
        return status.message if status is not None else ""

    async def pre_bind_while(self, *acts: tuple[float, Callable[[], None]]) -> tuple[str, float]:
        """PreBind while others act, each at its second; what it ends with, and when."""
        ends: list[tuple[str, float]] = []
        began_s = self.clock.monotonic()

        async def run() -> None:
            message = await self.pre_bind()
            ends.append((message, round(self.clock.monotonic() - began_s, 1)))

        async def act(at_s: float, do: Callable[[], None]) -> None:
            await anyio.sleep(at_s)
            do()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            for at_s, do in acts:
                tasks.start_soon(act, at_s, do)
        [end] = ends
        return end

    def latest(self, item: Any) -> Any:
        """The object as the listers have it now."""
        return self.server.lister(RESOURCES[type(item)]).get(item.key)

    def complete(self, item: Any, volume_name: str) -> Callable[[], None]:
        """Return the volume controller's act once a claim has its volume."""

        def act() -> None:
            object_now = self.latest(item)
            annotations = {**object_now.metadata.annotations, "pv.kubernetes.io/bind-completed": "yes"}
            self.server.put(self.server.newer(object_now, volume_name=volume_name, annotations=annotations))

        return act


def static_scene(**fields: Any) -> Scene:
    return Scene(claim(), STATIC, volume(reach={ZONE: ["a"]}), wanting=user("data"), **fields)


def dynamic_scene(**fields: Any) -> Scene:
    return Scene(claim(storage_class="made"), DYNAMIC, wanting=user("data"), **fields)


# ---------------------------------------------------------------- reserve


async def test_nothing_is_reserved_for_pods_whose_claims_are_bound() -> None:
    scene = Scene(claim(volume="pv"), volume(), wanting=user("data"))
    assert scene.reserve() is None
    preflight = scene.plugin.pre_bind_pre_flight(scene.state, scene.wanting, "a")
    assert preflight == (PreBindPreFlightResult(allow_parallel=True), SKIP)
    assert await scene.pre_bind() == ""
    scene.plugin.unreserve(scene.state, scene.wanting, "a")
    assert scene.server.writes == []


async def test_nothing_is_reserved_for_pods_without_claims() -> None:
    scene = Scene(wanting=user())
    assert scene.plugin.reserve(CycleState(), scene.wanting, "a") is None
    assert scene.plugin.pre_bind_pre_flight(CycleState(), scene.wanting, "a")[1] == SKIP


async def test_a_reserved_volume_is_not_there_for_the_next_pod() -> None:
    scene = Scene(claim("one"), claim("two"), STATIC, volume(), wanting=user("one"))
    assert scene.reserve() is None
    reasons = ("node(s) didn't find available persistent volumes to bind",)
    assert scene.decide(user("two", name="next")) == {"a": reasons, "b": reasons}


async def test_what_is_unreserved_is_there_again() -> None:
    scene = Scene(claim("one"), claim("two"), STATIC, volume(), wanting=user("one"))
    assert scene.reserve() is None
    scene.plugin.unreserve(scene.state, scene.wanting, "a")
    assert scene.decide(user("two", name="next")) == {}


async def test_a_selected_node_binds_the_next_pod_with_the_claim() -> None:
    scene = dynamic_scene()
    assert scene.reserve("a") is None
    reasons = ("node(s) didn't find available persistent volumes to bind",)
    assert scene.decide(user("data", name="next")) == {"b": reasons}


async def test_an_assumption_ends_when_the_object_changes() -> None:
    scene = Scene(claim("one"), claim("two"), STATIC, volume(), wanting=user("one"))
    assert scene.reserve() is None
    scene.server.put(scene.server.newer(volume()))
    assert scene.decide(user("two", name="next")) == {}


async def test_a_node_that_will_not_do_any_more_is_not_reserved() -> None:
    scene = static_scene()
    assert scene.decide() == {"b": ("node(s) didn't find available persistent volumes to bind",)}
    status = scene.plugin.reserve(scene.state, scene.wanting, "b")
    assert status == unresolvable("node(s) didn't find available persistent volumes to bind")


# ---------------------------------------------------------------- what is written


async def test_a_volume_is_kept_for_the_claim() -> None:
    scene = static_scene()
    assert scene.reserve() is None
    preflight = scene.plugin.pre_bind_pre_flight(scene.state, scene.wanting, "a")
    assert preflight == (PreBindPreFlightResult(allow_parallel=True), None)

    assert await scene.pre_bind_while((2.5, scene.complete(claim(), "pv"))) == ("", 3.0)
    assert scene.server.writes == [
        (
            "pv",
            {
                "metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
                "spec": {
                    "claimRef": {
                        "apiVersion": "v1",
                        "kind": "PersistentVolumeClaim",
                        "namespace": "default",
                        "name": "data",
                        "uid": "claim-data",
                        "resourceVersion": "1",
                    }
                },
            },
        )
    ]


async def test_a_volume_that_its_owner_has_kept_for_the_claim_only_gets_its_uid() -> None:
    owners_volume = volume(claimRef={"namespace": "default", "name": "data"})
    scene = Scene(claim(), STATIC, owners_volume, wanting=user("data"), timeout_s=2)
    assert scene.reserve() is None
    await scene.pre_bind()
    [(key, change)] = scene.server.writes
    assert (key, change["metadata"], change["spec"]["claimRef"]["uid"]) == ("pv", {}, "claim-data")


async def test_a_volume_that_is_kept_for_the_claim_already_is_not_written() -> None:
    data_claim = claim()
    scene = Scene(data_claim, STATIC, volume(kept_for=data_claim), wanting=user("data"))
    assert scene.reserve() is None
    assert await scene.pre_bind_while((1.5, scene.complete(data_claim, "pv"))) == ("", 2.0)
    assert scene.server.writes == []


async def test_a_claim_without_a_volume_gets_its_node_and_the_pod_waits() -> None:
    made_claim = claim(storage_class="made")
    scene = dynamic_scene()
    assert scene.reserve() is None
    provisioned_volume = volume("made-1", storage_class="made", reach={ZONE: ["a"]})
    acts = (0.5, scene.complete(made_claim, "made-1")), (4.5, lambda: scene.server.put(provisioned_volume))
    # Until the volume itself is heard of, the pod waits.
    assert await scene.pre_bind_while(*acts) == ("", 5.0)
    assert scene.server.writes == [("default/data", {"metadata": {"annotations": {SELECTED_NODE: "a"}}})]


async def test_volumes_are_written_before_claims() -> None:
    static, dynamic = claim("static"), claim("dynamic", storage_class="made")
    scene = Scene(static, dynamic, STATIC, DYNAMIC, volume(), wanting=user("dynamic", "static"), timeout_s=1)
    assert scene.reserve() is None
    await scene.pre_bind()
    assert [key for key, _ in scene.server.writes] == ["pv", "default/dynamic"]


async def test_after_a_failed_write_nothing_more_is_written_or_assumed() -> None:
    static, dynamic = claim("static"), claim("dynamic", storage_class="made")
    scene = Scene(static, dynamic, STATIC, DYNAMIC, volume(), wanting=user("static", "dynamic"))
    assert scene.reserve() is None
    scene.server.refused["pv"] = Conflict("the object has been modified", code=409)
    status = await scene.plugin.pre_bind(scene.state, scene.wanting, "a")
    assert status is not None
    assert isinstance(status.error, Conflict)
    assert scene.server.writes == []
    assert scene.decide() == {}
    assert scene.plugin.reserve(scene.state, scene.wanting, "b") is None


async def test_what_has_been_written_stays_assumed_until_it_is_heard_of() -> None:
    static, dynamic = claim("static"), claim("dynamic", storage_class="made")
    scene = Scene(
        static, dynamic, claim("other"), STATIC, DYNAMIC, volume(), wanting=user("static", "dynamic"), is_slow=True
    )
    assert scene.reserve() is None
    scene.server.refused["default/dynamic"] = Conflict("the object has been modified", code=409)
    assert await scene.pre_bind() == "409: the object has been modified"
    scene.plugin.unreserve(scene.state, scene.wanting, "a")
    reasons = ("node(s) didn't find available persistent volumes to bind",)
    assert scene.decide(user("other", name="next")) == {"a": reasons, "b": reasons}


# ---------------------------------------------------------------- waiting


@pytest.mark.parametrize(("timeout_s", "ends_s"), [(600, 600.0), (1, 1.0), (0, 0.0)])
async def test_a_volume_that_does_not_come_in_time_fails_the_pod(timeout_s: int, ends_s: float) -> None:
    scene = dynamic_scene(timeout_s=timeout_s)
    assert scene.reserve() is None
    assert await scene.pre_bind_while() == ("binding volumes: context deadline exceeded", ends_s)


async def test_what_was_known_before_the_write_is_not_taken_for_its_outcome() -> None:
    scene = dynamic_scene(is_slow=True)
    assert scene.reserve() is None
    # Nothing is heard of the annotation: that is no reason to think it was taken back.
    acts = (3.5, scene.server.hear), (4.5, scene.complete(claim(storage_class="made"), "pv"))
    scene.server.put(volume(storage_class="made"))
    assert await scene.pre_bind_while(*acts) == ("", 5.0)


def annotate(scene: Scene, annotations: dict[str, str]) -> Callable[[], None]:
    item = claim(storage_class="made")
    return lambda: scene.server.put(scene.server.newer(scene.latest(item), annotations=annotations))


async def test_provisioning_that_has_failed_ends_the_wait() -> None:
    scene = dynamic_scene()
    assert scene.reserve() is None
    annotate_failure = annotate(scene, {"something": "else"})
    words = 'binding volumes: provisioning failed for PVC "data"'
    assert await scene.pre_bind_while((1.5, annotate_failure)) == (words, 2.0)


async def test_annotations_that_are_gone_end_the_wait() -> None:
    scene = dynamic_scene()
    assert scene.reserve() is None
    words = 'binding volumes: selectedNode annotation reset for PVC "data"'
    assert await scene.pre_bind_while((1.5, annotate(scene, {}))) == (words, 2.0)


async def test_a_pod_that_is_gone_ends_the_wait() -> None:
    scene = dynamic_scene()
    assert scene.reserve() is None
    words = 'binding volumes: pod does not exist any more: pod "web" not found'
    assert await scene.pre_bind_while((1.5, lambda: scene.server.drop(scene.wanting))) == (words, 2.0)


async def test_a_node_that_is_gone_ends_the_wait() -> None:
    scene = dynamic_scene()
    assert scene.reserve() is None
    words = 'binding volumes: failed to get node "a": node "a" not found'
    assert await scene.pre_bind_while((1.5, lambda: scene.server.drop(node("a")))) == (words, 2.0)


async def test_a_volume_that_the_node_cannot_reach_ends_the_wait() -> None:
    scene = dynamic_scene()
    assert scene.reserve() is None
    scene.server.put(volume("far", reach={ZONE: ["b"]}))
    words = 'binding volumes: pv "far" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'
    complete_far = scene.complete(claim(storage_class="made"), "far")
    assert await scene.pre_bind_while((0.5, complete_far)) == (words, 1.0)


async def test_a_volume_that_is_not_kept_any_more_ends_the_wait() -> None:
    scene = static_scene()
    assert scene.reserve() is None
    words = 'binding volumes: ClaimRef got reset for pv "pv"'
    reset = lambda: scene.server.put(scene.server.newer(scene.latest(volume()), claim_ref=None))  # noqa: E731
    assert await scene.pre_bind_while((1.5, reset)) == (words, 2.0)


@pytest.mark.parametrize(
    ("deleted_object", "words"),
    [
        (volume(), 'binding volumes: failed to check binding: persistentvolumes "pv" not found'),
        (claim(), 'binding volumes: failed to check binding: persistentvolumeclaims "default/data" not found'),
    ],
)
async def test_a_volume_or_claim_that_is_gone_ends_the_wait(deleted_object: Any, words: str) -> None:
    scene = static_scene()
    assert scene.reserve() is None
    assert await scene.pre_bind_while((0.5, lambda: scene.server.drop(deleted_object))) == (words, 1.0)


async def test_a_claim_that_is_gone_ends_the_wait_for_its_volume() -> None:
    scene = dynamic_scene()
    assert scene.reserve() is None
    words = 'binding volumes: failed to check provisioning pvc: persistentvolumeclaims "default/data" not found'
    assert await scene.pre_bind_while((0.5, lambda: scene.server.drop(claim()))) == (words, 1.0)

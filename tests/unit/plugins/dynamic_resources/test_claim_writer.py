"""Writes of claims against a client that conflicts and fails; see tests/e2e/test_devices.py for real ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import msgspec
import pytest

from podium.config import NEWEST, RELEASES, Release
from podium.config.args import DynamicResourcesArgs
from podium.daemon.handlers import ResourceClaimHandler
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.status import Status
from podium.framework.contract.writing import BindingInDoubt
from podium.objects.api_errors import ApiError, Conflict, Forbidden, NotFound, OutcomeUnknown
from podium.objects.claims import DELETE_PROTECTION, ResourceClaim
from podium.objects.core import Pod
from podium.objects.resource_types import PODS, EventResource
from podium.plugins.dynamic_resources import claim_writer
from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.plugins.dynamic_resources.pod_devices import PodDevices
from podium.plugins.shared.device_observer import DeviceObserver
from podium.queues import QueueState
from podium.telemetry.metrics import Metrics
from tests.builders import node, pod, snapshot_of
from tests.device_manifests import resource_claim
from tests.unit.plugins.dynamic_resources.claims import (
    GPU,
    DeviceHandle,
    a_claim,
    a_slice,
    allocation,
    special_claim,
    user,
)
from tests.unit.queues.builders import QueueBench

pytestmark = pytest.mark.anyio

OLD, NEW = RELEASES["1.36"], RELEASES["1.37"]
NODES = snapshot_of(node("n1"))
WANTS_GPU = pod(spec={"containers": [{"name": "main", "resources": {"requests": {GPU: "1"}}}]})


class Server:
    """Claims behind a client: versions count up, and errors are raised in turn. The watch shows what is written."""

    def __init__(self, handle: DeviceHandle) -> None:
        self.handle = handle
        self.stored = {claim.key: claim for claim in handle.claims.list()}
        self.errors: list[ApiError | None] = []
        self.written: list[tuple[str, str]] = []
        self.statuses: list[Mapping[str, Any]] = []
        self.shows = True
        self.pod: Pod | ApiError = NotFound("gone")
        self.go_on = anyio.Event()
        self.go_on.set()

    def meddle(self, claim: ResourceClaim) -> None:
        """Another client writes the claim, and the watch has not shown it yet."""
        self.stored[claim.key] = claim

    def _begin(self, verb: str, item: ResourceClaim) -> None:
        self.written.append((verb, item.metadata.name))
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error

    async def patch(
        self, resource: Any, item: ResourceClaim, change: Mapping[str, Any], subresource: str = ""
    ) -> ResourceClaim:
        self._begin(subresource or "metadata", item)
        await self.go_on.wait()
        stored_claim = self.stored[item.key]
        if stored_claim.metadata.resource_version != item.metadata.resource_version:
            raise Conflict("changed")
        manifest = msgspec.to_builtins(stored_claim)
        for part, fields in change.items():
            fields_after = {**manifest.get(part, {}), **fields}
            manifest[part] = {key: value for key, value in fields_after.items() if value is not None}
        manifest["metadata"]["resourceVersion"] = str(int(stored_claim.metadata.resource_version) + 1)
        return self._store(msgspec.convert(manifest, ResourceClaim))

    def _store(self, claim: ResourceClaim) -> ResourceClaim:
        self.stored[claim.key] = claim
        if self.shows:
            self.handle.claims.put(claim)
        return claim

    async def create(self, resource: Any, item: ResourceClaim, manifest: Mapping[str, Any]) -> ResourceClaim:
        self._begin("create", item)
        metadata = {**manifest["metadata"], "uid": "uid-created", "resourceVersion": "1"}
        return self._store(msgspec.convert({**manifest, "metadata": metadata}, ResourceClaim))

    async def read(self, resource: Any, item: Any) -> Any:
        if resource is PODS:
            if isinstance(self.pod, ApiError):
                raise self.pod
            return self.pod
        self._begin("read", item)
        if item.key not in self.stored:
            raise NotFound("gone")
        return self.stored[item.key]

    async def delete(self, resource: Any, item: ResourceClaim) -> None:
        self._begin("delete", item)
        del self.stored[item.key]

    async def merge_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        self.statuses.append(status)


class Binding:
    """A pod whose attempt has chosen n1, up to PreBind."""

    def __init__(self, item: Pod, *objects: Any, release: Release = NEWEST) -> None:
        self.handle = DeviceHandle(*objects, release=release)
        self.server = self.handle.client = Server(self.handle)
        self.plugin = DynamicResources(DynamicResourcesArgs(), self.handle)
        self.pod = self.server.pod = item
        self.attempt()

    def attempt(self) -> None:
        """Begin the next attempt at the pod."""
        self.state = CycleState()
        assert self.plugin.pre_filter(self.state, self.pod, NODES)[1] is None
        self.rejected = self.plugin.filter(self.state, self.pod, NODES.node(0))
        self.reserved = self.plugin.reserve(self.state, self.pod, "n1")

    @property
    def devices(self) -> Any:
        return self.plugin.devices

    async def pre_bind(self) -> Status | None:
        return await self.plugin.pre_bind(self.state, self.pod, "n1")

    async def fails(self) -> str:
        """The reason why PreBind fails; Unreserve follows."""
        status = await self.pre_bind()
        assert status is not None
        self.plugin.unreserve(self.state, self.pod, "n1")
        return status.message

    async def take_back(self) -> None:
        self.plugin.unreserve(self.state, self.pod, "n1")
        work = self.plugin.clean_up(self.state, self.pod)
        assert work is not None
        await work


def of_two(**claim: Any) -> Binding:
    return Binding(user("c"), a_claim(**claim), a_slice("n1", "g0", "g1"))


async def test_the_finalizer_comes_first_then_allocation_and_reservation_at_once() -> None:
    binding = of_two()
    assert await binding.pre_bind() is None
    assert binding.server.written == [("metadata", "c"), ("status", "c")]
    stored_claim = binding.server.stored["default/c"]
    assert stored_claim.metadata.finalizers == (DELETE_PROTECTION,)
    assert stored_claim.is_reserved_for(binding.pod.uid)
    assert stored_claim.status.allocation is not None
    assert stored_claim.status.allocation.allocation_timestamp is not None
    assert not binding.devices.is_in_flight("uid-c")
    assert binding.devices.claims.get("default/c") == stored_claim


async def test_what_was_written_is_assumed_before_the_watch_shows_it() -> None:
    binding = of_two()
    binding.server.shows = False
    assert await binding.pre_bind() is None
    assert binding.devices.claims.get("default/c").status.allocation is not None
    assert binding.devices.allocated_devices().is_dedicated(("gpu.example.com", "n1", "g0"))


async def test_a_claim_that_is_allocated_is_only_reserved() -> None:
    binding = of_two(allocation=allocation("g0"), users=["web-2"])
    assert await binding.pre_bind() is None
    assert binding.server.written == [("status", "c")]
    assert {consumer.name for consumer in binding.server.stored["default/c"].status.reserved_for} == {"web-1", "web-2"}


async def test_a_claim_that_lists_the_pod_is_not_written() -> None:
    binding = of_two(allocation=allocation("g0"), users=["web-1"])
    assert await binding.pre_bind() is None
    assert binding.server.written == []


async def test_a_claim_that_lost_the_pod_since_the_attempt_began_ends_the_binding() -> None:
    binding = of_two(allocation=allocation("g0"), users=["web-1"])
    binding.server.meddle(a_claim(version="7"))
    binding.handle.claims.put(a_claim(version="7"))
    assert await binding.fails() == "claim default/c got deallocated elsewhere in the meantime"


async def test_after_a_harmless_conflict_the_latest_state_is_written() -> None:
    binding = of_two()
    binding.server.meddle(a_claim(version="7", labels={"a": "b"}))
    assert await binding.pre_bind() is None
    assert binding.server.written == [("metadata", "c"), ("read", "c"), ("metadata", "c"), ("status", "c")]


@pytest.mark.parametrize(
    ("meddling_claim", "reason"),
    [
        (a_claim(version="7", allocation=allocation("g1")), "claim default/c got allocated elsewhere in the meantime"),
        (
            a_claim(version="7", deletionTimestamp="2026-01-01T00:00:00Z"),
            "claim default/c got deleted in the meantime",
        ),
    ],
)
async def test_a_conflict_that_matters_ends_the_binding(meddling_claim: ResourceClaim, reason: str) -> None:
    binding = of_two()
    binding.server.meddle(meddling_claim)
    assert await binding.fails() == reason
    assert not binding.devices.is_in_flight("uid-c")


async def test_pods_that_were_rejected_for_devices_in_flight_are_woken_when_their_write_fails() -> None:
    binding = Binding(user("c"), a_claim(), a_claim("other"), a_slice("n1", "g0"))
    queue = QueueBench(binding.plugin)
    handler = ResourceClaimHandler(EventResource.RESOURCE_CLAIM, queue.queue, queue.clock, Metrics(), NEWEST.devices)
    binding.devices.lost = handler.on_update
    queue.add_rejected(waiting := user("other", name="web-2"), "DynamicResources")
    binding.server.errors = [Forbidden("no")]
    await binding.fails()
    assert queue.state_of(waiting) is QueueState.BACKOFF


@pytest.mark.parametrize(("release", "is_dropped"), [(OLD, True), (NEW, False)], ids=["old", "new"])
async def test_an_allocation_that_was_not_written_stays_in_flight_until_unreserve_in_newer_minors(
    release: Release, is_dropped: bool
) -> None:
    binding = Binding(user("c"), a_claim(), a_slice("n1", "g0"), release=release)
    binding.server.errors = [Forbidden("no")]
    assert await binding.pre_bind() is not None
    assert binding.devices.is_in_flight("uid-c") is not is_dropped
    binding.plugin.unreserve(binding.state, binding.pod, "n1")
    assert not binding.devices.is_in_flight("uid-c")


def shared_device(**fields: Any) -> dict[str, Any]:
    """A device of 10 that claims share, and that has to be prepared."""
    conditions = {"bindsToNode": True, "bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    capacity = {"memory": {"value": "10"}}
    return {"name": "g0", "allowMultipleAllocations": True, "capacity": capacity, **conditions, **fields}


def asks_for(amount: str, name: str) -> ResourceClaim:
    request = {"deviceClassName": "gpu", "capacity": {"requests": {"memory": amount}}}
    manifest = resource_claim(name, {"name": "r", "exactly": request})
    manifest["metadata"] |= {"resourceVersion": "1"}
    return msgspec.convert(manifest, ResourceClaim)


@pytest.mark.parametrize(("release", "counts_twice"), [(OLD, False), (NEW, True)], ids=["old", "new"])
async def test_a_share_counts_twice_while_its_device_is_waited_for_in_newer_minors(
    release: Release, counts_twice: bool
) -> None:
    objects = asks_for("4", "c"), asks_for("4", "d"), a_slice("n1", shared_device())
    binding = Binding(user("c"), *objects, release=release)
    second, state = user("d", name="web-2"), CycleState()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(binding.pre_bind)
        await anyio.wait_all_tasks_blocked()
        assert binding.server.stored["default/c"].status.allocation is not None
        assert binding.devices.is_in_flight("uid-c") is counts_twice
        assert binding.plugin.pre_filter(state, second, NODES)[1] is None
        assert (binding.plugin.filter(state, second, NODES.node(0)) is None) is not counts_twice
        tasks.cancel_scope.cancel()
    binding.plugin.unreserve(binding.state, binding.pod, "n1")
    assert binding.plugin.pre_filter(state, second, NODES)[1] is None
    assert binding.plugin.filter(state, second, NODES.node(0)) is None


@pytest.mark.parametrize("release", [OLD, NEW], ids=["old", "new"])
async def test_a_share_counts_once_when_its_pod_is_bound(release: Release) -> None:
    objects = asks_for("4", "c"), asks_for("4", "d"), a_slice("n1", shared_device(bindingConditions=[]))
    binding = Binding(user("c"), *objects, release=release)
    assert await binding.pre_bind() is None
    assert not binding.devices.is_in_flight("uid-c")
    second, state = user("d", name="web-2"), CycleState()
    assert binding.plugin.pre_filter(state, second, NODES)[1] is None
    assert binding.plugin.filter(state, second, NODES.node(0)) is None


@pytest.mark.parametrize("release", [OLD, NEW], ids=["old", "new"])
async def test_a_claim_that_was_allocated_before_reserve_does_not_go_in_flight_in_newer_minors(
    release: Release,
) -> None:
    binding = Binding(user("c"), a_claim(), a_slice("n1", "g0", "g1"), release=release)
    binding.plugin.unreserve(binding.state, binding.pod, "n1")
    other = a_claim(version="7", allocation=allocation("g1"))
    binding.server.meddle(other)
    binding.handle.claims.put(other)
    assert binding.plugin.reserve(binding.state, binding.pod, "n1") is None
    assert binding.devices.is_in_flight("uid-c") is (release is OLD)
    assert await binding.fails() == "claim default/c got allocated elsewhere in the meantime"
    assert not binding.devices.is_in_flight("uid-c")


@pytest.mark.parametrize("release", [OLD, NEW], ids=["old", "new"])
async def test_a_claim_that_is_gone_before_reserve_is_an_error_in_newer_minors(release: Release) -> None:
    binding = Binding(user("c"), a_claim(), a_slice("n1", "g0"), release=release)
    binding.plugin.unreserve(binding.state, binding.pod, "n1")
    binding.handle.claims.drop("default/c")
    status = binding.plugin.reserve(binding.state, binding.pod, "n1")
    if release is OLD:
        assert status is None
        return
    assert status is not None
    assert status.message == (
        "internal error, couldn't signal allocation for claim c: look up assumed claim default/c, UID=uid-c: "
        'could not find ResourceClaim "default/c"'
    )


async def test_an_allocation_that_was_written_wakes_no_pod_as_lost() -> None:
    binding, losses = of_two(), list[Any]()
    binding.devices.lost = lambda *states: losses.append(states)
    assert await binding.pre_bind() is None
    binding.plugin.unreserve(binding.state, binding.pod, "n1")
    assert losses == []


async def test_an_allocation_that_another_pod_of_the_group_has_written_is_only_reserved() -> None:
    binding = of_two()
    written_allocation = allocation("g0")
    binding.server.meddle(a_claim(version="7", allocation=written_allocation, users=["web-2"]))
    assert await binding.pre_bind() is None
    assert {consumer.name for consumer in binding.server.stored["default/c"].status.reserved_for} == {"web-1", "web-2"}
    assert binding.server.written == [("metadata", "c"), ("read", "c"), ("status", "c")]


async def test_an_allocation_that_was_written_although_the_answer_said_otherwise_is_enough() -> None:
    binding = of_two()
    binding.server.meddle(a_claim(version="7", allocation=allocation("g0"), users=["web-1"]))
    assert await binding.pre_bind() is None
    assert binding.server.written == [("metadata", "c"), ("read", "c")]


async def test_a_claim_that_lost_its_allocation_cannot_be_reserved() -> None:
    binding = of_two(allocation=allocation("g0"))
    binding.server.meddle(a_claim(version="7"))
    assert await binding.fails() == "claim default/c got deallocated elsewhere in the meantime"


@pytest.mark.parametrize("users", [[], ["web-1"]])
@pytest.mark.parametrize("is_shown", [False, True])
async def test_a_claim_that_has_other_devices_than_when_the_node_was_chosen_ends_the_binding(
    is_shown: bool, users: list[str]
) -> None:
    binding = of_two(allocation=allocation("g0"))
    meddling_claim = a_claim(version="7", allocation=allocation("g1"), users=["web-2", *users])
    binding.server.meddle(meddling_claim)
    if is_shown:
        binding.handle.claims.put(meddling_claim)
    assert await binding.fails() == "claim default/c got allocated elsewhere in the meantime"
    assert binding.server.stored["default/c"] is meddling_claim


async def test_a_reservation_of_other_devices_than_when_the_node_was_chosen_ends_the_binding() -> None:
    binding = of_two(allocation=allocation("g0"), users=["web-1"])
    binding.handle.claims.put(a_claim(version="7", allocation=allocation("g1"), users=["web-1"]))
    assert await binding.fails() == "claim default/c got allocated elsewhere in the meantime"


async def test_it_gives_up_after_five_conflicts() -> None:
    binding = of_two()
    binding.server.errors = [Conflict("changed"), None] * 5
    assert await binding.fails() == "add allocation and reservation to claim default/c: changed"
    assert binding.server.written.count(("metadata", "c")) == 5


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        ([Forbidden("no")], "add finalizer to claim default/c: no"),
        ([None, Forbidden("no")], "add allocation and reservation to claim default/c: no"),
        ([Conflict("x"), Forbidden("no")], "get updated claim default/c after conflict: no"),
    ],
)
async def test_a_refused_write_ends_the_binding(errors: list[Any], reason: str) -> None:
    binding = of_two()
    binding.server.errors = errors
    assert await binding.fails() == reason


async def test_a_pod_that_is_not_bound_releases_its_claims_but_not_their_devices() -> None:
    binding = of_two()
    await binding.pre_bind()
    binding.server.meddle(msgspec.structs.replace(binding.server.stored["default/c"]))
    await binding.take_back()
    stored_claim = binding.server.stored["default/c"]
    assert stored_claim.status.reserved_for == ()
    assert stored_claim.status.allocation is not None


async def test_a_write_that_failed_leaves_nothing_reserved() -> None:
    binding = of_two()
    binding.server.errors = [Forbidden("no")]
    await binding.fails()
    await binding.take_back()
    assert binding.server.written == [("metadata", "c")]
    assert not binding.devices.allocated_devices().is_dedicated(("gpu.example.com", "n1", "g0"))


async def test_a_claim_that_is_gone_or_cannot_be_released_is_left_alone() -> None:
    for error in (NotFound("gone"), Forbidden("no")):
        binding = of_two()
        await binding.pre_bind()
        binding.server.errors = [error]
        await binding.take_back()
        assert binding.server.written[-1] == ("status", "c")


async def test_an_allocation_in_the_way_is_cleared() -> None:
    binding = Binding(user("c"), a_claim(allocation=allocation("g0", node="n2")), a_slice("n1", "g0"))
    assert binding.rejected is not None
    binding.plugin.post_filter(binding.state, binding.pod, NODES, None)  # type: ignore[arg-type]
    work = binding.plugin.clean_up(binding.state, binding.pod)
    assert work is not None
    await work
    assert binding.server.stored["default/c"].status.allocation is None


async def test_an_allocation_in_the_way_of_many_attempts_is_cleared_once() -> None:
    binding = Binding(user("c"), a_claim(allocation=allocation("g0", node="n2")), a_slice("n1", "g0"))
    binding.server.go_on = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for item in (binding.pod, binding.pod, user("c", name="web-2")):
            binding.pod = item
            binding.attempt()
            binding.plugin.post_filter(binding.state, item, NODES, None)  # type: ignore[arg-type]
            work = binding.plugin.clean_up(binding.state, item)
            assert work is not None
            tasks.start_soon(lambda work=work: work)
        await anyio.wait_all_tasks_blocked()
        binding.server.go_on.set()
    assert binding.server.written == [("status", "c")]
    assert binding.server.stored["default/c"].status.allocation is None


async def test_a_pod_is_tried_again_if_the_allocation_in_its_way_could_not_be_cleared() -> None:
    binding = Binding(user("c"), a_claim(allocation=allocation("g0", node="n2")), a_slice("n1", "g0"))
    for error, is_tried in ((Forbidden("no"), True), (NotFound("gone"), False)):
        binding.handle.activated_later.clear()
        binding.server.errors = [error]
        binding.attempt()
        binding.plugin.post_filter(binding.state, binding.pod, NODES, None)  # type: ignore[arg-type]
        work = binding.plugin.clean_up(binding.state, binding.pod)
        assert work is not None
        await work
        assert (binding.pod.key in binding.handle.activated_later) is is_tried


async def test_what_may_yet_take_a_reservation_back_cannot_any_more_once_the_pod_is_bound() -> None:
    binding = of_two()
    await binding.pre_bind()
    claim_before = binding.server.stored["default/c"]
    binding.server.errors = [OutcomeUnknown("no answer")]
    await binding.take_back()
    binding.attempt()
    assert await binding.pre_bind() is None
    claim_after = binding.server.stored["default/c"]
    assert claim_after.is_reserved_for(binding.pod.uid)
    assert claim_after.status.allocation == claim_before.status.allocation
    assert claim_after.metadata.resource_version != claim_before.metadata.resource_version
    write_count = len(binding.server.written)
    binding.attempt()
    assert await binding.pre_bind() is None
    assert len(binding.server.written) == write_count


async def test_a_pod_that_may_be_bound_yet_keeps_its_claims() -> None:
    binding = of_two()
    await binding.pre_bind()
    binding.state.write(BindingInDoubt())
    binding.plugin.unreserve(binding.state, binding.pod, "n1")
    assert binding.plugin.clean_up(binding.state, binding.pod) is None
    binding.attempt()
    pod_devices = binding.state.read(PodDevices)
    for is_over in (False, True):
        pod_devices.unavailable.add(0)
        binding.plugin.post_filter(binding.state, binding.pod, NODES, None)  # type: ignore[arg-type]
        assert (pod_devices.claim_to_deallocate is not None) is is_over
        binding.handle.clock.advance(60)  # type: ignore[attr-defined]


async def test_a_pod_that_may_be_bound_yet_keeps_its_claims_when_its_next_attempt_fails() -> None:
    binding = of_two()
    await binding.pre_bind()
    binding.state.write(BindingInDoubt())
    binding.plugin.unreserve(binding.state, binding.pod, "n1")
    assert binding.plugin.clean_up(binding.state, binding.pod) is None
    binding.attempt()
    assert await binding.pre_bind() is None
    binding.plugin.unreserve(binding.state, binding.pod, "n1")
    assert binding.plugin.clean_up(binding.state, binding.pod) is None
    binding.handle.clock.advance(60)  # type: ignore[attr-defined]
    await binding.take_back()
    assert binding.server.stored["default/c"].status.reserved_for == ()


@pytest.mark.parametrize(
    ("live_pod", "is_kept", "is_tried"),
    [
        (pod("web-1", node="n1"), True, False),
        (Forbidden("no"), True, True),
        (pod("web-1", node="n1", uid="another"), False, False),
        (NotFound("gone"), False, False),
    ],
)
async def test_a_pod_loses_its_claims_only_if_the_api_server_shows_that_it_is_not_bound(
    live_pod: Pod | ApiError, is_kept: bool, is_tried: bool
) -> None:
    binding = of_two()
    await binding.pre_bind()
    binding.server.pod = live_pod
    await binding.take_back()
    assert binding.server.stored["default/c"].is_reserved_for(binding.pod.uid) is is_kept
    assert (binding.pod.key in binding.handle.activated_later) is is_tried


async def test_a_claim_that_an_earlier_process_reserved_for_the_pod_is_kept_for_a_minute() -> None:
    """That process may have sent a binding just before it ended."""
    reserved_claim = a_claim(allocation=allocation("g0", node="n2"), users=["web-1"])
    binding = Binding(user("c"), reserved_claim, a_slice("n1", "g0"))
    for is_over in (False, False, True):
        binding.attempt()
        binding.plugin.post_filter(binding.state, binding.pod, NODES, None)  # type: ignore[arg-type]
        work = binding.plugin.clean_up(binding.state, binding.pod)
        assert (work is not None) is is_over
        if work is not None:
            await work
        else:
            left_s = binding.handle.activated_later[binding.pod.key]
            binding.handle.clock.advance(left_s / 2 if left_s == 60.0 else left_s)  # type: ignore[attr-defined]
    assert binding.server.stored["default/c"].status.allocation is None


async def test_devices_that_were_withheld_for_a_minute_are_free_once_the_api_server_shows_that_they_are() -> None:
    binding = Binding(user("c"), a_claim(), a_slice("n1", "g0"))
    losses = list[Any]()
    binding.devices.lost = lambda *states: losses.append(states)
    binding.server.errors = [None, OutcomeUnknown("no answer")]
    await binding.fails()
    losses.clear()
    device = ("gpu.example.com", "n1", "g0")
    for answer, is_free in ((Forbidden("no"), False), (None, True)):
        binding.handle.clock.advance(60)  # type: ignore[attr-defined]
        binding.attempt()
        work = binding.plugin.clean_up(binding.state, binding.pod)
        assert work is not None
        binding.server.errors = [answer]
        await work
        assert binding.devices.allocated_devices().is_dedicated(device) is not is_free
        assert bool(losses) is is_free


async def test_devices_that_were_withheld_for_a_minute_stay_so_if_they_were_allocated_late() -> None:
    binding = of_two()
    binding.server.errors = [None, OutcomeUnknown("no answer")]
    await binding.fails()
    late = a_claim(version="7", allocation=allocation("g0"), users=["web-1"])
    binding.server.meddle(late)
    binding.handle.clock.advance(60)  # type: ignore[attr-defined]
    binding.attempt()
    work = binding.plugin.clean_up(binding.state, binding.pod)
    assert work is not None
    await work
    assert binding.devices.claims.get("default/c") is late
    binding.handle.clock.advance(60)  # type: ignore[attr-defined]
    assert binding.devices.allocated_devices().is_dedicated(("gpu.example.com", "n1", "g0"))


async def test_a_reservation_found_after_a_conflict_is_renewed_if_it_may_be_taken_back_yet() -> None:
    binding = of_two()
    unreserved = binding.server.stored["default/c"]
    await binding.pre_bind()
    claim_before = binding.server.stored["default/c"]
    binding.server.errors = [OutcomeUnknown("no answer")]
    await binding.take_back()
    status_after = msgspec.structs.replace(claim_before.status, reserved_for=())
    binding.handle.claims.put(msgspec.structs.replace(unreserved, status=status_after))
    binding.attempt()
    assert await binding.pre_bind() is None
    claim_after = binding.server.stored["default/c"]
    assert claim_after.is_reserved_for(binding.pod.uid)
    assert claim_after.metadata.resource_version != claim_before.metadata.resource_version


@pytest.mark.parametrize(("is_reserved", "is_shown"), [(False, False), (False, True), (True, True)])
async def test_another_claim_of_the_same_name_is_left_alone(is_reserved: bool, is_shown: bool) -> None:
    for meddling_claim in (
        a_claim(uid="other", version="5"),
        a_claim(uid="other", version="5", allocation=allocation("g0")),
    ):
        binding = of_two()
        if is_reserved:
            await binding.pre_bind()
            binding.attempt()
        binding.server.meddle(meddling_claim)
        if is_shown:
            binding.handle.claims.put(meddling_claim)
        assert await binding.fails() == "claim default/c got deleted in the meantime"
        assert binding.server.stored["default/c"] is meddling_claim


async def test_what_was_taken_back_is_known_before_the_watch_shows_it() -> None:
    binding = of_two()
    await binding.pre_bind()
    earlier = binding.state
    binding.attempt()
    later, binding.state = binding.state, earlier
    binding.server.shows = False
    await binding.take_back()
    binding.state = later
    assert await binding.pre_bind() is None
    assert binding.server.stored["default/c"].is_reserved_for(binding.pod.uid)


async def test_a_reservation_that_cannot_be_renewed_ends_the_binding() -> None:
    binding = of_two()
    await binding.pre_bind()
    binding.server.errors = [OutcomeUnknown("no answer"), Forbidden("no")]
    await binding.take_back()
    binding.attempt()
    assert await binding.fails() == "remove reservation from claim default/c: no"


async def test_the_next_attempt_writes_when_what_takes_back_the_last_has_ended() -> None:
    binding = of_two()
    await binding.pre_bind()
    binding.server.go_on = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(binding.take_back)
        await anyio.wait_all_tasks_blocked()
        binding.attempt()
        tasks.start_soon(binding.pre_bind)
        await anyio.wait_all_tasks_blocked()
        binding.server.go_on.set()
    assert binding.server.stored["default/c"].is_reserved_for(binding.pod.uid)
    assert binding.server.written == [("metadata", "c"), *[("status", "c")] * 3]


# ---------------------------------------------------------------- extended resources


async def test_the_claim_for_extended_resources_is_created_and_the_pods_status_names_it() -> None:
    binding = Binding(WANTS_GPU, a_slice("n1", "g0"))
    assert await binding.pre_bind() is None
    ((key, stored_claim),) = binding.server.stored.items()
    assert key.startswith("default/web-1-extended-resources-")
    assert stored_claim.is_reserved_for(WANTS_GPU.uid)
    mapping = {"containerName": "main", "resourceName": GPU, "requestName": "container-0-request-0"}
    (status,) = binding.server.statuses
    assert status == {
        "extendedResourceClaimStatus": {"resourceClaimName": stored_claim.metadata.name, "requestMappings": [mapping]}
    }
    (in_memory,) = binding.state.read(PodDevices).claims
    assert in_memory == stored_claim
    assert binding.devices.allocated_devices().is_dedicated(("gpu.example.com", "n1", "g0"))


async def test_a_claim_that_was_created_in_vain_is_deleted() -> None:
    binding = Binding(WANTS_GPU, a_slice("n1", "g0"))
    binding.server.errors = [None, None, Forbidden("no")]
    assert (await binding.fails()).startswith("add allocation and reservation to claim default/web-1-extended")
    await binding.take_back()
    assert binding.server.stored == {}
    assert not binding.devices.allocated_devices().is_dedicated(("gpu.example.com", "n1", "g0"))


async def test_a_created_claim_that_goes_before_a_watch_has_shown_it_ends_the_binding_and_its_devices_are_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(claim_writer, "_SEEN_POLL_S", 0.0)
    binding, losses = Binding(WANTS_GPU, a_slice("n1", "g0")), list[Any]()
    binding.devices.lost = lambda *states: losses.append(states)
    binding.server.shows = False

    async def lose_all(*_: Any) -> None:
        binding.server.stored.clear()
        binding.server.errors = [Forbidden("no")]

    binding.server.merge_status = lose_all  # type: ignore[method-assign]
    assert (await binding.fails()).endswith("got deleted in the meantime")
    assert not binding.devices.allocated_devices().is_dedicated(("gpu.example.com", "n1", "g0"))
    assert len(losses) == 1


async def test_devices_of_a_created_claim_are_kept_after_a_failure_until_a_watch_shows_that_it_is_gone() -> None:
    binding = Binding(WANTS_GPU, a_slice("n1", "g0"))
    binding.server.shows = False

    async def fail(*_: Any) -> None:
        raise Forbidden("no")

    binding.server.merge_status = fail  # type: ignore[method-assign]
    assert (await binding.fails()).startswith("update pod default/web-1 ExtendedResourceClaimStatus")
    ((key, created_claim),) = binding.server.stored.items()
    await binding.take_back()
    for change in (lambda: None, lambda: binding.handle.claims.put(created_claim)):
        change()
        assert binding.devices.allocated_devices().is_dedicated(("gpu.example.com", "n1", "g0"))
    binding.handle.claims.drop(key)
    assert not binding.devices.allocated_devices().is_dedicated(("gpu.example.com", "n1", "g0"))


async def test_a_claim_that_cannot_be_created_leaves_nothing_behind() -> None:
    binding = Binding(WANTS_GPU, a_slice("n1", "g0"))
    binding.server.errors = [Forbidden("no")]
    assert await binding.fails() == "create claim for extended resources default/<extended-resources>: no"
    await binding.take_back()
    assert [verb for verb, _ in binding.server.written] == ["create"]


async def test_a_claim_left_over_is_deleted_without_its_finalizer() -> None:
    old = special_claim("old", "web-1")
    old = msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, finalizers=(DELETE_PROTECTION,)))
    binding = Binding(WANTS_GPU, old, a_slice("n1", "g0"))
    binding.plugin.post_filter(binding.state, binding.pod, NODES, None)  # type: ignore[arg-type]
    work = binding.plugin.clean_up(binding.state, binding.pod)
    assert work is not None
    await work
    assert [verb for verb, _ in binding.server.written] == ["metadata", "delete"]
    # A claim without devices wakes no pod as it goes.
    assert binding.handle.activated_later.keys() == {binding.pod.key}
    assert binding.server.stored == {}


@pytest.mark.parametrize("is_shown", [False, True])
@pytest.mark.parametrize("error", [None, OutcomeUnknown("no answer")])
async def test_a_claim_for_extended_resources_that_an_earlier_attempt_deletes_ends_the_binding(
    error: ApiError | None, is_shown: bool
) -> None:
    binding = Binding(WANTS_GPU, a_slice("n1", "g0"))
    await binding.pre_bind()
    earlier = binding.state
    binding.attempt()
    later, binding.state = binding.state, earlier
    binding.server.errors = [None, error]
    await binding.take_back()
    ((key, _),) = [(claim.key, claim) for claim in binding.handle.claims.list()]
    if is_shown:
        binding.handle.claims.drop(key)
    binding.state = later
    assert await binding.fails() == f"claim {key} got deleted in the meantime"


async def test_a_deletion_fails_as_it_does_alone_while_another_claim_is_deleted() -> None:
    binding = Binding(WANTS_GPU, a_slice("n1", "g0"))
    writer = binding.plugin._writer

    async def delete(_: Any, item: ResourceClaim) -> None:
        if item.metadata.name == "first":
            await writer._delete(special_claim("second", "web-2"), binding.pod)
            raise Forbidden("no")

    binding.server.delete = delete  # type: ignore[method-assign]
    with pytest.raises(Forbidden):
        await writer._delete(special_claim("first", "web-1"), binding.pod)


async def test_a_claim_for_extended_resources_that_could_not_be_deleted_serves_the_next_attempt() -> None:
    binding = Binding(WANTS_GPU, a_slice("n1", "g0"))
    await binding.pre_bind()
    binding.server.errors = [Forbidden("no")]
    await binding.take_back()
    binding.attempt()
    assert await binding.pre_bind() is None


# ---------------------------------------------------------------- devices that must be prepared


async def test_a_failed_device_ends_the_binding() -> None:
    failed_allocation = allocation("g0", bindingConditions=["ready"], bindingFailureConditions=["broken"])
    condition = {"type": "broken", "status": "True", "reason": "Fire", "message": 'it "burns"'}
    device_status = {"driver": "gpu.example.com", "pool": "n1", "device": "g0", "conditions": [condition]}
    binding = of_two(allocation=failed_allocation, users=["web-1"])
    binding.handle.claims.put(
        a_claim(version="2", allocation=failed_allocation, users=["web-1"], devices=[device_status])
    )
    assert await binding.fails() == 'device binding failed: claim=c, reason=Fire, message="it \\"burns\\""'
    note = "waiting for binding conditions for device on node n1"
    assert binding.handle.events == [("BindingConditionsPending", note)]


class Heard(DeviceObserver):
    """Notes the reports."""

    def __init__(self) -> None:
        self.reports: list[tuple[Any, ...]] = []

    def claim_created(self, *, is_success: bool) -> None:
        self.reports.append(("created", is_success))

    def devices_waited_for(self, profile: str, driver: str, status: str, seconds: float) -> None:
        self.reports.append(("waited", driver, status))

    def device_allocated(self, profile: str, driver: str, status: str) -> None:
        self.reports.append(("allocated", driver, status))


async def test_waits_and_created_claims_are_reported() -> None:
    pending_allocation = allocation("g0", bindingConditions=["ready"])
    device_status = {
        "driver": "gpu.example.com",
        "pool": "n1",
        "device": "g0",
        "conditions": [{"type": "ready", "status": "True"}],
    }
    heard = Heard()
    waits = of_two(allocation=pending_allocation, users=["web-1"], devices=[device_status])
    creates, refused_binding = Binding(WANTS_GPU, a_slice("n1", "g0")), Binding(WANTS_GPU, a_slice("n1", "g0"))
    refused_binding.server.errors = [Forbidden("no")]
    for binding in (waits, creates, refused_binding):
        binding.devices.observer = heard
        await binding.pre_bind()
    assert heard.reports == [
        ("waited", "gpu.example.com", "success"),
        ("allocated", "gpu.example.com", "success"),
        ("created", True),
        ("created", False),
    ]


async def test_devices_that_are_ready_let_the_pod_through() -> None:
    ready_allocation = allocation("g0", bindingConditions=["ready"])
    device_status = {
        "driver": "gpu.example.com",
        "pool": "n1",
        "device": "g0",
        "conditions": [{"type": "ready", "status": "True"}],
    }
    binding = of_two(allocation=ready_allocation, users=["web-1"], devices=[device_status])
    assert await binding.pre_bind() is None

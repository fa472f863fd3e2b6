"""Claims, classes and slices that make no sense: one pod is affected, with upstream's words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.status import Code
from podium.objects.claims import ResourceClaim
from podium.objects.devices import DeviceClass, ResourceSlice
from podium.objects.resource_types import RESOURCE_CLAIMS
from podium.objects.wire import ObjectDecoder
from tests.builders import pod
from tests.unit.plugins.dynamic_resources.claims import GPU, a_claim, a_slice, allocation, special_claim, user
from tests.unit.plugins.dynamic_resources.test_plugin import Attempt

TRUE = "true"


def asks(expression: str, name: str = "c") -> ResourceClaim:
    """A claim for one device that the expression selects."""
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    exactly = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return msgspec.convert({"metadata": metadata, "spec": spec}, ResourceClaim)


@pytest.mark.long
@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("device.", "claim default/c: selector #0: CEL compile error: "),
        ("device.nope", "claim default/c: selector #0: CEL compile error: "),
        ("'a'.matches('(')", "claim default/c: selector #0: CEL compile error: "),
        (
            "1 + 1",
            "claim default/c: selector #0: CEL compile error: must evaluate to bool or the unknown type, not int",
        ),
        (
            "device.attributes['x'].y == 1",
            "claim default/c: selector #0 on device gpu.example.com/n1/g0: CEL runtime error: no such key: y. consi",
        ),
        (
            "lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))",
            "claim default/c: selector #0 on device gpu.example.com/n1/g0: CEL runtime error: ",
        ),
    ],
)
def test_a_selector_that_fails_ends_only_the_attempt_of_its_pod(expression: str, reason: str) -> None:
    attempt = Attempt(user("c"), asks(expression), a_slice("n1", "g0"))
    assert attempt.before is None
    status = next(iter(attempt.statuses.values()))
    assert status.code is Code.ERROR
    assert status.message.startswith(reason)
    assert Attempt(user("d"), asks(expression), asks(TRUE, "d"), a_slice("n1", "g0")).reasons.keys() == {"n2"}


def test_a_pattern_that_would_take_for_ever_elsewhere_is_answered() -> None:
    """As RE2, without backtracking: the work is in proportion to the text."""
    exploding = f"'{'a' * 5000}'.matches('(a*)*(a*)*(a*)*b$')"
    assert Attempt(user("c"), asks(exploding), a_slice("n1", "g0")).reasons == dict.fromkeys(
        ("n1", "n2"), "cannot allocate all claims"
    )


def unreadable(item: ResourceClaim, **fields: Any) -> Any:
    """The claim from the wire, with these fields instead."""
    return (
        ObjectDecoder(RESOURCE_CLAIMS)
        .event(msgspec.json.encode({"type": "ADDED", "object": msgspec.to_builtins(item) | fields}))
        .object
    )


def test_the_devices_of_a_claim_that_cannot_be_read_are_given_to_nobody_else() -> None:
    holder = a_claim("d", allocation=allocation("g0"))
    plain = Attempt(user("c"), a_claim(), a_slice("n1", "g0"), holder)
    unreadable_holder = unreadable(holder, spec=5)
    assert Attempt(user("c"), a_claim(), a_slice("n1", "g0"), unreadable_holder).reasons == plain.reasons
    assert Attempt(user("c"), a_claim(), a_slice("n1", "g0", "g1"), unreadable_holder).reasons.keys() == {"n2"}


@pytest.mark.parametrize(
    "status", [5, {"allocation": "x"}, {"allocation": {"devices": {"results": [5, {"driver": "gpu.example.com"}]}}}]
)
def test_a_claim_of_which_no_device_can_be_read_keeps_only_its_own_pods_waiting(status: Any) -> None:
    unreadable_claim = unreadable(a_claim("d"), status=status)
    assert Attempt(user("c"), a_claim(), a_slice("n1", "g0"), unreadable_claim).reasons.keys() == {"n2"}
    own = Attempt(user("d"), unreadable_claim, a_slice("n1", "g0"))
    assert own.before is not None
    assert own.before.message.startswith("resource claim default/d has a field that cannot be read, status")


def test_a_pod_does_not_get_a_claim_that_cannot_be_read_until_it_is_mended() -> None:
    web, unreadable_claim = user("c"), unreadable(a_claim(version="1"), spec=5)
    attempt = Attempt(web, unreadable_claim, a_slice("n1", "g0"))
    assert attempt.before is not None
    assert (
        attempt.before.message
        == "resource claim default/c has a field that cannot be read, spec: Expected `object`, got `int`"
    )
    assert attempt.plugin.pre_enqueue(web) == attempt.before
    mended = a_claim(version="2")
    attempt.handle.claims.put(mended)
    assert attempt.plugin.after_claim_change(web, unreadable_claim, mended) is QueueingHint.QUEUE
    assert attempt.plugin.pre_enqueue(web) is None


def test_an_extended_resource_waits_for_its_claim_to_be_mended() -> None:
    leftover = unreadable(special_claim("x", "web-1"), spec=5)
    attempt = Attempt(
        pod("web-1", spec={"containers": [{"name": "c", "resources": {"requests": {GPU: "1"}}}]}),
        leftover,
        a_slice("n1", "g0"),
    )
    assert attempt.before is not None
    assert "resource claim default/x has a field that cannot be read" in attempt.before.message


def odd_slice(name: str, *devices: str, generation: int = 1, slices: int = 1, driver: str = "gpu.example.com") -> Any:
    spec = {
        "driver": driver,
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": generation, "resourceSliceCount": slices},
        "devices": [{"name": device} for device in devices],
    }
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


@pytest.mark.parametrize(
    ("slices", "reason"),
    [
        ([odd_slice("a", "g0", slices=2), odd_slice("b", "g0", slices=2)], "invalid resource pools were encountered"),
        ([odd_slice("a", "g0", slices=3), odd_slice("b", "g1", slices=3)], "cannot allocate all claims"),
        ([odd_slice("a", "g0", slices=1), odd_slice("b", "g1", slices=2)], "cannot allocate all claims"),
    ],
)
def test_slices_that_contradict_each_other_offer_nothing(slices: list[Any], reason: str) -> None:
    attempt = Attempt(user("c"), a_claim(), *slices)
    assert attempt.reasons["n1"] == reason
    assert attempt.statuses["n1"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_devices_of_another_driver_do_not_satisfy_a_claim() -> None:
    mine = "device.driver == 'gpu.example.com'"
    attempt = Attempt(user("c"), asks(mine), odd_slice("a", "g0", driver="nic.example.com"))
    assert attempt.reasons["n1"] == "cannot allocate all claims"
    both_attempt = Attempt(user("c"), asks(mine), odd_slice("a", "g0", driver="nic.example.com"), odd_slice("b", "g1"))
    (allocation,) = both_attempt.pod_devices.by_node["n1"].results
    assert [(result.driver, result.device) for result in allocation.devices.results] == [("gpu.example.com", "g1")]


def test_a_class_that_is_deleted_during_an_attempt_is_missed_by_the_next_one() -> None:
    attempt = Attempt(user("c"), a_claim(), a_slice("n1", "g0"))
    classes: Any = attempt.handle.classes
    assert isinstance(classes.get("gpu"), DeviceClass)
    classes.drop("gpu")
    assert attempt.plugin.reserve(attempt.state, attempt.pod, "n1") is None
    attempt.plugin.unreserve(attempt.state, attempt.pod, "n1")
    assert attempt.pod_devices.reserved
    status = attempt.plugin.pre_filter(attempt.state, attempt.pod, snapshot())[1]
    assert status is not None
    assert (status.code, status.message) == (
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        "request r: device class gpu does not exist",
    )


def snapshot() -> Any:
    """Filtering never begins."""
    return None

from __future__ import annotations

from typing import Any

import pytest

from podium.objects.api_errors import Malformed
from podium.server.election import LeaseLock, LeaseRecord
from tests.unit.binder.builders import Request, Wire

pytestmark = pytest.mark.anyio

FOUND = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {
        "name": "podium",
        "namespace": "kube-system",
        "uid": "u1",
        "resourceVersion": "7",
        "labels": {"a": "b"},
    },
    "spec": {
        "holderIdentity": "other",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:02.000000Z",
        "leaseTransitions": 4,
        "strategy": "OldestEmulationVersion",
    },
}
PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


def lock(answer: Any) -> tuple[LeaseLock, Wire]:
    wire = Wire(answer)
    return LeaseLock(wire, "kube-system", "podium", 5.0), wire


async def test_a_lease_is_read() -> None:
    lease, wire = lock(lambda _: FOUND)
    assert await lease.read() == LeaseRecord(
        "other", 15.0, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:02.000000Z", 4
    )
    assert wire.calls == [f"GET {PATH}/podium"]
    assert (lease.reference.uid, lease.reference.resource_version) == ("u1", "7")


async def test_what_else_a_lease_carries_is_written_back_with_the_version_that_was_seen() -> None:
    lease, wire = lock(lambda request: request.body or FOUND)
    await lease.read()
    await lease.replace(LeaseRecord("me", 15.0, "a", "r", 5))
    put_request = wire.requests[-1]
    assert str(put_request) == f"PUT {PATH}/podium"
    assert put_request.body["metadata"] == FOUND["metadata"]
    assert put_request.body["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "a",
        "renewTime": "r",
        "leaseTransitions": 5,
        "strategy": "OldestEmulationVersion",
    }


async def test_each_write_replaces_the_version_that_the_one_before_it_made() -> None:
    versions = iter("123")

    def answer(request: Request) -> Any:
        metadata = {"name": "podium", "namespace": "kube-system", "resourceVersion": next(versions)}
        return {**(request.body or FOUND), "metadata": metadata}

    lease, wire = lock(answer)
    await lease.create(LeaseRecord("me", 15.0))
    await lease.replace(LeaseRecord("me", 15.0))
    await lease.replace(LeaseRecord("me", 15.0))
    assert [str(request) for request in wire.requests] == [f"POST {PATH}", *[f"PUT {PATH}/podium"] * 2]
    assert [request.body["metadata"].get("resourceVersion") for request in wire.requests] == [None, "1", "2"]


async def test_a_lease_without_a_spec_is_held_by_nobody() -> None:
    lease, _ = lock(lambda _: {**FOUND, "spec": None})
    assert await lease.read() == LeaseRecord("", 0.0)


SENSELESS: list[Any] = [
    b"",
    b"<html>Log in</html>",
    {"kind": "Status", "apiVersion": "v1", "status": "Success"},
    {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "podium", "namespace": "other"}},
    {**FOUND, "kind": "LeaseList"},
    {**FOUND, "apiVersion": "v1"},
    {**FOUND, "spec": {"leaseTransitions": "many"}},
    {**FOUND, "spec": 5},
]


@pytest.mark.parametrize("answer", [*SENSELESS, [None]])
async def test_what_is_no_lease_is_an_error_of_the_server(answer: Any) -> None:
    lease, _ = lock(lambda _: answer)
    with pytest.raises(Malformed, match="Lease kube-system/podium"):
        await lease.read()


@pytest.mark.parametrize("answer", [*SENSELESS, FOUND])
async def test_a_write_answered_by_anything_but_the_lease_as_written_is_not_believed(answer: Any) -> None:
    lease, _ = lock(lambda request: answer if request.method == "PUT" else FOUND)
    await lease.read()
    with pytest.raises(Malformed, match="Lease kube-system/podium"):
        await lease.replace(LeaseRecord("me", 15.0))
    assert lease.reference.resource_version == "7"


async def test_rules_of_this_replica_are_noted_beside_what_else_the_lease_carries() -> None:
    wire = Wire(lambda request: request.body or FOUND)
    lease = LeaseLock(wire, "kube-system", "podium", 5.0, "1.37")
    await lease.create(LeaseRecord("me", 15.0))
    assert wire.requests[-1].body["metadata"]["annotations"] == {"podium/decides-as": "1.37"}
    await lease.read()
    await lease.replace(LeaseRecord("me", 15.0))
    assert wire.requests[-1].body["metadata"] == {**FOUND["metadata"], "annotations": {"podium/decides-as": "1.37"}}


@pytest.mark.parametrize(("theirs", "other"), [("1.36", "1.36"), ("1.37", ""), (None, "")])
async def test_rules_of_the_previous_leader_are_other_if_they_differ(theirs: str | None, other: str) -> None:
    annotations = {} if theirs is None else {"podium/decides-as": theirs}
    metadata = {**FOUND["metadata"], "annotations": annotations}
    wire = Wire(lambda request: request.body or {**FOUND, "metadata": metadata})
    lease = LeaseLock(wire, "kube-system", "podium", 5.0, "1.37")
    await lease.read()
    await lease.replace(LeaseRecord("me", 15.0))
    assert lease.other_rules == other

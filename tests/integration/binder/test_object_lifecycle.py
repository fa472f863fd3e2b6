"""Objects that are created, read and deleted, against both API servers and through faults."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.objects.api_errors import AlreadyExists, InternalError, NotFound
from podium.objects.claims import ResourceClaim
from podium.objects.resource_types import RESOURCE_CLAIMS
from tests.integration.binder.conftest import Cluster, FaultyCluster

pytestmark = pytest.mark.anyio

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


@pytest.fixture
def anyio_backend() -> object:
    return "asyncio", {"use_uvloop": True}


def manifest(owner: str = "uid-web") -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": owner, "controller": True}
    metadata = {"name": "mine", "namespace": "default", "ownerReferences": [reference]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": {}}}


def claim(owner: str = "uid-web") -> ResourceClaim:
    return msgspec.convert(manifest(owner), ResourceClaim)


async def test_an_object_is_created_read_and_deleted(cluster: Cluster) -> None:
    created_claim = await cluster.client.create(RESOURCE_CLAIMS, claim(), manifest())
    assert created_claim.metadata.uid
    assert await cluster.client.read(RESOURCE_CLAIMS, claim()) == created_claim
    await cluster.client.delete(RESOURCE_CLAIMS, created_claim)
    with pytest.raises(NotFound):
        await cluster.client.read(RESOURCE_CLAIMS, claim())
    await cluster.client.delete(RESOURCE_CLAIMS, created_claim)


async def test_a_lost_answer_leaves_one_object_and_returns_it(cluster: Cluster) -> None:
    cluster.session.to_lose = 1
    created_claim = await cluster.client.create(RESOURCE_CLAIMS, claim(), manifest())
    assert created_claim.metadata.uid == (await cluster.admin.get(f"{CLAIMS}/mine"))["metadata"]["uid"]
    cluster.session.to_lose = 1
    await cluster.client.delete(RESOURCE_CLAIMS, created_claim)
    with pytest.raises(NotFound):
        await cluster.client.read(RESOURCE_CLAIMS, created_claim)


async def test_another_object_of_the_name_is_not_taken_for_ones_own(cluster: Cluster) -> None:
    await cluster.admin.create(CLAIMS, manifest("uid-other"))
    with pytest.raises(AlreadyExists):
        await cluster.client.create(RESOURCE_CLAIMS, claim(), manifest())


async def test_another_object_of_the_name_is_not_deleted(cluster: Cluster) -> None:
    created_claim = await cluster.client.create(RESOURCE_CLAIMS, claim(), manifest())
    await cluster.admin.delete(f"{CLAIMS}/mine")
    foreign_claim = await cluster.admin.create(CLAIMS, manifest("uid-other"))
    await cluster.client.delete(RESOURCE_CLAIMS, created_claim)
    assert (await cluster.admin.get(f"{CLAIMS}/mine"))["metadata"]["uid"] == foreign_claim["metadata"]["uid"]


async def test_a_server_that_only_fails_says_so(faulty: FaultyCluster) -> None:
    faulty.faults.server_error(None, verb="create", resource="resourceclaims")
    with pytest.raises(InternalError):
        await faulty.cluster.client.create(RESOURCE_CLAIMS, claim(), manifest())


async def test_the_status_is_patched_by_itself(cluster: Cluster) -> None:
    created_claim = await cluster.client.create(RESOURCE_CLAIMS, claim(), manifest())
    cluster.session.to_lose = 1
    change = {"status": {"allocation": {"devices": {}, "allocationTimestamp": "2026-01-01T00:00:00Z"}}}
    patched = await cluster.client.patch(RESOURCE_CLAIMS, created_claim, change, "status")
    assert patched.status.allocation is not None
    stored_claim = await cluster.admin.get(f"{CLAIMS}/mine")
    assert stored_claim["metadata"]["resourceVersion"] == patched.metadata.resource_version


async def test_a_refusal_after_an_answer_in_doubt_does_not_settle_it(faulty: FaultyCluster) -> None:
    for verb in ("create", "delete"):
        faulty.faults.server_error(verb=verb, resource="resourceclaims")
        faulty.faults.server_error(None, code=403, verb=verb, resource="resourceclaims")
    with pytest.raises(InternalError):
        await faulty.cluster.client.create(RESOURCE_CLAIMS, claim(), manifest())
    with pytest.raises(InternalError):
        await faulty.cluster.client.delete(RESOURCE_CLAIMS, claim())

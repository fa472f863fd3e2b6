"""Changes of an object at the version that was read, against both API servers and through faults."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.objects.api_errors import Conflict, InternalError, NotFound
from podium.objects.resource_types import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from podium.objects.storage import PersistentVolume, PersistentVolumeClaim
from tests.integration.binder.conftest import Cluster, FaultyCluster
from tests.workload_manifests import claim

pytestmark = pytest.mark.anyio

VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
SELECTED = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}}
KEPT: dict[str, Any] = {
    "metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
    "spec": {"claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": "u"}},
}


@pytest.fixture
def anyio_backend() -> object:
    return "asyncio", {"use_uvloop": True}


async def created_claim(cluster: Cluster) -> PersistentVolumeClaim:
    """A new claim, as our informers would show it."""
    return msgspec.convert(await cluster.admin.create(CLAIMS, claim(size="1Gi")), PersistentVolumeClaim)


async def a_volume(cluster: Cluster) -> PersistentVolume:
    """A new volume, as our informers would show it."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": "slow",
        "csi": {"driver": "disk.example.com", "volumeHandle": "h", "fsType": "ext4"},
    }
    volume_object = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": spec}
    return msgspec.convert(await cluster.admin.create(VOLUMES, volume_object), PersistentVolume)


async def test_a_change_is_merged_into_the_object_and_its_new_state_is_returned(cluster: Cluster) -> None:
    volume = await a_volume(cluster)
    patched_volume = await cluster.client.patch(PERSISTENT_VOLUMES, volume, KEPT)
    stored_volume = await cluster.admin.get(f"{VOLUMES}/pv")
    assert (
        patched_volume.metadata.resource_version
        == stored_volume["metadata"]["resourceVersion"]
        != volume.metadata.resource_version
    )
    assert patched_volume.spec.claim_ref is not None
    assert patched_volume.spec.claim_ref.uid == "u"
    assert stored_volume["spec"]["claimRef"] == KEPT["spec"]["claimRef"]
    assert stored_volume["spec"]["csi"]["fsType"] == "ext4"  # what podium does not read stays as it is


async def test_an_object_that_has_changed_meanwhile_is_left_alone(cluster: Cluster) -> None:
    stored_claim = await created_claim(cluster)
    await cluster.admin.patch(f"{CLAIMS}/data", {"metadata": {"labels": {"changed": "yes"}}})
    with pytest.raises(Conflict):
        await cluster.client.patch(PERSISTENT_VOLUME_CLAIMS, stored_claim, SELECTED)
    assert "annotations" not in (await cluster.admin.get(f"{CLAIMS}/data"))["metadata"]


async def test_an_object_that_is_gone_is_not_found(cluster: Cluster) -> None:
    volume = await a_volume(cluster)
    await cluster.admin.patch(f"{VOLUMES}/pv", {"metadata": {"finalizers": None}})
    await cluster.admin.delete(f"{VOLUMES}/pv")
    with pytest.raises(NotFound):
        await cluster.client.patch(PERSISTENT_VOLUMES, volume, KEPT)


async def test_a_lost_answer_leaves_the_object_changed_exactly_once(cluster: Cluster) -> None:
    stored_claim = await created_claim(cluster)
    cluster.session.to_lose = 1
    patched_claim = await cluster.client.patch(PERSISTENT_VOLUME_CLAIMS, stored_claim, SELECTED)
    stored_document = await cluster.admin.get(f"{CLAIMS}/data")
    assert patched_claim.metadata.resource_version == stored_document["metadata"]["resourceVersion"]
    assert patched_claim.metadata.annotations == SELECTED["metadata"]["annotations"]
    assert cluster.session.writes == [f"PATCH {CLAIMS}/data"]


async def test_a_500_that_did_nothing_is_followed_by_another_try(faulty: FaultyCluster) -> None:
    stored_claim = await created_claim(faulty.cluster)
    faulty.faults.server_error(verb="patch", resource="persistentvolumeclaims")
    faulty.faults.server_error(verb="get", resource="persistentvolumeclaims")
    patched_claim = await faulty.cluster.client.patch(PERSISTENT_VOLUME_CLAIMS, stored_claim, SELECTED)
    assert patched_claim.metadata.annotations == SELECTED["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (200, "<html>Log in</html>"),
        (200, "{}"),
        (207, "{}"),
        (200, '{"kind":"Status","apiVersion":"v1","status":"Success"}'),
        (200, '{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"name":"b","namespace":"default"}}'),
    ],
)
async def test_an_answer_that_makes_no_sense_is_followed_by_another_try(
    faulty: FaultyCluster, code: int, body: str
) -> None:
    stored_claim = await created_claim(faulty.cluster)
    faulty.faults.invalid_answer(code=code, body=body, verb="patch", resource="persistentvolumeclaims")
    faulty.faults.invalid_answer(code=code, body=body, verb="get", resource="persistentvolumeclaims")
    patched_claim = await faulty.cluster.client.patch(PERSISTENT_VOLUME_CLAIMS, stored_claim, SELECTED)
    assert patched_claim.metadata.name == "data"
    assert patched_claim.metadata.annotations == SELECTED["metadata"]["annotations"]


async def test_a_server_that_only_fails_leaves_the_object_alone_and_says_so(faulty: FaultyCluster) -> None:
    stored_claim = await created_claim(faulty.cluster)
    faulty.faults.server_error(None, verb="patch", resource="persistentvolumeclaims")
    with pytest.raises(InternalError):
        await faulty.cluster.client.patch(PERSISTENT_VOLUME_CLAIMS, stored_claim, SELECTED)
    assert "annotations" not in (await faulty.cluster.admin.get(f"{CLAIMS}/data"))["metadata"]


async def test_an_answer_in_doubt_and_a_change_by_another_is_a_conflict(faulty: FaultyCluster) -> None:
    stored_claim = await created_claim(faulty.cluster)
    await faulty.cluster.admin.patch(f"{CLAIMS}/data", {"metadata": {"labels": {"changed": "yes"}}})
    faulty.faults.server_error(verb="patch", resource="persistentvolumeclaims")
    with pytest.raises(Conflict, match='persistentvolumeclaims "default/data" has changed meanwhile'):
        await faulty.cluster.client.patch(PERSISTENT_VOLUME_CLAIMS, stored_claim, SELECTED)


async def test_an_object_that_cannot_be_read_again_leaves_the_doubt(faulty: FaultyCluster) -> None:
    stored_claim = await created_claim(faulty.cluster)
    faulty.faults.server_error(None, verb="patch", resource="persistentvolumeclaims")
    faulty.faults.server_error(None, verb="get", resource="persistentvolumeclaims")
    with pytest.raises(InternalError) as error:
        await faulty.cluster.client.patch(PERSISTENT_VOLUME_CLAIMS, stored_claim, SELECTED)
    assert all(note.startswith("the object could not be read again: ") for note in error.value.__notes__)


async def test_a_refusal_after_an_answer_in_doubt_does_not_settle_it(faulty: FaultyCluster) -> None:
    stored_claim = await created_claim(faulty.cluster)
    faulty.faults.server_error(verb="patch", resource="persistentvolumeclaims")
    faulty.faults.server_error(None, code=403, verb="patch", resource="persistentvolumeclaims")
    with pytest.raises(InternalError):
        await faulty.cluster.client.patch(PERSISTENT_VOLUME_CLAIMS, stored_claim, SELECTED)

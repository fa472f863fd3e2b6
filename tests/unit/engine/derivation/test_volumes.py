import pytest

from podium.engine.derivation.volumes import controller_writes, immediate_binding
from podium.engine.manifests import read_manifest
from podium.engine.store import ObjectStore
from podium.framework.contract.writing import ObjectWrite
from podium.objects.resource_types import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from tests.manifests import ZONE, node
from tests.workload_manifests import claim, storage

MANUAL = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "manual"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "Immediate",
}


def _volume(name="disk", size="10Gi", **spec):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "manual",
            **spec,
        },
        "status": {"phase": "Available"},
    }


def _read(manifest):
    return read_manifest(manifest, PERSISTENT_VOLUME_CLAIMS)


def _after(writes):
    return {write.resource.kind: write.after for write in writes}


def test_a_claim_of_a_class_that_does_not_wait_is_bound_to_the_smallest_volume_that_suits():
    store = ObjectStore.of([MANUAL, _volume("large", "50Gi"), _volume("small", "10Gi"), _volume("tiny", "1Gi")])
    objects_after = _after(immediate_binding(store, _read(claim(storage_class="manual"))))
    assert objects_after["PersistentVolumeClaim"].spec.volume_name == "small"
    assert objects_after["PersistentVolumeClaim"].status.phase == "Bound"
    assert objects_after["PersistentVolume"].spec.claim_ref.name == "data"


def test_a_claim_that_no_volume_suits_stays():
    store = ObjectStore.of([MANUAL, _volume("tiny", "1Gi"), _volume("other", storageClassName="slow")])
    assert immediate_binding(store, _read(claim(storage_class="manual"))) == ()


def test_a_claim_of_a_class_that_waits_or_that_is_bound_stays():
    volume = _volume(storageClassName="slow")
    assert immediate_binding(ObjectStore.of([*storage("10Gi"), volume]), _read(claim())) == ()
    bound_claim = claim(storage_class="manual")
    bound_claim["spec"]["volumeName"] = "other"
    assert immediate_binding(ObjectStore.of([MANUAL, _volume()]), _read(bound_claim)) == ()


def test_a_volume_that_the_scheduler_has_chosen_is_bound():
    reference = {"namespace": "default", "name": "data", "uid": "PersistentVolumeClaim/default/data"}
    volume = _volume(claimRef=reference)
    store = ObjectStore.of([MANUAL, volume, claim(storage_class="manual")])
    read_volume = read_manifest(volume, PERSISTENT_VOLUMES)
    objects_after = _after(controller_writes(store, [ObjectWrite(PERSISTENT_VOLUMES, None, read_volume)], "n1"))
    assert objects_after["PersistentVolumeClaim"].spec.volume_name == "disk"
    assert objects_after["PersistentVolume"].status.phase == "Bound"
    assert objects_after["PersistentVolume"].metadata.resource_version != read_volume.metadata.resource_version


@pytest.mark.parametrize(("topology_keys", "zones"), [([ZONE], [("a",)]), ([], []), (["absent"], [])])
def test_a_volume_is_provisioned_in_reach_of_the_node_that_was_selected(topology_keys, zones):
    claim_with_node = claim(metadata={"annotations": {"volume.kubernetes.io/selected-node": "n1"}})
    csi_node = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1"},
        "spec": {"drivers": [{"name": "slow.example.com", "nodeID": "n1", "topologyKeys": topology_keys}]},
    }
    store = ObjectStore.of([*storage("10Gi"), node("n1", labels={ZONE: "a"}), csi_node, claim_with_node])
    writes = list(controller_writes(store, [ObjectWrite(PERSISTENT_VOLUME_CLAIMS, None, _read(claim_with_node))], "n1"))
    volume = writes[0].after
    assert (volume.spec.capacity, volume.spec.csi.driver) == ({"storage": "5Gi"}, "slow.example.com")
    affinity = volume.spec.node_affinity
    terms = affinity.required.node_selector_terms if affinity is not None else ()
    assert [expression.values for term in terms for expression in term.match_expressions] == zones
    bound_claim = _after(writes[1:])["PersistentVolumeClaim"]
    assert bound_claim.spec.volume_name == volume.metadata.name


def test_other_writes_bind_no_volume():
    store = ObjectStore.of([MANUAL, claim(storage_class="manual")])
    writes = [ObjectWrite(PERSISTENT_VOLUME_CLAIMS, None, _read(claim(storage_class="manual")))]
    assert list(controller_writes(store, writes, "n1")) == []

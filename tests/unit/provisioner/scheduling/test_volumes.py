"""Volumes of a pod: the nodes that they allow, how many a node can have, and their faults."""

from __future__ import annotations

from typing import Any

import pytest

from podium.provisioner.scheduling.volumes import BIND_COMPLETED, VolumeError, Volumes, exceeds_limits, together
from podium.provisioner.state.reading import read_objects
from tests.unit.provisioner.clusters import (
    HOSTNAME,
    ZONE,
    Document,
    as_pod,
    managed_node,
    node,
    node_claim,
    plan,
    pod,
    requirement,
    spread,
)
from tests.workload_manifests import claim as volume_claim


def claim(name: str = "data", *, volume: str = "", storage_class: str | None = None, **fields: Any) -> Document:
    bind_annotations = {"annotations": {BIND_COMPLETED: "yes"}} if volume else {}
    metadata = {**bind_annotations, **fields.pop("metadata", {})}
    return volume_claim(name, storage_class=storage_class, metadata=metadata, volumeName=volume, **fields)


def volume(name: str = "pv", *alternatives: Document, **spec: Any) -> Document:
    terms = [{"matchExpressions": [alternative]} for alternative in alternatives]
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if terms else {}
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": {**affinity, **spec}}


def storage_class(name: str = "zonal", *zones: str, mode: str = "WaitForFirstConsumer") -> Document:
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]} for zone in zones]
    return {
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": mode,
        "allowedTopologies": topologies,
    }


def using(*claims: str) -> Document:
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    return pod("a", volumes=volumes)


def alternatives(*objects: Document, claims: tuple[str, ...] = ("data",)) -> list[str]:
    return [str(alternative) for alternative in Volumes(read_objects(objects)).alternatives(as_pod(using(*claims)))]


def fault(*objects: Document) -> str | None:
    return Volumes(read_objects(objects)).fault(as_pod(using("data")))


def test_each_term_of_a_volume_is_an_alternative() -> None:
    zonal_volume = volume("pv", requirement(ZONE, "In", "a"), requirement(ZONE, "In", "b"))
    assert alternatives(claim(volume="pv"), zonal_volume) == [f"{ZONE} In [a]", f"{ZONE} In [b]"]
    assert alternatives(claim(volume="pv"), volume("pv")) == []


def test_each_topology_of_a_class_is_an_alternative() -> None:
    assert alternatives(claim(storage_class="zonal"), storage_class("zonal", "a", "b")) == [
        f"{ZONE} In [a]",
        f"{ZONE} In [b]",
    ]


def test_combinations_that_contradict_themselves_are_left_out_unless_all_do() -> None:
    claims = [claim("one", storage_class="ab"), claim("two", storage_class="b"), claim("three", storage_class="c")]
    classes = [storage_class("ab", "a", "b"), storage_class("b", "b"), storage_class("c", "c")]
    assert alternatives(*claims, *classes, claims=("one", "two")) == [f"{ZONE} In [b]"]
    assert alternatives(*claims, *classes, claims=("two", "three")) == [f"{ZONE} DoesNotExist"]


def test_a_directory_of_a_node_does_not_keep_the_pod_there() -> None:
    term = requirement(HOSTNAME, "In", "n1")
    (only,) = Volumes(read_objects([claim(volume="pv"), volume("pv", term, local={"path": "/x"})])).alternatives(
        as_pod(using("data"))
    )
    assert len(only) == 0
    elsewhere = Volumes(read_objects([claim(volume="pv"), volume("pv", term, csi={"driver": "d"})]))
    assert HOSTNAME in elsewhere.alternatives(as_pod(using("data")))[0]


def test_a_claim_that_is_missing_has_no_alternatives() -> None:
    with pytest.raises(VolumeError, match='PersistentVolumeClaim "data" not found'):
        alternatives()


def test_claims_are_counted_by_driver() -> None:
    objects = [
        claim("one", volume="pv"),
        volume("pv", csi={"driver": "csi.example.com"}),
        claim("two", storage_class="zonal"),
        storage_class(),
    ]
    volumes = Volumes(read_objects(objects)).attached_volumes(as_pod(using("one", "two", "missing")))
    assert volumes == {"csi.example.com": {"default/one"}, "ebs.csi.aws.com": {"default/two"}}


def test_a_volume_that_pods_share_counts_once() -> None:
    union = together({"d": frozenset("ab")}, {"d": frozenset("bc"), "e": frozenset("x")})
    assert union == {"d": frozenset("abc"), "e": frozenset("x")}
    assert exceeds_limits(union, {"d": 2})
    assert not exceeds_limits(union, {"d": 3})


@pytest.mark.parametrize(
    ("objects", "answer"),
    [
        ([], 'getting persistent volume claim, PersistentVolumeClaim "data" not found (PersistentVolumeClaim=data)'),
        (
            [claim(metadata={"deletionTimestamp": "2026-05-01T00:00:00Z"})],
            "persistentvolumeclaim is being deleted (PersistentVolumeClaim=default/data)",
        ),
        (
            [claim(status={"phase": "Lost"})],
            (
                "persistentvolumeclaim bound to non-existent persistentvolume "
                "(PersistentVolume=, PersistentVolumeClaim=default/data)"
            ),
        ),
        (
            [claim(volume="pv")],
            (
                'failed to validate pvc, PersistentVolume "pv" not found '
                "(PersistentVolume=pv, PersistentVolumeClaim=default/data, StorageClass=)"
            ),
        ),
        (
            [claim(volume="pv", metadata={"annotations": {}}), volume()],
            (
                "pvc is considered unbound because it does not contain annotation (PersistentVolume=pv, "
                "PersistentVolumeClaim=data, annotation=pv.kubernetes.io/bind-completed)"
            ),
        ),
        (
            [claim()],
            "unbound pvc must define a storage class (PersistentVolumeClaim=default/data, StorageClass=)",
        ),
        (
            [claim(storage_class="gone")],
            (
                'failed to validate pvc, failed to get storage class, StorageClass.storage.k8s.io "gone" not found '
                "(PersistentVolumeClaim=default/data, StorageClass=gone)"
            ),
        ),
        (
            [claim(storage_class="now"), storage_class("now", mode="Immediate")],
            (
                "failed to validate pvc, pvc with immediate volume binding mode must be bound "
                "(PersistentVolumeClaim=default/data, StorageClass=now)"
            ),
        ),
        ([claim(storage_class="zonal"), storage_class()], None),
        ([claim(volume="pv"), volume()], None),
    ],
)
def test_a_claim_that_cannot_be_used_has_the_reason(objects: list[Document], answer: str | None) -> None:
    assert fault(*objects) == answer


def test_a_new_node_is_bought_where_the_volume_is() -> None:
    objects = [claim(volume="pv"), volume("pv", requirement(ZONE, "In", "zone-3"))]
    (node_claim,) = plan(using("data"), *objects)["claims"]
    assert {requirement["key"]: requirement.get("values") for requirement in node_claim["requirements"]}[ZONE] == [
        "zone-3"
    ]


def test_a_node_takes_only_as_many_volumes_as_its_driver_allows() -> None:
    drivers = [{"name": "ebs.csi.aws.com", "allocatable": {"count": 0}}]
    full = {"kind": "CSINode", "metadata": {"name": "n1"}, "spec": {"drivers": drivers}}
    objects = [using("data"), claim(storage_class="zonal"), storage_class(), node("n1")]
    assert plan(*objects)["existing"] == {"n1": ["default/a"]}
    assert plan(*objects, full)["existing"] == {}


def test_a_leaving_pod_whose_volume_is_gone_moves_as_if_it_had_no_constraints() -> None:
    """A web pod is in zone 1 already, so the spread would leave zones 2 and 3."""
    leaving = [managed_node(), node_claim(deletionTimestamp="2026-05-01T00:00:00Z")]
    full = [node("n1", cpu="1", zone="zone-1"), pod("web", node="n1", labels={"app": "web"})]
    moving = pod("a", node="node-1", labels={"app": "web"}, topologySpreadConstraints=[spread()])
    moving["spec"]["volumes"] = using("data")["spec"]["volumes"]

    def zones(*objects: Document) -> list[str] | None:
        (node_claim,) = plan(*leaving, *full, moving, *objects)["claims"]
        values_by_key: dict[str, list[str] | None] = {
            requirement["key"]: requirement.get("values") for requirement in node_claim["requirements"]
        }
        return values_by_key.get(ZONE)

    assert zones(claim(volume="pv"), volume("pv")) == ["zone-2"]
    assert zones() is None

"""No name can be read, and what matters stays equal; tests/simulation/test_recordings.py replays hashed recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from podium.engine.manifests import read_manifest
from podium.objects.claims import (
    AllocatedDeviceStatus,
    DeviceCondition,
    ResourceClaimConsumerReference,
    ResourceClaimMeta,
)
from podium.objects.core import PodCondition
from podium.objects.devices import Device
from podium.objects.meta import OwnerReference
from podium.objects.resource_types import NODES, PODS
from podium.plugins.contrib.capacity_scheduling.objects import ELASTIC_QUOTAS
from podium.plugins.contrib.node_resource_topology_match.objects import NODE_RESOURCE_TOPOLOGIES
from podium.plugins.contrib.node_resource_topology_match.topology import topology_of
from podium.recording.entries import DECIDED, FAILED, REFUSED, REMOVE, VALUE, Decision, item_of
from podium.recording.hashed_names import NameHasher
from podium.recording.recorder import Recorder
from podium.recording.replay import entries_of
from podium.recording.segments import open_segments
from tests.builders import node, pod
from tests.unit.plugins.contrib.capacity_scheduling.quota_bench import quota
from tests.unit.plugins.contrib.node_resource_topology_match.numa_bench import topology, zone

HASHER = NameHasher(b"secret")


def hash_names(item: Any) -> Any:
    """The object as a replay sees it."""
    return msgspec.convert(HASHER.item(item), type(item))


def test_equal_texts_stay_equal_and_parts_stay_parts() -> None:
    text = HASHER.text
    assert text("web-0-data") == f"{text('web-0')}-{text('data')}"
    assert text("default/web-0") == f"{text('default')}/{text('web-0')}"
    assert text("quay.io/acme/web:latest").endswith(f"/{text('acme')}/{text('web')}:latest")
    assert text("web") != text("Web")
    assert text("web") != NameHasher(b"another").text("web")
    assert text("") == ""


def test_integers_and_words_of_the_api_stay() -> None:
    copy = hash_names(pod("web-1", labels={"generation": "12", "team": "billing"}, cpu="250m"))
    assert copy.metadata.labels == {HASHER.text("generation"): "12", HASHER.text("team"): HASHER.text("billing")}
    assert copy.spec.scheduler_name == pod("web-1").spec.scheduler_name
    assert copy.spec.containers[0].resources.requests == {"cpu": "250m"}


def test_amounts_of_quotas_and_numa_nodes_stay_and_their_names_do_not() -> None:
    item = read_manifest(quota("team-a", min={"cpu": "2"}, max={"cpu": "4"}, parent="root/company"), ELASTIC_QUOTAS)
    copy = hash_names(item)
    assert (copy.spec.min, copy.spec.max) == ({"cpu": "2"}, {"cpu": "4"})
    assert copy.spec.parent == HASHER.text("root/company")
    assert copy.metadata.namespace == HASHER.text("team-a")
    report = read_manifest(topology("n1", zone(0, {1: 20}, cpu="4"), zone(1, cpu="4")), NODE_RESOURCE_TOPOLOGIES)
    seen = topology_of(hash_names(report))
    assert seen == topology_of(report)
    assert hash_names(report).metadata.name == HASHER.text("n1")


def test_well_known_keys_stay_and_their_values_are_hashed() -> None:
    zone, architecture = "topology.kubernetes.io/zone", "kubernetes.io/arch"
    copy = hash_names(node("n1", labels={zone: "paris-1", architecture: "arm64", "kubernetes.io/hostname": "n1"}))
    assert copy.metadata.labels[zone] == HASHER.text("paris-1")
    assert copy.metadata.labels[architecture] == "arm64"
    assert copy.metadata.labels["kubernetes.io/hostname"] == copy.metadata.name


def test_kinds_conditions_and_reasons_outside_the_api_are_hashed_alike() -> None:
    owners = (
        OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web"),
        OwnerReference(api_version="v1", kind="ReplicationController", name="web"),
        OwnerReference(api_version="payroll.acme.com/v1", kind="SalaryRun", name="web"),
        OwnerReference(api_version="salaries", kind="SalaryRun", name="web"),
    )
    conditions = (
        PodCondition(type="PodScheduled", status="False", reason="Unschedulable"),
        PodCondition(type="payroll.acme.com/paid", status="Berlin", reason="NoSalary"),
    )
    plain = pod("web-1")
    copy = hash_names(
        replace(
            plain,
            metadata=replace(plain.metadata, owner_references=owners),
            status=replace(plain.status, conditions=conditions),
        )
    )
    first, second, third, fourth = copy.metadata.owner_references
    assert [(item.api_version, item.kind) for item in (first, second)] == [
        ("apps/v1", "ReplicaSet"),
        ("v1", "ReplicationController"),
    ]
    assert third.kind == fourth.kind == HASHER.text("SalaryRun")
    assert third.api_version == HASHER.text("payroll.acme.com/v1")
    assert fourth.api_version == HASHER.text("salaries")
    ours, theirs = copy.status.conditions
    assert (ours.type, ours.status, ours.reason) == ("PodScheduled", "False", "Unschedulable")
    assert theirs.type == HASHER.text("payroll.acme.com/paid")
    assert (theirs.status, theirs.reason) == (HASHER.text("Berlin"), HASHER.text("NoSalary"))


def test_conditions_of_devices_keep_their_names_in_slices_and_claims() -> None:
    device = hash_names(Device(name="d", binding_conditions=("acme.com/attached",)))
    status = hash_names(AllocatedDeviceStatus(conditions=(DeviceCondition(type="acme.com/attached", status="True"),)))
    assert device.binding_conditions == (status.conditions[0].type,) == (HASHER.text("acme.com/attached"),)


def test_consumers_and_finalizers_of_others_are_hashed() -> None:
    pods = hash_names(ResourceClaimConsumerReference(resource="pods", name="web"))
    assert (pods.api_group, pods.resource) == ("", "pods")
    runs = hash_names(ResourceClaimConsumerReference(api_group="acme.com", resource="salaryruns", name="web"))
    assert (runs.api_group, runs.resource) == (HASHER.text("acme.com"), HASHER.text("salaryruns"))
    meta = hash_names(ResourceClaimMeta(finalizers=("resource.kubernetes.io/delete-protection", "acme.com/payroll")))
    assert meta.finalizers == ("resource.kubernetes.io/delete-protection", HASHER.text("acme.com/payroll"))


def test_reasons_of_webhooks_are_hashed() -> None:
    fields = ("Invalid", "no", 422, "PayrollClosed", None, False)
    assert HASHER.answer(REFUSED, fields)[3] == HASHER.text("PayrollClosed")
    assert HASHER.answer(REFUSED, ("Conflict", "no", 409, "Conflict", None, False))[3] == "Conflict"
    assert HASHER.answer(VALUE, "OutOfcpu") == "OutOfcpu"
    assert HASHER.answer(VALUE, True) is True


def test_segments_hold_no_name(tmp_path: Path) -> None:
    names = ["acme-payroll", "salaries", "berlin-cellar", "secretzone", "accounting", "whoever", "intranet"]
    description = {
        "podium": "1",
        "plugins": ["/home/whoever/picky.py:Picky"],
        "config": {"clientConnection": {"kubeconfig": "/home/whoever/.kube/config"}},
    }
    recorder = Recorder(tmp_path, description, HASHER)
    waiting = pod("acme-payroll", namespace="salaries", labels={"intranet.example/team": "accounting"})
    recorder.note_put(PODS.path, waiting)
    recorder.note_put(NODES.path, node("berlin-cellar", zone="secretzone"))
    clear_decision = Decision(
        "u", "salaries/acme-payroll", "Suggested", "berlin-cellar", 1, 1, 0, None, ("salaries/x",)
    )
    recorder.note(DECIDED, clear_decision)
    recorder.note(FAILED, ("u", "error", 'pods "acme-payroll" not found'))
    recorder.note(REMOVE, (NODES.path, "berlin-cellar"))
    recorder.close()
    segments = open_segments(tmp_path)
    content = b"".join([*segments.blocks(), msgspec.json.encode(segments.description)])
    assert [item for item in names if item.encode() in content] == []
    put_entry, _, decision, *_ = entries_of(open_segments(tmp_path))
    assert Decision(*decision[1:]).pod == item_of(put_entry).key

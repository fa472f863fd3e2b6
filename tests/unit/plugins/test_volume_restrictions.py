from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.status import SKIP, unresolvable
from podium.plugins.volume_restrictions import VolumeRestrictions
from tests.builders import node, pod
from tests.unit.plugins.clusters import RecordingHandle
from tests.unit.plugins.storage import VolumePluginBench, claim, user

DISK = ("node(s) had no available disk",)
CLAIM = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
)
ONCE = ("ReadWriteOncePod",)


def gce(name: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def aws(name: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(name: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"iscsi": {"iqn": name, "targetPortal": "p", "lun": 0, "readOnly": read_only}}


def rbd(image: str, *monitors: str, pool: str = "rbd", read_only: bool = False) -> dict[str, Any]:
    return {"rbd": {"monitors": list(monitors or "m"), "pool": pool, "image": image, "readOnly": read_only}}


def bench(*items: Any) -> VolumePluginBench:
    return VolumePluginBench("VolumeRestrictions", node("n1"), node("n2"), *items)


@pytest.mark.parametrize(
    ("volume_source", "used_source", "conflicts"),
    [
        (gce("d"), gce("d"), True),
        (gce("d"), gce("d", read_only=True), True),
        (gce("d", read_only=True), gce("d", read_only=True), False),
        (gce("d"), gce("e"), False),
        (aws("d"), aws("d"), True),
        (aws("d", read_only=True), aws("d", read_only=True), True),
        (aws("d"), gce("d"), False),
        (iscsi("d"), iscsi("d"), True),
        (iscsi("d", read_only=True), iscsi("d", read_only=True), False),
        (rbd("d", "m1", "m2"), rbd("d", "m2", "m3"), True),
        (rbd("d", "m1"), rbd("d", "m2"), False),
        (rbd("d", pool="a"), rbd("d", pool="b"), False),
        (rbd("d", read_only=True), rbd("d", read_only=True), False),
        (rbd("d"), rbd("e"), False),
    ],
)
def test_inline_disks_conflict_where_only_one_pod_may_use_them(
    volume_source: dict[str, Any], used_source: dict[str, Any], conflicts: bool
) -> None:
    cluster = bench(user(used_source, name="other", node="n1"))
    assert cluster.filter(user(volume_source)) == ({"n1": DISK} if conflicts else {})


def test_nothing_is_asked_of_pods_without_disks_and_with_claims_that_many_may_use() -> None:
    cluster = bench(claim("data"), claim("alone", modes=ONCE), user("data", name="other", node="n1"))
    assert cluster.pre_filter(pod()) == SKIP
    assert cluster.pre_filter(user("data", {"configMap": {"name": "c"}})) == SKIP
    assert cluster.pre_filter(user("alone")) == SKIP


def test_a_missing_claim_rejects_the_pod() -> None:
    assert bench().pre_filter(user("data")) == unresolvable('persistentvolumeclaim "data" not found')


def test_a_claim_for_one_pod_that_is_in_use_makes_every_node_unavailable() -> None:
    cluster = bench(claim(modes=ONCE), user("data", name="other", node="n1"))
    assert cluster.filter(user("data")) == {"n1": CLAIM, "n2": CLAIM}


def test_a_claim_of_another_namespace_is_another_claim() -> None:
    using = user("data", name="other", node="n1")
    elsewhere = replace(using, metadata=replace(using.metadata, namespace="elsewhere"))
    cluster = bench(claim(modes=ONCE), claim(modes=ONCE, namespace="elsewhere"), elsewhere)
    assert cluster.pre_filter(user("data")) == SKIP


def test_a_taken_disk_is_named_before_a_taken_claim() -> None:
    cluster = bench(claim(modes=ONCE), user("data", name="one", node="n2"), user(aws("d"), name="two", node="n1"))
    assert cluster.filter(user("data", aws("d"))) == {"n1": DISK, "n2": CLAIM}


def test_pods_that_are_tried_out_take_their_claims_along() -> None:
    using = user("data", name="other", node="n1")
    cluster = bench(claim(modes=ONCE), using)
    wanting = user("data")
    assert cluster.filter(wanting)
    extensions = cluster.plugin.pre_filter_extensions()
    trial = cluster.state.clone()
    node_view = cluster.snapshot.node(cluster.snapshot.row_of["n1"])
    assert extensions.remove_pod(trial, wanting, using, node_view) is None
    assert cluster.plugin.filter(trial, wanting, node_view) is None
    assert cluster.plugin.filter(cluster.state, wanting, node_view) is not None
    assert extensions.add_pod(trial, wanting, using, node_view) is None
    assert cluster.plugin.filter(trial, wanting, node_view) is not None


PLUGIN = VolumeRestrictions(None, RecordingHandle())
WANTING = user("data", aws("d"))


@pytest.mark.parametrize(
    ("deleted_pod", "helps"),
    [
        (user("data", name="other"), True),
        (user(aws("d"), name="other"), True),
        (user("logs", aws("e"), name="other"), False),
        (pod("other"), False),
    ],
)
def test_a_pod_that_goes_helps_where_it_shared_something(deleted_pod: Any, helps: bool) -> None:
    hint = QueueingHint.QUEUE if helps else QueueingHint.SKIP
    assert PLUGIN.after_pod_deletion(WANTING, deleted_pod, None) is hint


def test_a_pod_of_another_namespace_shares_nothing() -> None:
    deleted_pod = user("data", aws("d"), name="other")
    elsewhere = replace(deleted_pod, metadata=replace(deleted_pod.metadata, namespace="elsewhere"))
    assert PLUGIN.after_pod_deletion(WANTING, elsewhere, None) is QueueingHint.SKIP


@pytest.mark.parametrize(("new_claim", "helps"), [(claim("data"), True), (claim("logs"), False)])
def test_a_claim_that_appears_helps_pods_that_name_it(new_claim: Any, helps: bool) -> None:
    hint = QueueingHint.QUEUE if helps else QueueingHint.SKIP
    assert PLUGIN.after_claim_added(WANTING, None, new_claim) is hint


def test_a_claim_of_another_namespace_does_not_help() -> None:
    assert PLUGIN.after_claim_added(WANTING, None, claim("data", namespace="elsewhere")) is QueueingHint.SKIP


def test_it_waits_for_pods_nodes_and_claims() -> None:
    labels = [registration.event.label for registration in PLUGIN.events_to_register()]
    assert labels == ["AssignedPodDelete", "NodeAdd", "PersistentVolumeClaimAdd"]

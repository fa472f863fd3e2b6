from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from podium.config.args import UtilizationShapePoint, VolumeBindingArgs
from podium.framework.contract.cluster_event import ActionType, ClusterEvent, QueueingHint
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.status import SKIP, Code, PluginError, unresolvable
from podium.objects.core import Node
from podium.objects.resource_types import EventResource
from podium.objects.unreadable import UnreadableVolumeClaim
from podium.plugins.volume_binding import VolumeBinding
from tests.builders import node, pod
from tests.unit.plugins.clusters import RecordingHandle
from tests.unit.plugins.storage import (
    EPHEMERAL,
    MIGRATED,
    SELECTED_NODE,
    ZONE,
    VolumePluginBench,
    capacity,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    user,
    volume,
)

AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

STATIC = storage_class("slow", provisioner="kubernetes.io/no-provisioner")
WANTING = user("data")


def zones(names: str = "ab") -> list[Node]:
    """A node in each zone, both of the same name."""
    return [node(name, labels={ZONE: name}) for name in names]


def bench(*items: Any, nodes: list[Node] | None = None) -> VolumePluginBench:
    return VolumePluginBench("VolumeBinding", *(zones() if nodes is None else nodes), *items, args=VolumeBindingArgs())


def reasons_by_node(
    *items: Any, wanting: Any = WANTING, nodes: list[Node] | None = None
) -> Mapping[str, tuple[str, ...]]:
    return bench(*items, nodes=nodes).filter(wanting)


# ---------------------------------------------------------------- the pod's claims


def test_pods_without_claims_skip() -> None:
    assert bench().pre_filter(pod()) == SKIP
    assert bench().pre_filter(user({"csi": {"driver": "d"}})) == SKIP


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        (
            [claim(phase="Lost", volume="pv")],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
        ),
        (
            [UnreadableVolumeClaim(metadata=claim().metadata, field="spec.resources", detail="Expected `object`")],
            'persistentvolumeclaim "data" has a field that cannot be read: spec.resources: Expected `object`',
        ),
        ([claim(deleting=True)], 'persistentvolumeclaim "data" is being deleted'),
        ([claim(storage_class=None)], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim()], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(), storage_class(mode="Immediate")], "pod has unbound immediate PersistentVolumeClaims"),
        (
            [claim(volume="pv", is_bound_field=False), storage_class(), volume()],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
    ],
)
def test_a_claim_that_cannot_be_used_rejects_the_pod(items: list[Any], reason: str) -> None:
    assert bench(*items).pre_filter(WANTING) == unresolvable(reason)


def test_a_class_that_does_not_say_when_to_bind_is_an_error() -> None:
    status = bench(claim(), storage_class(mode=None)).pre_filter(WANTING)
    assert status is not None
    assert (status.code, status.message) == (Code.ERROR, 'VolumeBindingMode not set for StorageClass "slow"')


def test_an_ephemeral_claim_must_be_there_and_the_pods_own() -> None:
    wanting = user(EPHEMERAL)
    assert bench().pre_filter(wanting) == unresolvable(
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "web-v0"'
    )
    assert bench(claim("web-v0", owner=pod("other")), storage_class()).pre_filter(wanting) == unresolvable(
        "PVC default/web-v0 was not created for pod default/web (pod is not owner)"
    )
    assert bench(claim("web-v0", owner=wanting), storage_class()).pre_filter(wanting) is None


def test_the_status_has_the_first_problem() -> None:
    items = [claim("a"), claim("b", deleting=True)]
    assert bench(*items).pre_filter(user("missing", "b")) == unresolvable('persistentvolumeclaim "missing" not found')
    assert bench(*items).pre_filter(user("a", "b")) == unresolvable('persistentvolumeclaim "b" is being deleted')


def test_a_claim_or_class_that_cannot_be_read_is_an_error() -> None:
    malformed_claim = claim(selector={"matchExpressions": [{"key": "a", "operator": "Near"}]})
    status = bench(malformed_claim, STATIC).pre_filter(WANTING)
    assert status is not None
    assert status.code is Code.ERROR
    assert status.message.startswith("error creating internal label selector for claim: default/data: ")
    status = bench(claim(size="much"), storage_class()).pre_filter(WANTING)
    assert status is not None
    assert status.code is Code.ERROR
    assert status.message.startswith('requested storage of claim "default/data" cannot be read: ')


# ---------------------------------------------------------------- bound claims


def test_a_bound_volume_must_be_reachable() -> None:
    assert reasons_by_node(claim(volume="pv"), volume(reach={ZONE: ["a"]})) == {"b": (AFFINITY,)}
    assert reasons_by_node(claim(volume="pv"), volume()) == {}


def test_a_bound_volume_that_is_gone_rejects_every_node() -> None:
    assert reasons_by_node(claim(volume="pv")) == {"a": (GONE,), "b": (GONE,)}


def test_the_status_names_the_first_bound_claim_that_fails_a_node() -> None:
    items = [claim("a", volume="pv"), volume(reach={ZONE: ["a"]}), claim("b", volume="gone")]
    assert reasons_by_node(*items, wanting=user("a", "b")) == {"a": (GONE,), "b": (AFFINITY,)}
    assert reasons_by_node(*items, wanting=user("b", "a")) == {"a": (GONE,), "b": (GONE,)}


def test_fields_of_a_volumes_affinity_do_not_count() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": ["elsewhere"]}]
    labels = [{"key": ZONE, "operator": "NotIn", "values": ["b"]}]
    terms = [{"matchExpressions": labels, "matchFields": fields}]
    affine_volume = volume(nodeAffinity={"required": {"nodeSelectorTerms": terms}})
    assert reasons_by_node(claim(volume="pv"), affine_volume) == {"b": (AFFINITY,)}


def test_a_volumes_affinity_that_makes_no_sense_matches_nothing() -> None:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "Near", "values": ["a"]}]}]
    affine_volume = volume(nodeAffinity={"required": {"nodeSelectorTerms": terms}})
    assert reasons_by_node(claim(volume="pv"), affine_volume) == {"a": (AFFINITY,), "b": (AFFINITY,)}


def test_an_in_tree_volume_is_reached_as_its_driver_says_where_the_node_has_migrated() -> None:
    driver_zone = "topology.ebs.csi.aws.com/zone"
    nodes = [
        node("old", labels={ZONE: "a"}),
        node("migrated", labels={driver_zone: "a"}),
        node("migrated-b", labels={ZONE: "a", driver_zone: "b"}),
    ]
    migrated_volume = volume(reach={ZONE: ["a"]}, awsElasticBlockStore={"volumeID": "vol-1"})
    csi_nodes = [csi_node(name, migrated="kubernetes.io/aws-ebs") for name in ("migrated", "migrated-b")]
    assert reasons_by_node(claim(volume="pv"), migrated_volume, *csi_nodes, nodes=nodes) == {"migrated-b": (AFFINITY,)}
    assert set(reasons_by_node(claim(volume="pv"), migrated_volume, nodes=nodes)) == {"migrated"}


def test_a_migrated_volume_without_affinity_is_reached_from_the_zone_of_its_label() -> None:
    driver_zone = "topology.gke.io/zone"
    nodes = [node("in", labels={driver_zone: "a-b-c"}), node("out", labels={driver_zone: "x"}), node("old")]
    migrated_volume = volume(labels={ZONE: "a-b-c"}, gcePersistentDisk={"pdName": "d"})
    csi_nodes = [csi_node(name, migrated="kubernetes.io/gce-pd") for name in ("in", "out")]
    assert reasons_by_node(claim(volume="pv"), migrated_volume, *csi_nodes, nodes=nodes) == {"out": (AFFINITY,)}
    azure = volume(azureDisk={"diskName": "d", "diskURI": "/u"})
    csi_nodes = [csi_node("in", migrated="kubernetes.io/azure-disk")]
    assert reasons_by_node(claim(volume="pv"), azure, *csi_nodes, nodes=nodes) == {}


def test_a_migrated_volume_that_cannot_be_translated_is_an_error() -> None:
    migrated_volume = volume(azureDisk={"diskName": "d", "diskURI": "/u", "kind": "Shared"})
    cluster = bench(claim(volume="pv"), migrated_volume, csi_node("a", migrated="kubernetes.io/azure-disk"))
    assert cluster.pre_filter(WANTING) is None
    words = r"could not translate pv: kind\(Shared\) is not supported in csi migration"
    with pytest.raises(PluginError, match=words):
        cluster.plugin.filter_rows(cluster.state, WANTING, cluster.snapshot, cluster.snapshot.order)
    with pytest.raises(PluginError, match=words):
        cluster.plugin.filter(cluster.state, WANTING, cluster.snapshot.node(cluster.snapshot.row_of["a"]))


# ---------------------------------------------------------------- volumes that are there


def test_a_claim_that_waits_takes_a_volume_that_is_there() -> None:
    assert reasons_by_node(claim(), STATIC, volume(reach={ZONE: ["a"]})) == {"b": (NO_VOLUME,)}


@pytest.mark.parametrize(
    "volume_object",
    [
        volume(size="1023Mi"),
        volume(size="much"),
        volume(storage_class="other"),
        volume(modes=("ReadOnlyMany",)),
        volume(modes=()),
        volume(volumeMode="Block"),
        volume(volumeAttributesClassName="gold"),
        volume(deleting=True),
        volume(phase="Released"),
        volume(phase=""),
        volume(kept_for=claim("other")),
        volume(claimRef={"namespace": "default", "name": "data", "uid": "another"}),
        volume(claimRef={"namespace": "elsewhere", "name": "data"}),
    ],
)
def test_a_volume_that_does_not_suit_is_not_taken(volume_object: Any) -> None:
    assert reasons_by_node(claim(), STATIC, volume_object) == {"a": (NO_VOLUME,), "b": (NO_VOLUME,)}


@pytest.mark.parametrize(
    ("claim_object", "volume_object"),
    [
        (claim(), volume(size="1073741824")),
        (claim(size=""), volume(size="0")),
        (claim(volumeMode="Filesystem"), volume()),
        (claim(volumeMode="Block"), volume(volumeMode="Block")),
        (claim(volumeAttributesClassName="gold"), volume(volumeAttributesClassName="gold")),
        (claim(volumeAttributesClassName=""), volume()),
        (claim(modes=("ReadOnlyMany",)), volume(modes=("ReadWriteOnce", "ReadOnlyMany"))),
        (claim(selector={"matchLabels": {"disk": "ssd"}}), volume(labels={"disk": "ssd"})),
        (claim(), volume(claimRef={"namespace": "default", "name": "data"}, phase="Released", modes=())),
        (claim(), volume(annotations={"volume.beta.kubernetes.io/storage-class": "slow"}, storage_class="x")),
    ],
)
def test_a_volume_that_suits_is_taken(claim_object: Any, volume_object: Any) -> None:
    assert reasons_by_node(claim_object, STATIC, volume_object) == {}


def test_a_selector_leaves_out_other_volumes() -> None:
    selective_claim = claim(selector={"matchLabels": {"disk": "ssd"}})
    assert set(reasons_by_node(selective_claim, STATIC, volume(labels={"disk": "hdd"}))) == {"a", "b"}


def test_a_volume_that_is_kept_for_the_claim_is_the_only_one() -> None:
    data_claim = claim()
    reserved_volume = volume("kept", kept_for=data_claim, reach={ZONE: ["a"]}, size="10Gi")
    assert reasons_by_node(data_claim, STATIC, volume("free"), reserved_volume) == {"b": (NO_VOLUME,)}


def test_a_volume_of_another_class_is_not_kept_for_the_claim() -> None:
    data_claim = claim()
    elsewhere = volume("kept", kept_for=data_claim, storage_class="other", reach={ZONE: ["a"]})
    assert reasons_by_node(data_claim, STATIC, elsewhere, volume("free")) == {}


def test_each_claim_takes_another_volume_the_smallest_goes_first() -> None:
    small, large = claim("small", size="1Gi"), claim("large", size="2Gi")
    wanting = user("large", "small")
    two = [volume("one", size="1Gi"), volume("two", size="2Gi")]
    assert reasons_by_node(small, large, STATIC, *two, wanting=wanting) == {}
    # The small claim takes the smaller volume, wherever it is in the list.
    assert reasons_by_node(small, large, STATIC, *reversed(two), wanting=wanting) == {}
    only = [volume("one", size="2Gi")]
    assert set(reasons_by_node(small, large, STATIC, *only, wanting=wanting)) == {"a", "b"}


def test_what_is_near_counts_for_each_node_by_itself() -> None:
    first, two = claim("one"), claim("two")
    volumes = [
        volume("everywhere"),
        volume("near-a", reach={ZONE: ["a"]}),
    ]
    assert reasons_by_node(first, two, STATIC, *volumes, wanting=user("one", "two")) == {"b": (NO_VOLUME,)}


# ---------------------------------------------------------------- volumes that can be made


def test_a_volume_is_made_where_none_is_there() -> None:
    assert reasons_by_node(claim(), storage_class()) == {}
    assert set(reasons_by_node(claim(), storage_class(provisioner=""))) == {"a", "b"}


def test_volumes_are_made_only_where_the_class_allows() -> None:
    assert reasons_by_node(claim(), storage_class(topologies=[{ZONE: ["a", "c"]}])) == {"b": (NO_VOLUME,)}
    assert reasons_by_node(claim(), storage_class(topologies=[{ZONE: ["c"]}, {ZONE: ["b"]}])) == {"a": (NO_VOLUME,)}
    assert set(reasons_by_node(claim(), storage_class(topologies=[{ZONE: ["a"], "disk": ["ssd"]}]))) == {"a", "b"}
    # An empty term, and one that makes no sense, allow nothing.
    assert set(reasons_by_node(claim(), storage_class(topologies=[{}]))) == {"a", "b"}
    assert set(reasons_by_node(claim(), storage_class(topologies=[{ZONE: []}]))) == {"a", "b"}
    assert set(reasons_by_node(claim(), storage_class(topologies=[{ZONE: ["a", "!"]}]))) == {"a", "b"}


def test_what_is_there_goes_before_what_can_be_made() -> None:
    made_in_b = storage_class(topologies=[{ZONE: ["b"]}])
    assert reasons_by_node(claim(), made_in_b, volume(reach={ZONE: ["a"]})) == {}


@pytest.mark.parametrize(
    ("capacities", "full"),
    [
        ([capacity(on={ZONE: "a"}, size="1Gi")], {"b"}),
        ([capacity(on={ZONE: "a"}, size="1023Mi")], {"a", "b"}),
        ([capacity(on={ZONE: "a"}, size="9Gi", largest="1Mi")], {"a", "b"}),
        ([capacity(on={ZONE: "a"}, size="1Mi", largest="9Gi")], {"b"}),
        ([capacity(on={}, size="1Gi")], set()),
        ([capacity(size="1Gi")], {"a", "b"}),
        ([capacity(on={}, storage_class="other", size="1Gi")], {"a", "b"}),
        ([capacity(on={ZONE: "a"})], {"a", "b"}),
        ([capacity(on={ZONE: "a"}, size="much")], {"a", "b"}),
        ([capacity(on={"!": "a"}, size="1Gi")], {"a", "b"}),
        ([capacity("x", on={ZONE: "a"}, size="1Gi"), capacity("y", on={ZONE: "b"}, size="1Gi")], set()),
        ([], {"a", "b"}),
    ],
)
def test_there_must_be_storage_left_where_the_driver_publishes_how_much(capacities: list[Any], full: set[str]) -> None:
    reasons = reasons_by_node(claim(), storage_class(), csi_driver(), *capacities)
    assert reasons == dict.fromkeys(full, (NO_SPACE,))


@pytest.mark.parametrize("driver", [[], [csi_driver(publishes=False)], [csi_driver(publishes=None)]])
def test_other_drivers_are_taken_to_have_enough(driver: list[Any]) -> None:
    assert reasons_by_node(claim(), storage_class(), *driver) == {}


def test_a_claim_of_no_size_fits_everywhere() -> None:
    assert reasons_by_node(claim(size=""), storage_class(), csi_driver()) == {}


def test_a_claim_whose_node_is_selected_binds_the_pod_to_it() -> None:
    selected_claim = claim(annotations={SELECTED_NODE: "a"})
    assert reasons_by_node(selected_claim, storage_class(), volume()) == {"b": (NO_VOLUME,)}
    assert reasons_by_node(selected_claim, storage_class(), nodes=[node("b")]) == {"b": (NO_VOLUME,)}
    # No volume that is there will do any more.
    assert reasons_by_node(selected_claim, STATIC, volume()) == {"a": (NO_VOLUME,), "b": (NO_VOLUME,)}
    second_claim = claim("more", annotations={SELECTED_NODE: "b"})
    assert set(reasons_by_node(selected_claim, second_claim, storage_class(), wanting=user("data", "more"))) == {
        "a",
        "b",
    }


def test_several_reasons_have_a_fixed_order() -> None:
    bound_pair = [claim("bound", volume="pv"), volume(reach={ZONE: ["a"]}, kept_for=claim("bound"))]
    wanting = user("bound", "data")
    assert reasons_by_node(*bound_pair, claim(), STATIC, wanting=wanting) == {
        "a": (NO_VOLUME,),
        "b": (AFFINITY, NO_VOLUME),
    }
    reasons = reasons_by_node(*bound_pair, claim(), storage_class(), csi_driver(), wanting=wanting)
    assert reasons == {"a": (NO_SPACE,), "b": (AFFINITY, NO_SPACE)}
    lost_claim = claim("bound", volume="gone")
    assert reasons_by_node(lost_claim, claim(), STATIC, wanting=wanting, nodes=zones("a")) == {"a": (NO_VOLUME, GONE)}


def test_the_first_claim_that_has_no_place_decides() -> None:
    full = storage_class("full")
    items = [claim("a", size="1Gi", storage_class="full"), claim("b", size="2Gi"), full, STATIC, csi_driver()]
    assert reasons_by_node(*items, wanting=user("a", "b"), nodes=zones("a")) == {"a": (NO_SPACE,)}
    swapped = [claim("a", size="3Gi", storage_class="full"), *items[1:]]
    assert reasons_by_node(*swapped, wanting=user("a", "b"), nodes=zones("a")) == {"a": (NO_VOLUME,)}


# ---------------------------------------------------------------- scores


SHAPE = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


def scores(*items: Any, wanting: Any = WANTING, shape: Any = SHAPE, nodes: list[Node] | None = None) -> dict[str, int]:
    """The score by node; both forms have to agree."""
    placed = zones() if nodes is None else nodes
    cluster = VolumePluginBench("VolumeBinding", *placed, *items, args=VolumeBindingArgs(shape=shape))
    assert cluster.pre_filter(wanting) in (None, SKIP)
    plugin, state, snapshot, rows = cluster.plugin, cluster.state, cluster.snapshot, cluster.snapshot.order
    assert plugin.pre_score(state, wanting, snapshot, rows) is None
    answer = dict(
        zip(map(snapshot.name, rows), plugin.score_rows(state, wanting, snapshot, rows).tolist(), strict=True)
    )
    assert answer == {snapshot.name(row): plugin.score(state, wanting, snapshot.node(row)) for row in rows}
    return answer


def test_pods_that_need_no_volume_on_their_node_are_scored_with_zero() -> None:
    assert scores(wanting=pod()) == {"a": 0, "b": 0}
    assert scores(claim(volume="pv"), volume(), storage_class()) == {"a": 0, "b": 0}
    assert scores(claim(), storage_class()) == {"a": 0, "b": 0}


SOME = capacity("some", on={ZONE: "a"}, size="10Gi"), capacity("much", on={ZONE: "b"}, size="100Gi")


def test_a_node_with_more_capacity_for_the_claim_scores_higher() -> None:
    items = (storage_class(), csi_driver(), *SOME)
    assert scores(claim(size="5Gi"), *items) == {"a": 50, "b": 95}
    shape = (UtilizationShapePoint(0, 0), UtilizationShapePoint(50, 10), UtilizationShapePoint(100, 10))
    assert scores(claim(size="5Gi"), *items, shape=shape) == {"a": 100, "b": 10}


def test_claims_of_one_class_share_one_capacity() -> None:
    items = (storage_class(), csi_driver(), *SOME)
    two = user("data", "logs")
    assert scores(claim(size="5Gi"), claim("logs", size="3Gi"), *items, wanting=two) == {"a": 20, "b": 92}
    assert scores(claim(size="6Gi"), claim("logs", size="6Gi"), *items, wanting=two) == {"a": 0, "b": 88}


def test_classes_count_alike_and_their_mean_is_rounded() -> None:
    fast = (storage_class("fast"), capacity("fast", storage_class="fast", on={ZONE: "a"}, size="100Gi"))
    items = (claim(size="5Gi"), claim("logs", storage_class="fast", size="2Gi"), storage_class(), csi_driver(), *fast)
    # (50 + 98) / 2; then (50 + 99) / 2, rounded up.
    assert scores(*items, *SOME, wanting=user("data", "logs"), nodes=zones("a")) == {"a": 74}
    smaller = (claim(size="5Gi"), claim("logs", storage_class="fast", size="1Gi"), *items[2:])
    assert scores(*smaller, *SOME, wanting=user("data", "logs"), nodes=zones("a")) == {"a": 75}


def test_where_a_volume_is_chosen_only_volumes_count() -> None:
    items = (claim(size="2Gi"), claim("logs", size="9Gi"), storage_class(), csi_driver(), *SOME)
    there = volume("pv", size="4Gi", reach={ZONE: ["a"]})
    assert scores(*items, there, wanting=user("data", "logs")) == {"a": 50, "b": 89}


def test_capacity_that_is_not_published_does_not_count() -> None:
    items = (claim(size="5Gi"), storage_class(), csi_driver(), capacity("some", on={ZONE: "a"}, largest="10Gi"))
    assert scores(*items, nodes=zones("a")) == {"a": 0}


def test_nodes_are_not_scored_without_a_shape() -> None:
    cluster = bench()
    rows = cluster.snapshot.order
    assert cluster.plugin.pre_score(CycleState(), WANTING, cluster.snapshot, rows) == SKIP
    assert cluster.plugin.score_rows(CycleState(), WANTING, cluster.snapshot, rows).tolist() == [0, 0]
    assert cluster.plugin.score(CycleState(), WANTING, cluster.snapshot.node(0)) == 0


# ---------------------------------------------------------------- requeueing

PLUGIN = VolumeBinding(VolumeBindingArgs(), RecordingHandle())


def hint(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def test_a_class_helps_where_it_is_new_or_allows_other_topologies() -> None:
    old, new = storage_class(), storage_class(topologies=[{ZONE: ["a"]}])
    assert PLUGIN.after_class_change(WANTING, None, new) is QueueingHint.QUEUE
    assert PLUGIN.after_class_change(WANTING, old, new) is QueueingHint.QUEUE
    assert PLUGIN.after_class_change(WANTING, new, new) is QueueingHint.SKIP


@pytest.mark.parametrize(
    ("new_claim", "helps"),
    [(claim("data"), True), (claim("web-v1"), True), (claim("logs"), False), (claim(namespace="elsewhere"), False)],
)
def test_a_claim_helps_pods_that_use_it(new_claim: Any, helps: bool) -> None:
    assert PLUGIN.after_claim_change(user("data", EPHEMERAL), None, new_claim) is hint(helps)


def test_a_csi_node_helps_where_it_is_new_or_other_plugins_have_migrated() -> None:
    old, new = csi_node("a", migrated="x"), csi_node("a", {"d": 1}, migrated="x")
    assert PLUGIN.after_csi_node_change(WANTING, None, new) is QueueingHint.QUEUE
    assert PLUGIN.after_csi_node_change(WANTING, old, new) is QueueingHint.SKIP
    assert PLUGIN.after_csi_node_change(WANTING, old, csi_node("a")) is QueueingHint.QUEUE
    assert MIGRATED in old.metadata.annotations


@pytest.mark.parametrize(
    ("driver", "old", "new", "helps"),
    [("d", True, False, True), ("d", True, None, True), ("d", False, True, False), ("e", True, False, False)],
)
def test_a_driver_helps_pods_of_its_own_that_stops_publishing(
    driver: str, old: bool, new: bool | None, helps: bool
) -> None:
    wanting = user({"csi": {"driver": "d"}})
    drivers = csi_driver(driver, publishes=old), csi_driver(driver, publishes=new)
    assert PLUGIN.after_driver_change(wanting, *drivers) is hint(helps)


@pytest.mark.parametrize(
    ("old", "new", "helps"),
    [
        (None, capacity(), True),
        (capacity(size="1Gi"), capacity(size="2Gi"), True),
        (capacity(), capacity(size="1Gi"), True),
        (capacity(size="2Gi"), capacity(size="1Gi"), False),
        (capacity(size="1Gi"), capacity(), False),
        (capacity(size="1Gi", largest="1Mi"), capacity(size="2Gi", largest="1Mi"), False),
    ],
)
def test_storage_helps_where_there_is_more_of_it(old: Any, new: Any, helps: bool) -> None:
    assert PLUGIN.after_capacity_change(WANTING, old, new) is hint(helps)


def test_it_waits_for_everything_that_has_a_say() -> None:
    add_or_update = ActionType.ADD | ActionType.UPDATE
    assert [(registration.event, registration.hint is None) for registration in PLUGIN.events_to_register()] == [
        (ClusterEvent(EventResource.STORAGE_CLASS, add_or_update), False),
        (ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, add_or_update), False),
        (ClusterEvent(EventResource.PERSISTENT_VOLUME, add_or_update), True),
        (ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL), True),
        (ClusterEvent(EventResource.CSI_NODE, add_or_update), False),
        (ClusterEvent(EventResource.CSI_DRIVER, ActionType.UPDATE), False),
        (ClusterEvent(EventResource.CSI_STORAGE_CAPACITY, add_or_update), False),
    ]

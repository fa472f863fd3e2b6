from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from podium.client.informer import Informer
from podium.cluster import Snapshot
from podium.cluster.pod_states import PodState
from podium.config import RELEASES
from podium.framework.contract.cluster_event import ActionType, ClusterEvent, QueueingHint
from podium.framework.contract.status import SKIP, PluginError, unresolvable, unschedulable
from podium.objects.resource_types import EventResource, ResourceType
from podium.objects.storage import CSINode, VolumeAttachment, VolumeAttachmentSpec
from podium.objects.unreadable import UnreadableAttachment, UnreadableCSINode, UnreadableVolumeClaim
from podium.plugins.node_volume_limits import NodeVolumeLimits
from tests.builders import cache_of, node, pod
from tests.unit.plugins.clusters import RecordingHandle, filter_nodes, filtered_one_by_one
from tests.unit.plugins.storage import (
    EPHEMERAL,
    VolumePluginBench,
    attachment,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    user,
    volume,
)

DRIVER = "disk.example.com"
FULL = ("node(s) exceed max volume count",)
AWS: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


def bench(limit: int | None, *items: Any, driver: str = DRIVER) -> VolumePluginBench:
    """One node with a limit (None: none is given); every claim is on a volume of the driver."""
    return VolumePluginBench("NodeVolumeLimits", node("n1"), csi_node("n1", {driver: limit}), *items)


def claims_and_volumes(*names: str) -> list[Any]:
    """Claims with volumes."""
    return [
        item
        for name in names
        for item in (claim(name, volume=f"pv-{name}"), volume(f"pv-{name}", csi=(DRIVER, f"handle-{name}")))
    ]


def test_a_node_takes_volumes_up_to_its_limit() -> None:
    using = user("a", name="other", node="n1")
    assert bench(2, *claims_and_volumes("a", "b"), using).filter(user("b")) == {}
    assert bench(1, *claims_and_volumes("a", "b"), using).filter(user("b")) == {"n1": FULL}
    assert bench(2, *claims_and_volumes("a", "b", "c"), using).filter(user("b", "c")) == {"n1": FULL}


def test_a_node_whose_limits_cannot_be_read_takes_no_volume_that_it_has_not() -> None:
    unreadable = UnreadableCSINode(metadata=csi_node("n1", {}).metadata)
    using = user("a", name="other", node="n1")
    unreadable_bench = VolumePluginBench(
        "NodeVolumeLimits", node("n1"), unreadable, *claims_and_volumes("a", "b"), using
    )
    assert unreadable_bench.filter(user("a")) == {}
    assert unreadable_bench.filter(user("b")) == {"n1": FULL}


def test_the_volume_of_a_claim_that_cannot_be_read_counts() -> None:
    """For its own driver if it is known which volume the claim has, and for each driver otherwise."""
    read, its_volume = claims_and_volumes("a")
    unreadable_claim = UnreadableVolumeClaim(metadata=read.metadata, spec=read.spec, is_volume_read=True)
    unknown = UnreadableVolumeClaim(metadata=read.metadata)
    using = user("a", name="other", node="n1")
    foreign_volume = volume("pv-a", csi=("other.example.com", "handle"))
    assert bench(1, unreadable_claim, its_volume, *claims_and_volumes("b"), using).filter(user("b")) == {"n1": FULL}
    assert bench(2, unreadable_claim, its_volume, *claims_and_volumes("b"), using).filter(user("b")) == {}
    assert bench(1, unreadable_claim, foreign_volume, *claims_and_volumes("b"), using).filter(user("b")) == {}
    assert bench(1, unknown, foreign_volume, *claims_and_volumes("b"), using).filter(user("b")) == {"n1": FULL}
    assert bench(2, unknown, foreign_volume, *claims_and_volumes("b"), using).filter(user("b")) == {}


def test_an_ephemeral_claim_of_which_the_owner_cannot_be_read_counts() -> None:
    read = claim("other-v0", volume="pv-a")
    unread = UnreadableVolumeClaim(metadata=read.metadata, spec=read.spec, is_volume_read=True)
    using = user(EPHEMERAL, name="other", node="n1")
    items = (unread, volume("pv-a", csi=(DRIVER, "handle-a")), *claims_and_volumes("b"), using)
    assert bench(1, *items).filter(user("b")) == {"n1": FULL}


def test_an_attachment_that_cannot_be_read_counts_for_each_driver() -> None:
    read = attachment("pv-a", "n1", DRIVER)
    unread = UnreadableAttachment(metadata=read.metadata, spec=VolumeAttachmentSpec(node_name="n1"))
    assert bench(1, unread, *claims_and_volumes("b")).filter(user("b")) == {"n1": FULL}
    assert bench(2, unread, *claims_and_volumes("b")).filter(user("b")) == {}


def test_no_limit_and_limits_of_other_drivers_do_not_matter() -> None:
    using = user("a", name="other", node="n1")
    assert bench(None, *claims_and_volumes("a", "b"), using).filter(user("b")) == {}
    assert bench(0, *claims_and_volumes("a", "b"), using, driver="other.example.com").filter(user("b")) == {}
    assert VolumePluginBench("NodeVolumeLimits", node("n1"), *claims_and_volumes("b")).filter(user("b")) == {}


ABSENT = (f"{DRIVER} CSI driver is not installed on the node",)


def test_a_driver_that_demands_it_has_to_be_on_the_node() -> None:
    items = (csi_driver(demands=True), *claims_and_volumes("a"))
    assert bench(5, *items).filter(user("a")) == {}
    assert bench(None, *items).filter(user("a")) == {}
    assert bench(5, *items, driver="other.example.com").filter(user("a")) == {"n1": ABSENT}
    assert VolumePluginBench("NodeVolumeLimits", node("n1"), *items).filter(user("a")) == {"n1": ABSENT}
    assert bench(5, csi_driver(), *claims_and_volumes("a"), driver="other.example.com").filter(user("a")) == {}
    assert bench(0, *items).filter(user("a")) == {"n1": FULL}


def test_of_several_drivers_the_one_that_is_absent_is_named() -> None:
    other = "other.example.com"
    claims = (*claims_and_volumes("a"), claim("b", volume="pv-b"), volume("pv-b", csi=(other, "handle-b")))
    drivers = csi_driver(demands=True), csi_driver(other, demands=True)
    both = bench(5, *claims, *drivers)
    assert both.filter(user("a", "b")) == {"n1": (f"{other} CSI driver is not installed on the node",)}


def test_without_the_gate_no_driver_has_to_be_there() -> None:
    items = (node("n1"), csi_driver(demands=True), *claims_and_volumes("a"))
    cluster = VolumePluginBench("NodeVolumeLimits", *items, release=RELEASES["1.36"])
    assert cluster.filter(user("a")) == {}


class Informed(RecordingHandle):
    """A handle whose listers follow what happens."""

    def __init__(self) -> None:
        super().__init__(Snapshot())
        self.informers: dict[Any, Informer[Any]] = {}

    def lister(self, resource: ResourceType[Any]) -> Any:
        if resource.type not in self.informers:
            self.informers[resource.type] = Informer(resource, lambda name, error: pytest.fail(str(error)))
        return self.informers[resource.type]

    def put(self, item: Any) -> None:
        self.informers[type(item)].put(item)

    def drop(self, item: Any) -> None:
        self.informers[type(item)].drop(item)


def test_whatever_changes_between_attempts_the_table_says_what_the_nodes_say() -> None:
    cache, handle, random = cache_of(), Informed(), Random(7)
    plugin = NodeVolumeLimits(None, handle)
    for item in claims_and_volumes("a", "b", "c"):
        handle.put(item)

    def limits(name: str) -> CSINode:
        return csi_node(name, {DRIVER: random.choice((None, 0, 1, 2, 3))})

    def random_attachment(name: str) -> VolumeAttachment:
        return attachment(f"pv-{random.choice('abc')}", name)

    def swap(name: str) -> None:
        existing_pod = user(random.choice("abc"), name=f"on-{name}", node=name)
        (cache.add_pod if cache.state_of(existing_pod.uid) is PodState.UNKNOWN else cache.remove_pod)(existing_pod)

    changes: list[Callable[[str], Any]] = [
        lambda name: cache.put_node(node(name)),
        lambda name: cache.remove_node(name),
        lambda name: handle.put(limits(name)),
        lambda name: handle.drop(limits(name)),
        lambda name: handle.put(random_attachment(name)),
        lambda name: handle.drop(random_attachment(name)),
        swap,
    ]
    verdicts: set[bool] = set()
    for _ in range(300):
        random.choice(changes)(f"n{random.randrange(4)}")
        snapshot, wanting = cache.snapshot(), user("b")
        names = set(filter_nodes(plugin, wanting, snapshot)) if len(snapshot) else set()
        assert names == set(filtered_one_by_one(plugin, wanting, snapshot))
        verdicts |= {name in names for name in snapshot.row_of}
    assert verdicts == {False, True}


def test_a_volume_counts_once_however_many_pods_use_it() -> None:
    sharing_pods = [user("a", name="one", node="n1"), user("a", name="two", node="n1")]
    assert bench(1, *claims_and_volumes("a"), *sharing_pods).filter(user("a")) == {}
    assert bench(2, *claims_and_volumes("a", "b"), *sharing_pods).filter(user("b")) == {}


def test_attached_volumes_that_no_pod_uses_count_too() -> None:
    old_attachment = attachment("pv-c", "n1")
    assert bench(1, *claims_and_volumes("b", "c"), old_attachment).filter(user("b")) == {"n1": FULL}
    assert bench(2, *claims_and_volumes("b", "c"), old_attachment).filter(user("b")) == {}
    assert bench(1, *claims_and_volumes("b", "c"), attachment("pv-c", "n2")).filter(user("b")) == {}
    assert bench(1, *claims_and_volumes("b", "c"), attachment("pv-c", "n1", "")).filter(user("b")) == {}
    assert bench(1, *claims_and_volumes("b"), attachment(None, "n1"), attachment("pv-x", "n1")).filter(user("b")) == {}
    using = user("c", name="other", node="n1")
    assert bench(2, *claims_and_volumes("b", "c"), old_attachment, using).filter(user("b")) == {}


def test_an_attached_volume_of_an_in_tree_plugin_does_not_count() -> None:
    in_tree = volume("pv-c", awsElasticBlockStore={"volumeID": "vol-1"})
    assert bench(1, *claims_and_volumes("b"), in_tree, attachment("pv-c", "n1")).filter(user("b")) == {}


def test_a_claim_without_a_volume_counts_for_its_provisioner() -> None:
    items = [claim("a"), claim("b"), storage_class(), user("a", name="other", node="n1")]
    assert bench(1, *items).filter(user("b")) == {"n1": FULL}
    assert bench(1, *items).filter(user("a")) == {}
    assert bench(2, *items).filter(user("b")) == {}


def test_a_claim_whose_volume_is_gone_counts_for_its_provisioner() -> None:
    assert bench(0, claim("b", volume="gone"), storage_class()).filter(user("b")) == {"n1": FULL}


@pytest.mark.parametrize(
    "uncounted",
    [
        [claim("b", storage_class=None)],
        [claim("b")],
        [claim("b"), storage_class(provisioner="kubernetes.io/azure-file")],
        [claim("b"), storage_class(provisioner="kubernetes.io/vsphere-volume")],
        [claim("b", volume="pv"), volume(hostPath={"path": "/"})],
        [claim("b", volume="pv"), volume(csi=(DRIVER, ""))],
        [claim("b", volume="pv"), volume(azureDisk={"diskName": "d", "diskURI": "/d", "kind": "Dedicated"})],
    ],
)
def test_what_no_driver_answers_for_does_not_count(uncounted: list[Any]) -> None:
    assert bench(0, *uncounted).filter(user("b")) == {}


@pytest.mark.parametrize(
    ("source", "driver"),
    [
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, "ebs.csi.aws.com"),
        ({"gcePersistentDisk": {"pdName": "d"}}, "pd.csi.storage.gke.io"),
        ({"azureDisk": {"diskName": "d", "diskURI": "/d"}}, "disk.csi.azure.com"),
        ({"cinder": {"volumeID": "d"}}, "cinder.csi.openstack.org"),
        ({"portworxVolume": {"volumeID": "d"}}, "pxd.portworx.com"),
    ],
)
def test_in_tree_volumes_count_for_the_driver_in_their_place(source: dict[str, Any], driver: str) -> None:
    assert bench(0, driver=driver).filter(user(source)) == {"n1": FULL}
    assert bench(1, driver=driver).filter(user(source)) == {}
    items = [claim("b", volume="pv"), volume(**source)]
    assert bench(0, *items, driver=driver).filter(user("b")) == {"n1": FULL}
    # A volume is the same, inline or by claim.
    assert bench(1, *items, user("b", name="other", node="n1"), driver=driver).filter(user("b")) == {}


def test_an_in_tree_provisioner_counts_for_its_driver_where_there_is_a_csi_node() -> None:
    items = [claim("b"), storage_class(provisioner="kubernetes.io/aws-ebs")]
    assert bench(0, *items, driver="ebs.csi.aws.com").filter(user("b")) == {"n1": FULL}
    assert VolumePluginBench("NodeVolumeLimits", node("n1"), *items).filter(user("b")) == {}


def test_pods_without_volumes_to_attach_skip() -> None:
    assert bench(0).pre_filter(pod()) == SKIP
    assert bench(0).pre_filter(user({"csi": {"driver": DRIVER}}, {"hostPath": {"path": "/"}})) == SKIP
    assert bench(0).pre_filter(user(EPHEMERAL)) is None
    assert bench(0).pre_filter(user({"azureFile": {"shareName": "s", "secretName": "x"}})) is None


def test_a_missing_claim_rejects_the_pod_everywhere() -> None:
    cluster = VolumePluginBench("NodeVolumeLimits", node("n1"), node("n2"), csi_node("n1", {DRIVER: 1}))
    wanting = user("data")
    assert cluster.pre_filter(wanting) is None
    missing = unresolvable('looking up PVC default/data: persistentvolumeclaim "data" not found')
    assert cluster.statuses(wanting) == {"n1": missing, "n2": missing}


def test_a_missing_claim_of_a_pod_on_the_node_does_not_count() -> None:
    assert bench(1, *claims_and_volumes("b"), user("gone", name="other", node="n1")).filter(user("b")) == {}


def test_an_ephemeral_claim_counts_where_it_belongs_to_the_pod() -> None:
    wanting = user(EPHEMERAL)
    own = claim("web-v0", owner=wanting)
    assert bench(0, own, storage_class()).filter(wanting) == {"n1": FULL}
    cluster = bench(0, claim("web-v0"), storage_class())
    assert cluster.pre_filter(wanting) is None
    with pytest.raises(
        PluginError, match=r"PVC default/web-v0 was not created for pod default/web \(pod is not owner\)"
    ):
        cluster.plugin.filter_rows(cluster.state, wanting, cluster.snapshot, cluster.snapshot.order)
    with pytest.raises(PluginError, match="was not created for pod"):
        cluster.plugin.filter(cluster.state, wanting, cluster.snapshot.node(0))


def test_a_claim_without_a_name_is_an_error() -> None:
    cluster = bench(1)
    assert cluster.pre_filter(user("")) is None
    with pytest.raises(PluginError, match="PersistentVolumeClaim had no name"):
        cluster.plugin.filter_rows(cluster.state, user(""), cluster.snapshot, cluster.snapshot.order)


def test_an_inline_volume_that_cannot_be_translated_is_an_error_where_there_is_a_csi_node() -> None:
    wanting = user({"azureDisk": {"diskName": "d", "diskURI": "/d", "kind": "Dedicated"}})
    assert VolumePluginBench("NodeVolumeLimits", node("n1")).filter(wanting) == {}
    cluster = bench(1)
    assert cluster.pre_filter(wanting) is None
    words = r"converting volume\(v0\) from inline to csi: kind\(Dedicated\) is not supported in csi migration"
    with pytest.raises(PluginError, match=words):
        cluster.plugin.filter_rows(cluster.state, wanting, cluster.snapshot, cluster.snapshot.order)


def test_the_verdict_leaves_room_for_preemption() -> None:
    cluster = bench(0, *claims_and_volumes("b"))
    assert cluster.pre_filter(user("b")) is None
    assert cluster.statuses(user("b")) == {"n1": unschedulable(*FULL)}


PLUGIN = NodeVolumeLimits(None, RecordingHandle())


def hint(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


@pytest.mark.parametrize(
    ("old", "new", "helps"),
    [
        ({DRIVER: 1}, {DRIVER: 2}, True),
        ({DRIVER: 2}, {DRIVER: 1}, False),
        ({}, {DRIVER: 1}, True),
        ({DRIVER: None}, {DRIVER: 1}, True),
        ({DRIVER: 1}, {DRIVER: None}, False),
        ({DRIVER: 1}, {DRIVER: 1}, False),
    ],
)
def test_more_places_help(old: dict[str, int | None], new: dict[str, int | None], helps: bool) -> None:
    assert PLUGIN.after_csi_node_update(pod(), csi_node("n", old), csi_node("n", new)) is hint(helps)


@pytest.mark.parametrize(
    ("deleted_pod", "helps"),
    [
        (user("a", name="other", node="n1"), True),
        (user("a", name="other", nominated="n1"), True),
        (user("a", name="other"), False),
        (user(AWS, name="other", node="n1"), True),
        (user(EPHEMERAL, name="other", node="n1"), True),
        (user({"vsphereVolume": {"volumePath": "p"}}, name="other", node="n1"), True),
        (user({"csi": {"driver": DRIVER}}, name="other", node="n1"), False),
        (pod("other", node="n1"), False),
    ],
)
def test_a_pod_that_goes_helps_where_it_had_volumes_and_a_place(deleted_pod: Any, helps: bool) -> None:
    assert PLUGIN.after_pod_deletion(user("b"), deleted_pod, None) is hint(helps)


@pytest.mark.parametrize(
    ("new_claim", "helps"),
    [(claim("data"), True), (claim("web-v1"), True), (claim("logs"), False), (claim(namespace="elsewhere"), False)],
)
def test_a_claim_that_appears_helps_pods_that_use_it(new_claim: Any, helps: bool) -> None:
    assert PLUGIN.after_claim_added(user("data", EPHEMERAL), None, new_claim) is hint(helps)


@pytest.mark.parametrize(
    ("wanting", "attacher", "helps"),
    [
        (user("data"), "any", True),
        (user(AWS), "ebs.csi.aws.com", True),
        (user(AWS), "other", False),
        (user({"azureFile": {"shareName": "s", "secretName": "x"}}), "file.csi.azure.com", True),
        (user({"vsphereVolume": {"volumePath": "p"}}), "csi.vsphere.vmware.com", True),
        (user(EPHEMERAL), "any", False),
    ],
)
def test_a_detached_volume_helps_pods_with_claims_or_volumes_of_its_driver(
    wanting: Any, attacher: str, helps: bool
) -> None:
    assert PLUGIN.after_detachment(wanting, attachment("pv", "n1", attacher), None) is hint(helps)


def test_it_waits_for_nodes_pods_claims_and_detachments() -> None:
    assert [(registration.event, registration.hint is None) for registration in PLUGIN.events_to_register()] == [
        (ClusterEvent(EventResource.CSI_NODE, ActionType.ADD), True),
        (ClusterEvent(EventResource.CSI_NODE, ActionType.UPDATE), False),
        (ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE), False),
        (ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), False),
        (ClusterEvent(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE), False),
    ]

"""The contract between both forms of the volume plugins: in any cluster they say the same of every node."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.config.args import VolumeBindingArgs
from podium.framework.contract.status import PluginError
from podium.objects.core import Node, Pod
from podium.objects.storage import PersistentVolume, PersistentVolumeClaim
from tests.builders import node
from tests.unit.plugins.storage import (
    SELECTED_NODE,
    VolumePluginBench,
    attachment,
    capacity,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    user,
    volume,
)

LABELS = (
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "topology.ebs.csi.aws.com/zone",
)
VALUES = ("a", "b")
CLAIMS = ("c0", "c1", "c2")
VOLUMES = ("v0", "v1", "v2", "v3")
NODES = ("n0", "n1", "n2", "n3")
DRIVER = "disk.example.com"
AWS: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
CLASSES = ("slow", "made")

labels = st.dictionaries(st.sampled_from(LABELS), st.sampled_from((*VALUES, "a__b")), max_size=3)
node_labels = st.dictionaries(st.sampled_from(LABELS), st.sampled_from(VALUES), max_size=3)
reaches = st.one_of(
    st.none(),
    st.dictionaries(st.sampled_from(LABELS), st.lists(st.sampled_from(VALUES), min_size=1, max_size=2), max_size=2),
)
sizes = st.sampled_from(("1Gi", "2Gi"))
modes = st.sampled_from((("ReadWriteOnce",), ("ReadWriteOncePod",)))
inline = st.sampled_from(
    (
        AWS,
        {"awsElasticBlockStore": {"volumeID": "vol-2"}},
        {"gcePersistentDisk": {"pdName": "d"}},
        {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
        {"rbd": {"monitors": ["m"], "image": "i", "pool": "p"}},
        {"azureDisk": {"diskName": "d", "diskURI": "/d"}},
    )
)
used_volumes = st.one_of(st.sampled_from(CLAIMS), inline)


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    return [node(name, labels=draw(node_labels)) for name in NODES[: draw(st.integers(1, len(NODES)))]]


@st.composite
def claims(draw: st.DrawFn) -> list[PersistentVolumeClaim]:
    return [
        claim(
            name,
            storage_class=draw(st.sampled_from(CLASSES)),
            size=draw(sizes),
            modes=draw(modes),
            volume=draw(st.sampled_from(("", "", "v0", "gone"))),
            annotations=draw(st.sampled_from(({}, {}, {}, {SELECTED_NODE: "n1"}))),
        )
        for name in CLAIMS
    ]


@st.composite
def volumes(draw: st.DrawFn, claims: list[PersistentVolumeClaim]) -> list[PersistentVolume]:
    sources: tuple[dict[str, Any], ...] = (AWS, {}, {"gcePersistentDisk": {"pdName": "d"}})
    return [
        volume(
            name,
            storage_class=draw(st.sampled_from(CLASSES)),
            size=draw(sizes),
            modes=("ReadWriteOnce", "ReadWriteOncePod"),
            labels=draw(labels),
            reach=draw(reaches),
            kept_for=draw(st.sampled_from((None, None, claims[0], claims[1]))),
            **draw(st.sampled_from(({"csi": (DRIVER, name)}, *sources))),
        )
        for name in VOLUMES
    ]


@st.composite
def csi_nodes(draw: st.DrawFn) -> list[Any]:
    limits = st.dictionaries(st.sampled_from((DRIVER, "ebs.csi.aws.com")), st.sampled_from((None, 0, 1, 2, 3)))
    migrated = st.sampled_from(("", "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"))
    return [csi_node(name, draw(limits), draw(migrated)) for name in NODES if draw(st.booleans())]


@st.composite
def pods(draw: st.DrawFn, names: list[str]) -> list[Pod]:
    return [
        user(*draw(st.lists(used_volumes, max_size=3)), name=f"p{index}", node=draw(st.sampled_from(names)))
        for index in range(draw(st.integers(0, 4)))
    ]


@st.composite
def clusters(draw: st.DrawFn) -> list[Any]:
    some_nodes, some_claims = draw(nodes()), draw(claims())
    topologies = st.lists(
        st.dictionaries(
            st.sampled_from(LABELS), st.lists(st.sampled_from(VALUES), min_size=1, max_size=1), min_size=1, max_size=2
        ),
        max_size=2,
    )
    capacities = st.lists(st.tuples(node_labels, sizes), max_size=2)
    return [
        *some_nodes,
        *some_claims,
        *draw(volumes(some_claims)),
        *draw(csi_nodes()),
        *draw(pods([some_node.name for some_node in some_nodes])),
        storage_class("slow", provisioner="kubernetes.io/no-provisioner"),
        storage_class("made", provisioner=DRIVER, topologies=draw(topologies)),
        csi_driver(DRIVER, publishes=draw(st.booleans())),
        *(
            capacity(f"k{index}", storage_class="made", on=on, size=size)
            for index, (on, size) in enumerate(draw(capacities))
        ),
        *(attachment(name, "n0", DRIVER) for name in VOLUMES if draw(st.booleans())),
    ]


def fails_somewhere(bench: VolumePluginBench, wanting: Pod) -> bool:
    """Return True if the node form fails on some node: then the table form may fail on all."""
    for row in bench.snapshot.order:
        try:
            bench.plugin.filter(bench.state, wanting, bench.snapshot.node(row))
        except PluginError:
            return True
    return False


@settings(max_examples=80, deadline=None)
@given(items=clusters(), volumes=st.lists(used_volumes, min_size=1, max_size=3))
def test_both_forms_of_the_volume_plugins_filter_alike(items: list[Any], volumes: list[Any]) -> None:
    wanting = user(*volumes, name="new")
    for plugin in ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"):
        bench = VolumePluginBench(plugin, *items, args=VolumeBindingArgs())
        if bench.pre_filter(wanting) is not None:
            continue
        try:
            bench.statuses(wanting)  # compares
        except PluginError:
            assert fails_somewhere(bench, wanting)

from __future__ import annotations

from typing import Any

import pytest

from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.status import SKIP, unschedulable
from podium.objects.core import Pod
from podium.plugins.node_ports import NodePorts
from tests.builders import node, pod, snapshot_of
from tests.unit.plugins.clusters import STATE, RecordingHandle, filter_nodes

PLUGIN = NodePorts(None, RecordingHandle())
REJECTED = unschedulable("node(s) didn't have free ports for the requested pod ports")


def port(number: int, protocol: str = "", ip: str = "") -> dict[str, Any]:
    return {"containerPort": 80, "hostPort": number, "protocol": protocol, "hostIP": ip}


@pytest.mark.parametrize(
    ("used_port", "wanted_port", "conflict"),
    [
        (port(80), port(80), True),
        (port(80), port(81), False),
        (port(80), port(80, "TCP"), True),
        (port(80, "UDP"), port(80), False),
        (port(80, ip="10.0.0.1"), port(80, ip="10.0.0.2"), False),
        (port(80, ip="10.0.0.1"), port(80, ip="10.0.0.1"), True),
        (port(80, ip="10.0.0.1"), port(80), True),
        (port(80, ip="0.0.0.0"), port(80, ip="10.0.0.1"), True),
    ],
)
def test_a_port_conflicts_by_protocol_number_and_address(
    used_port: dict[str, Any], wanted_port: dict[str, Any], conflict: bool
) -> None:
    snapshot = snapshot_of(node("n1"), node("n2"), pod("there", node="n1", host_ports=[used_port]))
    statuses = {"n1": REJECTED} if conflict else {}
    assert filter_nodes(PLUGIN, pod(host_ports=[wanted_port]), snapshot) == statuses


def test_pods_without_host_ports_are_skipped() -> None:
    snapshot = snapshot_of(node("n1"))
    assert PLUGIN.pre_filter(STATE, pod(), snapshot) == (None, SKIP)
    assert PLUGIN.pre_filter(STATE, pod(host_ports=[port(0)]), snapshot) == (None, SKIP)
    assert PLUGIN.pre_filter(STATE, pod(host_ports=[port(80)]), snapshot) == (None, None)


def test_sidecars_count_and_other_init_containers_do_not() -> None:
    def initial(**fields: str) -> Pod:
        return pod(spec={"initContainers": [{"name": "i", "ports": [port(80)], **fields}]})

    snapshot = snapshot_of(node("n1"))
    assert PLUGIN.pre_filter(STATE, initial(), snapshot) == (None, SKIP)
    assert PLUGIN.pre_filter(STATE, initial(restartPolicy="Always"), snapshot) == (None, None)


WANTING = pod(host_ports=[port(80)])


@pytest.mark.parametrize(
    ("deleted_pod", "hint"),
    [
        (pod("old", node="n1", host_ports=[port(80)]), QueueingHint.QUEUE),
        (pod("old", nominated="n1", host_ports=[port(80)]), QueueingHint.QUEUE),
        (pod("old", host_ports=[port(80)]), QueueingHint.SKIP),
        (pod("old", node="n1", host_ports=[port(81)]), QueueingHint.SKIP),
        (pod("old", node="n1"), QueueingHint.SKIP),
    ],
)
def test_a_deleted_pod_helps_when_it_held_a_conflicting_port(deleted_pod: Pod, hint: QueueingHint) -> None:
    assert PLUGIN.after_pod_deletion(WANTING, deleted_pod, None) is hint


def test_it_registers_for_deleted_pods_and_any_new_node() -> None:
    on_pod, on_node = PLUGIN.events_to_register()
    assert on_pod.event.label == "AssignedPodDelete"
    assert (on_node.event.label, on_node.hint) == ("NodeAdd", None)

"""A kit for testing plugins: builders of objects, one scheduling cycle, and the checks of the plugin contract.

Owns everything a plugin's author needs to run it without a cluster. Never starts a daemon, never does I/O, and needs no
test framework: a failed check raises an AssertionError.

    from podium.testing import check_contract, node, pod, schedule_once

    def test_the_big_node_wins():
        nodes = [node("small", cpu="2"), node("big", cpu="64")]
        assert schedule_once(pod(), nodes, plugins=[PreferBigNodes]).node_name == "big"

    def test_it_keeps_the_contract():
        check_contract(PreferBigNodes)
"""

from podium.testing.builders import node, node_metrics, pod, pod_group
from podium.testing.contract import BrokenContract, check_contract
from podium.testing.handle import NotedEvent, RecordingHandle
from podium.testing.one_cycle import Result, schedule_once, snapshot_of

__all__ = [
    "BrokenContract",
    "NotedEvent",
    "RecordingHandle",
    "Result",
    "check_contract",
    "node",
    "node_metrics",
    "pod",
    "pod_group",
    "schedule_once",
    "snapshot_of",
]

from __future__ import annotations

import pytest

from podium.config import EVALUATED, NEWEST, Release
from podium.config.args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from podium.framework.contract.status import SKIP, Code
from podium.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from tests.builders import node, pod, snapshot_of
from tests.unit.plugins.clusters import STATE, RecordingHandle, score_nodes, scored_one_by_one

GPU = "example.com/gpu"


def plugin(*resources: str, release: Release = NEWEST) -> NodeResourcesBalancedAllocation:
    specs = tuple(ResourceSpec(name) for name in resources or ("cpu", "memory"))
    return NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs(specs), RecordingHandle(release=release))


@pytest.mark.parametrize(
    ("usage", "requests", "score"),
    [
        # cpu 0 → 0.5, memory 0 → 0.5: as even as before, 50 + (50 + 100 - 100) // 2.
        ((0, 0), (500, 500), 75),
        # 0 and 0 → 0.5 and 0: the deviation rises from 0 to 0.25.
        ((0, 0), (500, 0), 62),
        # 0 and 0.5 → 0.5 and 0.5: it falls from 0.25 to 0.
        ((0, 500), (500, 0), 87),
        # 0 and 1 → 1 and 1, where more than all counts as all.
        ((0, 1000), (2000, 0), 100),
        # 0 and 0 → 1 and 0.
        ((0, 0), (1000, 0), 50),
    ],
)
def test_the_score_tells_what_the_pod_does_to_the_balance(
    usage: tuple[int, int], requests: tuple[int, int], score: int
) -> None:
    running_pod = pod("there", node="n1", requests={"cpu": f"{usage[0]}m", "memory": usage[1]})
    snapshot = snapshot_of(node("n1", cpu="1", memory="1000"), running_pod)
    incoming = pod(requests={"cpu": f"{requests[0]}m", "memory": requests[1]})
    assert score_nodes(plugin(), incoming, snapshot) == {"n1": score}
    assert scored_one_by_one(plugin(), incoming, snapshot) == {"n1": score}


def test_as_1_35_only_the_balance_with_the_pod_counts() -> None:
    running_pod = pod("there", node="n1", requests={"cpu": "500m", "memory": 0})
    snapshot = snapshot_of(
        node("n1", cpu="1", memory="1000"), node("n2", cpu="2", memory="1000"), node("n3", cpu="1"), running_pod
    )
    incoming = pod(requests={"cpu": "500m", "memory": 500})
    subject = plugin(release=EVALUATED["1.35"])
    # cpu 1 and memory 0.5; cpu 0.25 and memory 0.5.
    scores = score_nodes(subject, incoming, snapshot)
    assert (scores["n1"], scores["n2"]) == (75, 87)
    assert scored_one_by_one(subject, incoming, snapshot) == scores
    alone = plugin("cpu", release=EVALUATED["1.35"])
    assert set(score_nodes(alone, incoming, snapshot).values()) == {100}


def test_three_resources_use_the_population_standard_deviation() -> None:
    snapshot = snapshot_of(node("n1", cpu="1", memory="1000", allocatable={GPU: "4"}))
    incoming = pod(requests={"cpu": "1", "memory": 0, GPU: 2})
    # 1, 0 and 0.5: deviation sqrt(1/6) = 0.408…, so 59 against 100 without the pod: 50 + 9 // 2.
    assert score_nodes(plugin("cpu", "memory", GPU), incoming, snapshot) == {"n1": 54}


def test_resources_that_a_node_lacks_do_not_count_there() -> None:
    resources = ("cpu", "memory", GPU)
    snapshot = snapshot_of(
        node("all", cpu="1", memory="1000", allocatable={GPU: "4"}),
        node("two", cpu="1", memory="1000"),
        node("one", cpu="1", memory="0"),
        node("none", cpu="0", memory="0"),
    )
    incoming = pod(requests={"cpu": "1", GPU: 2})
    assert score_nodes(plugin(*resources), incoming, snapshot) == {"all": 54, "two": 50, "one": 75, "none": 75}
    assert scored_one_by_one(plugin(*resources), incoming, snapshot) == {"all": 54, "two": 50, "one": 75, "none": 75}


def test_scalars_that_the_pod_does_not_request_do_not_count() -> None:
    snapshot = snapshot_of(
        node("n1", cpu="1", memory="1000", allocatable={GPU: "4"}), pod("there", node="n1", requests={GPU: 4})
    )
    incoming = pod(requests={"cpu": "500m", "memory": "500"})
    assert score_nodes(plugin("cpu", "memory", GPU), incoming, snapshot) == {"n1": 75}


def test_it_is_skipped_for_pods_that_request_none_of_the_resources() -> None:
    snapshot = snapshot_of(node("n1"))

    def answer(**requests: str) -> object:
        return plugin().pre_score(STATE, pod(requests=requests), snapshot, snapshot.order)

    assert answer() is SKIP
    assert answer(cpu="0", storage="1Gi") is SKIP
    assert answer(memory="1") is None


def test_an_unreadable_request_is_an_error() -> None:
    snapshot = snapshot_of(node("n1"))
    status = plugin().pre_score(STATE, pod(requests={"cpu": "much"}), snapshot, snapshot.order)
    assert status is not None
    assert status.code is Code.ERROR


def test_it_rejects_nothing_and_so_waits_for_nothing() -> None:
    assert plugin().events_to_register() == ()

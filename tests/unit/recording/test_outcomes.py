"""Numbers of an outcome, and which outcomes are not beaten."""

from __future__ import annotations

from dataclasses import replace

from podium.recording.outcomes import Outcomes, State, outcomes, pareto_front, state_of, typical_requests
from podium.recording.simulated_api import PodStory
from tests.builders import node, pod

ZONE = "topology.kubernetes.io/zone"
GOOD = Outcomes(
    attempts=1,
    placed=5,
    pending=0,
    bind_s_p50=1.0,
    bind_s_p99=1.0,
    cpu=0.5,
    memory=0.5,
    fragmentation=0.1,
    spread=0.1,
    preemptions=0,
)


def test_state_of_a_cluster() -> None:
    nodes = [node("n1", cpu="4", labels={ZONE: "a"}), node("n2", cpu="4", labels={ZONE: "b"})]
    pods = [pod("one", cpu="3500m", node="n1"), pod("waits", cpu="1")]
    result = state_of(nodes, pods, (1000, 0))
    assert result.cpu == 0.4375
    assert result.fragmentation == 500 / 4500
    assert result.spread == 1.0


def test_typical_pod_has_the_median_requests() -> None:
    assert typical_requests([pod(f"p{cpu}", cpu=f"{cpu}m") for cpu in (100, 200, 900)])[0] == 200
    assert typical_requests([]) == (0, 0)


def test_pods_that_were_deleted_while_they_waited_are_neither_placed_nor_pending() -> None:
    stories = [
        PodStory("default/bound", 1.0, "n1", 1.5),
        PodStory("default/slow", 1.0, "n1", 4.0),
        PodStory("default/waits", 1.0),
        PodStory("default/gone", 1.0, is_gone=True),
    ]
    result = outcomes(stories, [State(0.2, 0.4, 0.0, 0.0), State(0.4, 0.4, 0.0, 0.0)], attempts=9, preemptions=2)
    assert (result.placed, result.pending, result.attempts, result.preemptions) == (2, 1, 9, 2)
    assert (result.bind_s_p50, result.bind_s_p99) == (0.5, 3.0)
    assert result.cpu == 0.3


def test_nothing_bound_has_no_time_to_bind() -> None:
    assert outcomes([], [], attempts=0, preemptions=0).bind_s_p50 is None


def test_pareto_front_holds_what_nothing_beats() -> None:
    slower, evener = replace(GOOD, bind_s_p99=2.0), replace(GOOD, spread=0.0, preemptions=3)
    assert pareto_front([GOOD, slower, evener]) == [True, False, True]


def test_equal_outcomes_are_both_on_the_front() -> None:
    assert pareto_front([GOOD, replace(GOOD)]) == [True, True]

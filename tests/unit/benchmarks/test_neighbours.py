from __future__ import annotations

import io
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from rich.console import Console

from benchmarks.neighbours import FLAGS, NEIGHBOUR, Filled, checks, summary, sums, table, waiting_pods, who_bound
from benchmarks.nodes import CPUS
from benchmarks.pods import SCHEDULER_NAME, pod

OFF = Filled(
    mitigation="off",
    runs=1,
    pods=900,
    bound=450,
    neighbours_bound=440,
    turned_away=20,
    cpus_turned_away=100,
    neighbours_turned_away=5,
    counted=21,
    neighbours_counted=6,
)
ON = replace(OFF, mitigation="on", cpus_turned_away=50)


def cpus(item: dict[str, Any]) -> int:
    return int(item["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def bound_pod(version: int, scheduler: str, cpu: int, node: str | None = "n1") -> dict[str, Any]:
    bound_pod = pod(f"pod-{version}", "app", cpu=str(cpu), schedulerName=scheduler)
    bound_pod["metadata"]["resourceVersion"] = str(version)
    if node is not None:
        bound_pod["spec"]["nodeName"] = node
    return bound_pod


def test_the_pods_ask_for_so_much_of_the_nodes_in_turn_for_either_scheduler() -> None:
    pods = waiting_pods(10, Random(1))
    assert sum(map(cpus, pods)) == int(10 * CPUS * 0.95)
    assert [pod["spec"]["schedulerName"] for pod in pods[:4]] == [SCHEDULER_NAME, NEIGHBOUR] * 2
    assert pods == waiting_pods(10, Random(1))


def test_who_comes_last_is_to_blame_and_takes_no_room() -> None:
    shares, away = who_bound(
        [
            bound_pod(12, SCHEDULER_NAME, CPUS),
            bound_pod(9, NEIGHBOUR, 1),
            bound_pod(13, NEIGHBOUR, CPUS - 1),
            bound_pod(14, NEIGHBOUR, 2),
            bound_pod(15, SCHEDULER_NAME, 3, node=None),
        ]
    )
    assert shares == {SCHEDULER_NAME: 1, NEIGHBOUR: 3}
    assert away == {SCHEDULER_NAME: [CPUS], NEIGHBOUR: [2]}


def test_fillings_are_summed_up_by_mitigation() -> None:
    off, on = sums([OFF, ON, OFF])
    assert (off.mitigation, off.runs, off.cpus_turned_away) == ("off", 2, 200)
    assert on == ON


@pytest.mark.parametrize(("cpus_left", "is_met"), [(50, True), (51, False)])
def test_at_most_half_of_the_overcommit_is_to_be_left(cpus_left: int, is_met: bool) -> None:
    (check,) = checks([OFF, replace(ON, cpus_turned_away=cpus_left)])
    assert check.is_met is is_met
    assert list(checks([replace(OFF, cpus_turned_away=0), ON])) == []


def test_the_table_has_a_row_for_each_mitigation() -> None:
    output = io.StringIO()
    Console(file=output, width=160).print(table([OFF, ON]))
    rows = [line for line in output.getvalue().splitlines() if line.startswith("│")]
    assert [row.split("│")[1].strip() for row in rows] == list(FLAGS)


def test_a_filling_is_summed_up_in_a_line() -> None:
    assert summary(OFF) == (
        "mitigation off: podium bound 450 pods, 20 of them in vain (100 CPUs), kube-scheduler 440 and 5; "
        "podium counted 21 and 6"
    )

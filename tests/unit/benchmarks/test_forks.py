import io
from dataclasses import replace

from rich.console import Console

from benchmarks.forks import checks, measure, table


def test_a_small_cluster_is_forked_and_written_to() -> None:
    costs = measure(nodes=5, pods=20, forks=9)
    assert (costs.nodes, costs.pods, costs.alive) == (5, 20, 9)
    assert min(costs.fork_ms, costs.first_pod_ms, costs.first_node_ms, costs.next_change_ms, costs.written_kb) > 0
    output = io.StringIO()
    Console(file=output, width=120).print(table(costs))
    assert "next change ms" in output.getvalue()


def test_forks_are_held_against_what_is_promised() -> None:
    costs = replace(measure(nodes=2, pods=3, forks=3), fork_ms=1.9, fork_kb=199.0)
    assert [each.is_met for each in checks(costs)] == [True, True]
    assert [each.is_met for each in checks(replace(costs, fork_ms=2.1))] == [False, True]
    assert [each.is_met for each in checks(replace(costs, fork_kb=201.0))] == [True, False]

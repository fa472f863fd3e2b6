import io
from dataclasses import replace

from rich.console import Console

from benchmarks.forks import checks, measure, measure_victims, table


def test_a_small_cluster_is_forked_and_written_to() -> None:
    costs = measure(nodes=5, pods=20, forks=9)
    assert (costs.nodes, costs.pods, costs.alive) == (5, 20, 9)
    assert min(costs.fork_ms, costs.first_pod_ms, costs.first_node_ms, costs.next_change_ms, costs.written_kb) > 0
    victims = measure_victims(nodes=4, victims=2)
    assert (victims.nodes, victims.victims) == (4, 2)
    assert min(victims.plain_ms, victims.apart_ms) > 0
    output = io.StringIO()
    Console(file=output, width=120).print(table(costs, victims))
    assert "next change ms" in output.getvalue()
    assert "2 victims ms" in output.getvalue()


def test_forks_and_preemptions_are_held_against_what_is_promised() -> None:
    costs = replace(measure(nodes=2, pods=3, forks=3), fork_ms=1.9, fork_kb=199.0)
    victims = replace(measure_victims(nodes=2, victims=1), plain_ms=1.0, apart_ms=999.0)
    assert [check.is_met for check in checks(costs, victims)] == [True, True, True]
    assert [check.is_met for check in checks(replace(costs, fork_ms=2.1), victims)] == [False, True, True]
    assert [check.is_met for check in checks(replace(costs, fork_kb=201.0), victims)] == [True, False, True]
    assert [check.is_met for check in checks(costs, replace(victims, apart_ms=1001.0))] == [True, True, False]

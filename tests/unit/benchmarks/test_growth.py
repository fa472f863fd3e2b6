import io

from rich.console import Console

from benchmarks.growth import MORE_NODES, NODES, RUNNING, by_nodes, by_pods, checks, table
from benchmarks.in_process import Rate


def rates(*, many_pods_us: float = 120, many_nodes_us: float = 200) -> list[Rate]:
    """A workload that takes 100 µs in every cluster but the largest."""

    def rate(nodes: int, running: int, us: float) -> Rate:
        return Rate("plain", nodes, running, attempts=1, cpu_s=us / 1e6)

    few_pods, *_, many_pods = RUNNING[1:]
    return [
        *(rate(NODES, running, many_pods_us if running == many_pods else 100) for running in RUNNING),
        rate(MORE_NODES[0], few_pods, 100),
        rate(MORE_NODES[-1], few_pods, many_nodes_us),
    ]


def test_the_cost_is_told_by_pods_and_by_nodes() -> None:
    assert tuple(by_pods(rates())) == RUNNING
    assert set(by_nodes(rates())) == set(MORE_NODES)


def test_growth_is_held_against_its_limits() -> None:
    assert [check.is_met for check in checks([rates()])] == [True, True]
    assert [check.is_met for check in checks([rates(many_pods_us=131)])] == [False, True]
    assert [check.is_met for check in checks([rates(many_nodes_us=251)])] == [True, False]


def test_the_table_has_a_row_for_each_workload() -> None:
    output = io.StringIO()
    Console(file=output, width=120).print(table([rates()]))
    (row,) = [line for line in output.getvalue().splitlines() if line.startswith("│")]
    assert [cell.strip() for cell in row.split("│")[1:-1]] == ["plain", "100", "100", "100", "120", "100", "100", "200"]

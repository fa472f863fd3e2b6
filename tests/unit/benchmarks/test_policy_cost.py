import io

from rich.console import Console

from benchmarks.in_process import Rate
from benchmarks.policy_cost import checks, measure, table


def test_attempts_are_measured_without_and_with_policies() -> None:
    rates = measure(nodes=8, attempts=2, rounds=2)
    assert [(rate.workload, rate.nodes) for rate in rates] == [("plain", 8), ("policies", 8)]
    output = io.StringIO()
    Console(file=output, width=120).print(table(rates))
    assert "policies" in output.getvalue()


def test_policies_may_cost_half_an_attempt() -> None:
    def rates(us: float) -> list[Rate]:
        return [Rate("plain", 1, 0, attempts=1, cpu_s=100e-6), Rate("policies", 1, 0, attempts=1, cpu_s=us / 1e6)]

    assert [check.is_met for check in checks(rates(149))] == [True]
    assert [check.is_met for check in checks(rates(151))] == [False]

import io
from dataclasses import replace

from rich.console import Console

from benchmarks.recorder import checks, measure, table


def test_attempts_are_measured_without_the_recorder_and_with_it() -> None:
    rates = measure(nodes=4, attempts=5, rounds=2)
    assert [(rate.workload, rate.nodes, rate.attempts) for rate in rates] == [("plain", 4, 5)] * 2
    output = io.StringIO()
    Console(file=output, width=120).print(table(rates))
    assert "µs per attempt" in output.getvalue()


def test_an_attempt_may_cost_seven_microseconds_more() -> None:
    without = replace(measure(nodes=2, attempts=2, rounds=1)[0], attempts=1, cpu_s=100e-6)
    assert [check.is_met for check in checks([without, replace(without, cpu_s=106e-6)])] == [True]
    assert [check.is_met for check in checks([without, replace(without, cpu_s=108e-6)])] == [False]

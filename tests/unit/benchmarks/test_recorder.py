import io
from dataclasses import replace

from rich.console import Console

from benchmarks.recorder import checks, measure, table


def test_attempts_are_measured_without_the_recorder_and_with_it() -> None:
    rates = measure(nodes=4, attempts=5, rounds=2)
    assert [(each.workload, each.nodes, each.attempts) for each in rates] == [("plain", 4, 5)] * 2
    output = io.StringIO()
    Console(file=output, width=120).print(table(rates))
    assert "µs per attempt" in output.getvalue()


def test_an_attempt_may_cost_seven_microseconds_more() -> None:
    without = replace(measure(nodes=2, attempts=2, rounds=1)[0], attempts=1, cpu_s=100e-6)
    assert [each.is_met for each in checks([without, replace(without, cpu_s=106e-6)])] == [True]
    assert [each.is_met for each in checks([without, replace(without, cpu_s=108e-6)])] == [False]

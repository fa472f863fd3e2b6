import io

from rich.console import Console

from benchmarks.recording import MODES, RECORDING, WITHOUT, checks, plan, table
from benchmarks.report import medians
from benchmarks.schedulers import PODIUM
from tests.unit.benchmarks.test_report import run

RUNS = [
    run(scheduler=WITHOUT, cpu_interval_s=10.0, cpu_tail_s=0.0),
    run(scheduler=PODIUM, cpu_interval_s=10.05, cpu_tail_s=0.0),
    run(scheduler=RECORDING, cpu_interval_s=10.5, cpu_tail_s=0.0),
]


def test_each_mode_runs_as_often() -> None:
    assert plan(500, 100, 5).run_count == 15
    assert list(MODES) == [WITHOUT, PODIUM, RECORDING]


def test_recorders_may_take_one_percent_of_the_cpu_per_pod() -> None:
    assert [check.is_met for check in checks(medians(RUNS))] == [True, False]
    assert list(checks(medians(RUNS[1:]))) == []


def test_the_table_tells_the_ratio_to_no_recorder() -> None:
    output = io.StringIO()
    Console(file=output, width=160).print(table(medians(RUNS)))
    assert [word for word in output.getvalue().split() if word.startswith("1.0")] == ["1.000", "1.005", "1.050"]

import io
from dataclasses import replace

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


def test_the_flight_recorder_may_take_one_percent_of_the_cpu_per_pod_and_a_recording_five() -> None:
    assert [check.is_met for check in checks(medians(RUNS))] == [True, True]
    slower = [RUNS[0], *(replace(mode, cpu_interval_s=mode.cpu_interval_s + 0.06) for mode in RUNS[1:])]
    assert [check.is_met for check in checks(medians(slower))] == [False, False]
    assert list(checks(medians(RUNS[1:]))) == []


def test_the_table_tells_the_ratio_to_no_recorder() -> None:
    output = io.StringIO()
    Console(file=output, width=160).print(table(medians(RUNS)))
    assert [word for word in output.getvalue().split() if word.startswith("1.0")] == ["1.000", "1.005", "1.050"]

from pathlib import Path

import pytest

from benchmarks.__main__ import command, parser, sizes, starters, workload_names
from benchmarks.api_server import Size
from benchmarks.targets import TARGETS
from benchmarks.workloads import Place


def test_without_arguments_everything_that_has_a_target_is_measured_with_both_schedulers() -> None:
    options = parser().parse_args([])
    assert (options.what, options.scheduler, options.repeat, options.json) == ("api-server", "both", 3, None)
    assert [(size.workload, size.nodes) for size in sizes(options)] == [
        (target.workload, target.nodes) for target in TARGETS if not target.is_measured_alone
    ]


def test_sizes_are_every_workload_in_every_cluster() -> None:
    options = parser().parse_args(["--workload", "gated", "plain", "--nodes", "10", "20", "--pods", "7"])
    assert sizes(options) == [Size(name, nodes, pods=7) for nodes in (10, 20) for name in ("plain", "gated")]


def test_all_workloads_are_those_that_the_place_has() -> None:
    options = parser().parse_args(["in-process", "--workload", "all"])
    engine, server = workload_names(options, Place.ENGINE, []), workload_names(options, Place.API_SERVER, [])
    assert "plain" in engine
    assert "gated" in set(server) - set(engine)


def test_sizes_are_many_words() -> None:
    options = parser().parse_args(["profile", "--nodes", "1000", "5000", "--json", "out.json"])
    assert (options.what, options.nodes, options.json) == ("profile", [1000, 5000], Path("out.json"))


@pytest.mark.parametrize("arguments", [["--pods", "0"], ["--repeat", "-1"], ["--workload", "unheard-of"], ["fly"]])
def test_what_makes_no_sense_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(arguments)
    assert "error:" in capsys.readouterr().err


def test_another_scheduler_runs_in_the_place_of_kube_scheduler() -> None:
    options = parser().parse_args(["--peer-binary", "/builds/another-scheduler"])
    assert list(starters(options)) == ["podium", "peer"]
    assert command(options) == "python -m benchmarks api-server --peer-binary another-scheduler"


def test_the_command_names_what_was_asked_for_and_no_files() -> None:
    assert command(parser().parse_args([])) == "python -m benchmarks api-server"
    options = parser().parse_args(["growth", "--workload", "plain", "gated", "--repeat", "1", "--json", "/tmp/x.json"])
    assert command(options) == "python -m benchmarks growth --workload plain gated --repeat 1"

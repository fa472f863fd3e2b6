from pathlib import Path

import pytest

from benchmarks.__main__ import parser


def test_without_arguments_both_schedulers_are_measured_with_plain_pods() -> None:
    options = parser().parse_args([])
    assert (options.what, options.scheduler, options.workload, options.repeat) == ("api-server", "both", ["plain"], 3)
    assert options.json is None


def test_sizes_are_many_words() -> None:
    options = parser().parse_args(["profile", "--nodes", "1000", "5000", "--json", "out.json"])
    assert (options.what, options.nodes, options.json) == ("profile", [1000, 5000], Path("out.json"))


@pytest.mark.parametrize("arguments", [["--pods", "0"], ["--repeat", "-1"], ["--workload", "unheard-of"], ["fly"]])
def test_what_makes_no_sense_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(arguments)
    assert "error:" in capsys.readouterr().err

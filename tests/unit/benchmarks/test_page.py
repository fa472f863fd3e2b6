from dataclasses import asdict, replace
from pathlib import Path

import pytest
from rich.table import Table

from benchmarks.page import markdown, write
from benchmarks.report import as_json
from benchmarks.results import ResultsError
from benchmarks.results import write as write_results
from tests.unit.benchmarks import (
    test_burst,
    test_estimates,
    test_growth,
    test_million,
    test_provisioning,
    test_shards,
    test_start_up,
    test_storm,
    test_subsystems,
)
from tests.unit.benchmarks.test_report import run

MACHINE = {
    "time": "2026-01-02T03:04:05+00:00",
    "cpu": "Some CPU 9000",
    "cores": 2,
    "addition_ns": 54.0,
    "memory_mib": 8192,
    "kernel": "6.12.0",
    "python": "3.11.7",
    "podium": "0.1.0",
    "commit": "abc1234",
    "etcd": "3.6.1",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a small measurement of each kind."""
    runs = [run(nodes=5000), run(nodes=5000, scheduler="kube-scheduler", interval_s=8.0, cpu_interval_s=4.0)]
    starts = [test_start_up.PODIUM, test_start_up.OTHER]
    rates = test_growth.rates()
    directory = tmp_path_factory.mktemp("results")
    for name, content in {
        "api-server": as_json(runs, MACHINE),
        "in-process": {"machine": MACHINE, "rates": [asdict(rate) for rate in rates]},
        "growth": {"machine": MACHINE, "rates": [asdict(replace(rate, workload="gated")) for rate in rates]},
        "start-up": {"machine": MACHINE, "starts": [asdict(start) for start in starts]},
        "estimator": {"machine": MACHINE, "estimates": [asdict(test_estimates.PODIUM), asdict(test_estimates.OTHER)]},
        "provisioning": {
            "machine": MACHINE,
            "plans": [asdict(test_provisioning.PODIUM), asdict(test_provisioning.OTHER)],
        },
        "burst": {"machine": MACHINE, "bursts": [asdict(test_burst.BURST)]},
        "million": {"machine": MACHINE, "costs": [asdict(test_million.COST)]},
        "shards": {"machine": MACHINE, "bursts": [asdict(test_shards.ONE), asdict(test_shards.THREE)]},
        "subsystems": {"machine": MACHINE, "costs": [asdict(test_subsystems.COST)]},
        "storm": {"machine": MACHINE, "phases": [asdict(phase) for phase in test_storm.PHASES]},
    }.items():
        write_results(directory / f"{name}.json", {"command": f"python -m benchmarks {name}", **content})
    return directory


@pytest.fixture(scope="module")
def page(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(results, tmp_path_factory.mktemp("docs"))


@pytest.mark.long
def test_the_page_has_a_section_for_each_file_with_machine_command_and_figures(page: Path) -> None:
    text = page.read_text()
    assert text.count("\n## ") == 11
    assert text.count("Some CPU 9000, 2 cores, 8 GiB, Linux 6.12.0, with Python 3.11.7") == 11
    assert "$ python -m benchmarks growth\n" in text
    assert "| plain | 5,000 | podium | 2,000 | 500 |" in text
    assert "| plain, 5,000 nodes: pods/s | ≥ 1.5× | 2× | met |" in text
    assert "| gated | 100 | 100 | 100 | 120 | 100 | 100 | 200 |" in text
    assert "| storm, 1,000 nodes: rate kept | ≥ 0.7× | 0.8× | met |" in text
    assert "| estimates, plain, 5,000 nodes: questions per core | ≥ 10× | 12× | met |" in text
    assert "| start with 5,000 nodes and 50,000 pods: ready | ≤ 5 s | 4 s | met |" in text
    assert "| 2,000 | diverse | karpenter | 400 | 704.00 | 0 | 0 | 3.90 | 4.00 | 2,000 | 90 |" in text
    assert "| plans, diverse, 2,000 pods: CPU | ≤ 0.5× | 0.25× | met |" in text


@pytest.mark.long
def test_every_plot_of_the_page_is_drawn_and_shows_what_it_is_about(page: Path) -> None:
    for name in ("throughput", "cpu", "growth"):
        assert f"(performance/{name}.svg)" in page.read_text()
        assert (page.parent / "performance" / f"{name}.svg").read_text().startswith("<?xml")
    assert "2.00×" in (page.parent / "performance" / "throughput.svg").read_text()


@pytest.mark.long
def test_the_same_results_give_the_same_files(results: Path, page: Path, tmp_path: Path) -> None:
    second_page = write(results, tmp_path)
    first, second = (
        {path.name: path.read_bytes() for path in directory.parent.rglob("*.*")} for directory in (page, second_page)
    )
    assert first == second


def test_what_was_not_measured_has_no_section(results: Path, tmp_path: Path) -> None:
    (tmp_path / "start-up.json").write_bytes((results / "start-up.json").read_bytes())
    text = write(tmp_path, tmp_path / "docs").read_text()
    assert "## Growth" not in text
    assert "## Start-up" in text


@pytest.mark.long
def test_sections_that_were_not_measured_anew_stay_as_they_were(results: Path, page: Path, tmp_path: Path) -> None:
    text, docs = page.read_text(), tmp_path / "docs"
    write(results, docs)
    (tmp_path / "growth.json").write_bytes((results / "growth.json").read_bytes())
    assert write(tmp_path, docs).read_text() == text


def test_there_is_no_page_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="make bench"):
        write(tmp_path, tmp_path / "docs")
    assert not (tmp_path / "docs").exists()


def test_a_file_of_another_version_is_named(tmp_path: Path) -> None:
    (tmp_path / "growth.json").write_text('{"machine": {}, "command": "", "rates": [{"workload": "plain"}]}')
    with pytest.raises(ResultsError, match=r"growth\.json.*measure again"):
        write(tmp_path, tmp_path / "docs")


def test_a_table_keeps_alignment_and_bold_rows_and_loses_colours() -> None:
    table = Table("name")
    table.add_column("pods\nper s", justify="right")
    table.add_row("one", "[bold red]1[/]")
    table.add_row("", "2", style="bold")
    assert markdown(table) == "| name | pods per s |\n| --- | ---: |\n| one | 1 |\n|  | **2** |\n"

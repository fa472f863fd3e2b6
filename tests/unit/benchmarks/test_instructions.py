from io import StringIO

import pytest
from rich.console import Console

from benchmarks.instructions import Count, measure, table, total
from benchmarks.workloads import WORKLOADS
from tests.control_plane.locate import Binaries
from tests.control_plane.processes import StartError


def test_the_count_is_read_from_the_log() -> None:
    assert total("==7== Cachegrind\n==7== \n==7== I   refs:      5,070,274,078\n") == 5_070_274_078


def test_a_log_without_a_count_is_shown() -> None:
    with pytest.raises(ValueError, match="killed"):
        total("==7== killed")


def test_a_missing_valgrind_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(StartError, match="valgrind"):
        measure(WORKLOADS["plain"], 10, 20, Binaries.__new__(Binaries))


def test_each_workload_is_a_row() -> None:
    output = StringIO()
    Console(file=output, width=120).print(table([Count("plain", 500, 1800, 1_817_891.9)]))
    assert "1,818" in output.getvalue()

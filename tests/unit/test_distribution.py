"""What `make check` leaves to `make test`, where the longest begin and a file is kept together unless it is divided."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from xdist.remote import Producer

from tests.distribution import (
    DIVIDED,
    LONGEST,
    LongestFirst,
    in_part,
    is_left_by_check,
    may_be_left_by_check,
)

ROOT = Path(__file__).parents[2]
MARK = "pytest.mark.long"


class Worker:
    """Notes which tests it is to run."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.indices: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.indices += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def test_the_files_exist() -> None:
    assert [path for path in {*LONGEST, *DIVIDED} if not (ROOT / path).is_file()] == []
    assert set(LONGEST) >= DIVIDED


def test_each_file_belongs_to_one_part_and_no_part_is_small() -> None:
    files = list((ROOT / "tests" / "unit").rglob("test_*.py"))
    for count in (1, 2, 4):
        sizes = [sum(in_part(file, f"{number}/{count}") for file in files) for number in range(1, count + 1)]
        assert sum(sizes) == len(files)
        assert min(sizes) > 0.7 * len(files) / count


def test_long_unit_tests_and_those_of_other_folders_are_run_after_the_check(request: pytest.FixtureRequest) -> None:
    files = list((ROOT / "tests" / "unit").rglob("test_*.py"))
    assert 10 < sum(map(may_be_left_by_check, files)) < len(files) / 4
    # The file is looked at as a text, in which another spelling would not be found.
    assert [file for file in files if MARK.partition(".")[2] in file.read_text().replace(MARK, "")] == []
    assert may_be_left_by_check(ROOT / "tests" / "properties" / "insight" / "test_fixes.py")
    assert not is_left_by_check(request.node)
    request.node.add_marker("long")
    assert is_left_by_check(request.node)


def test_the_longest_begin_and_a_file_stays_together_unless_it_may_be_divided() -> None:
    undivided, divided = (next(path for path in LONGEST if (path in DIVIDED) is may_be) for may_be in (False, True))
    names = [f"tests/a.py::test_{number}" for number in range(9)]
    names += [f"{divided}::test_{number}" for number in range(2)] + [
        f"{undivided}::test_{number}" for number in range(5)
    ]
    workers = [Worker("one"), Worker("two")]
    options = SimpleNamespace(tx=["popen", "popen"], loadscopereorder=True)
    config = SimpleNamespace(option=options, getvalue=lambda name: getattr(options, name))
    scheduler = LongestFirst(config, Producer("scheduler", enabled=False))
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, names)
    scheduler.schedule()
    first, second = ([names[index] for index in worker.indices] for worker in workers)
    assert first == [f"{undivided}::test_{number}" for number in range(5)]
    assert second == [f"{divided}::test_0", f"{divided}::test_1"]
    assert list(scheduler.workqueue) == ["tests/a.py"]

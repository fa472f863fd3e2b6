"""The scheduler of `make test`: the longest begin first, and a file stays together unless it may be divided."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from xdist.remote import Producer

from tests.distribution import DIVIDED, LONGEST, LongestFirst, in_part

ROOT = Path(__file__).parents[2]


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

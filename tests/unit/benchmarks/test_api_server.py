from collections import Counter

from benchmarks.api_server import Plan, Size, turns
from benchmarks.schedulers import STARTERS


def test_everybody_runs_once_per_repeat() -> None:
    assert Counter(turns(["podium", "kube-scheduler"], 3)) == {"podium": 3, "kube-scheduler": 3}


def test_who_begins_changes_from_repeat_to_repeat() -> None:
    assert list(turns(["a", "b"], 3)) == ["a", "b", "b", "a", "a", "b"]


def test_one_scheduler_alone_just_repeats() -> None:
    assert list(turns(["a"], 3)) == ["a", "a", "a"]


def test_a_plan_knows_how_many_runs_it_is() -> None:
    sizes = [Size("plain", 500), Size("plain", 5000), Size("node-affinity", 5000, 10)]
    assert Plan(sizes, 3, STARTERS).run_count == 18

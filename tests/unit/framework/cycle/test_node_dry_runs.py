from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest

from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin, PreFilterExtensions
from podium.framework.contract.status import SKIP, Code, PluginError, error_status, unschedulable
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.node_dry_runs import AfterFiltering
from podium.queues import Nominator
from tests.builders import node, pod, snapshot_of
from tests.unit.framework.profiles import Nominated, framework, node_filter, pre_filter, raising

INCOMING = pod("new", cpu="1")


class Counted:
    """State that follows the pods tried on and off."""

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self.names = names

    def clone(self) -> Counted:
        return Counted(self.names)


class Follow(PreFilterExtensions):
    def add_pod(self, state: CycleState, pod: Any, added: Any, node: Any) -> None:
        state.read(Counted).names += (f"+{added.metadata.name}@{node.name}",)

    def remove_pod(self, state: CycleState, pod: Any, removed: Any, node: Any) -> None:
        state.read(Counted).names += (f"-{removed.metadata.name}@{node.name}",)


class Refuse(PreFilterExtensions):
    def add_pod(self, *_: Any) -> Any:
        return error_status("cannot add")

    def remove_pod(self, *_: Any) -> Any:
        raise OSError("cannot remove")


def fits_alone(name: str = "Alone") -> type[Any]:
    """Rejects nodes with any pod, saying which."""

    def judge(self: Any, state: Any, pod: Any, node: Any) -> Any:
        names = sorted(each.metadata.name for each in node.pods)
        return unschedulable(",".join(names)) if names else None

    return type(name, (pre_filter("Base", lambda: (None, None)), FilterPlugin), {"filter": judge, "name": name})


@contextmanager
def trial(*plugins: type[Any], row: int = 0, nominated: Any = None, state: CycleState | None = None):
    snapshot = snapshot_of(node("n0"), node("n1"), pod("a", node="n0", cpu="1"), pod("b", node="n0", cpu="2"))
    before = (dict(snapshot.pods[0]), int(snapshot.requested("cpu")[0]))
    cycle = Cycle(framework(*plugins), INCOMING, snapshot, nominated or Nominator({}.get), state or CycleState())
    filtered = AfterFiltering(cycle)
    with filtered.dry_run(row) as made:
        yield made
    assert (dict(snapshot.pods[0]), int(snapshot.requested("cpu")[0])) == before
    with filtered.dry_run(row) as again:
        assert {each.uid for each in again.node.pods} == set(before[0] if row == 0 else ())
        assert again.node.requested("cpu") == (before[1] if row == 0 else 0)


def on(made: Any) -> dict[str, Any]:
    return {each.metadata.name: each for each in made.node.pods}


def test_pods_can_be_taken_off_and_put_back_and_nothing_of_it_stays():
    with trial(fits_alone()) as made:
        a, b = on(made).values()
        assert made.status().message == "a,b"
        made.remove(a)
        assert (made.status().message, made.node.requested("cpu")) == ("b", 2000)
        made.remove(b)
        assert made.status() is None
        made.add(a)
        assert (made.status().message, made.node.requested("cpu")) == ("a", 1000)


def test_a_failure_inside_leaves_no_trace_either():
    snapshot = snapshot_of(node("n0"), pod("a", node="n0", cpu="1"))
    filtered = AfterFiltering(Cycle(framework(), INCOMING, snapshot, Nominator({}.get)))

    def fail() -> None:
        with filtered.dry_run(0) as made:
            made.remove(on(made)["a"])
            raise OSError("inside")

    with pytest.raises(OSError, match="inside"):
        fail()
    with filtered.dry_run(0) as again:
        assert set(on(again)) == {"a"}
    assert int(snapshot.requested("cpu")[0]) == 1000


def test_plugins_state_follows_in_a_clone():
    state = CycleState()
    state.write(Counted())
    seen: list[tuple[str, ...]] = []
    follow = pre_filter("Follow", lambda: (None, None), extensions=Follow())

    class Look(node_filter("Base", lambda name: None)):
        def filter(self, state: CycleState, pod: Any, node: Any) -> None:
            seen.append(state.read(Counted).names)

    with trial(follow, Look, state=state) as made:
        a = on(made)["a"]
        made.remove(a)
        made.add(a)
        made.status()
    assert seen == [("-a@n0", "+a@n0")]
    assert state.read(Counted).names == ()


def test_a_plugin_that_skipped_is_not_told():
    state = CycleState()
    state.skipped_filters = frozenset({"Refuse"})
    with trial(pre_filter("Refuse", lambda: (None, SKIP), extensions=Refuse()), state=state) as made:
        made.remove(on(made)["a"])


def test_a_plugin_that_cannot_follow_is_named():
    with trial(pre_filter("P", lambda: (None, None), extensions=Refuse())) as made:
        a = on(made)["a"]
        with pytest.raises(PluginError, match='running RemovePod on PreFilter plugin "P": OSError: cannot remove'):
            made.remove(a)
        with pytest.raises(PluginError, match='running AddPod on PreFilter plugin "P": cannot add'):
            made.add(a)


def test_a_filter_that_fails_is_an_error_status():
    with trial(node_filter("F", raising(OSError("x")))) as made:
        status = made.status()
        assert (status.code, status.message) == (Code.ERROR, 'running "F" filter plugin: OSError: x')


def test_nominated_pods_count_as_if_they_were_there():
    promised = Nominated({"n1": [pod("promised", cpu="1")]})
    with trial(fits_alone(), row=1, nominated=promised) as made:
        assert made.status().message == "promised"
        assert on(made) == {}


def test_the_diagnosis_is_passed_on():
    cycle = Cycle(framework(), INCOMING, snapshot_of(node("n0"), node("n1")), Nominator({}.get))
    cycle.diagnosis.reject_one(1, unschedulable("x"))
    filtered = AfterFiltering(cycle)
    assert filtered.codes().tolist()[:2] == [Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.UNSCHEDULABLE]
    assert filtered.status(1) == unschedulable("x")

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
    def add_pod(self, state: CycleState, pod: Any, added_pod: Any, node: Any) -> None:
        state.read(Counted).names += (f"+{added_pod.metadata.name}@{node.name}",)

    def remove_pod(self, state: CycleState, pod: Any, removed_pod: Any, node: Any) -> None:
        state.read(Counted).names += (f"-{removed_pod.metadata.name}@{node.name}",)


class Refuse(PreFilterExtensions):
    def add_pod(self, *_: Any) -> Any:
        return error_status("cannot add")

    def remove_pod(self, *_: Any) -> Any:
        raise OSError("cannot remove")


def fits_alone(name: str = "Alone") -> type[Any]:
    """Rejects nodes with any pod, saying which."""

    def judge(self: Any, state: Any, pod: Any, node: Any) -> Any:
        names = sorted(pod.metadata.name for pod in node.pods)
        return unschedulable(",".join(names)) if names else None

    return type(name, (pre_filter("Base", lambda: (None, None)), FilterPlugin), {"filter": judge, "name": name})


@contextmanager
def trial(*plugins: type[Any], row: int = 0, nominator: Any = None, state: CycleState | None = None):
    snapshot = snapshot_of(node("n0"), node("n1"), pod("a", node="n0", cpu="1"), pod("b", node="n0", cpu="2"))
    state_before = (dict(snapshot.pods[0]), int(snapshot.requested("cpu")[0]))
    cycle = Cycle(framework(*plugins), INCOMING, snapshot, nominator or Nominator({}.get), state or CycleState())
    after_filtering = AfterFiltering(cycle)
    with after_filtering.dry_run(row) as dry_run:
        yield dry_run
    assert (dict(snapshot.pods[0]), int(snapshot.requested("cpu")[0])) == state_before
    with after_filtering.dry_run(row) as second_run:
        assert {pod.uid for pod in second_run.node.pods} == set(state_before[0] if row == 0 else ())
        assert second_run.node.requested("cpu") == (state_before[1] if row == 0 else 0)


def on(dry_run: Any) -> dict[str, Any]:
    return {pod.metadata.name: pod for pod in dry_run.node.pods}


def test_pods_can_be_taken_off_and_put_back_and_nothing_of_it_stays():
    with trial(fits_alone()) as dry_run:
        a, b = on(dry_run).values()
        assert dry_run.status().message == "a,b"
        dry_run.remove(a)
        assert (dry_run.status().message, dry_run.node.requested("cpu")) == ("b", 2000)
        dry_run.remove(b)
        assert dry_run.status() is None
        dry_run.add(a)
        assert (dry_run.status().message, dry_run.node.requested("cpu")) == ("a", 1000)


def test_a_failure_inside_leaves_no_trace_either():
    snapshot = snapshot_of(node("n0"), pod("a", node="n0", cpu="1"))
    after_filtering = AfterFiltering(Cycle(framework(), INCOMING, snapshot, Nominator({}.get)))

    def fail() -> None:
        with after_filtering.dry_run(0) as dry_run:
            dry_run.remove(on(dry_run)["a"])
            raise OSError("inside")

    with pytest.raises(OSError, match="inside"):
        fail()
    with after_filtering.dry_run(0) as second_run:
        assert set(on(second_run)) == {"a"}
    assert int(snapshot.requested("cpu")[0]) == 1000


def test_plugins_state_follows_in_a_clone():
    state = CycleState()
    state.write(Counted())
    names_seen: list[tuple[str, ...]] = []
    follow = pre_filter("Follow", lambda: (None, None), extensions=Follow())

    class Look(node_filter("Base", lambda name: None)):
        def filter(self, state: CycleState, pod: Any, node: Any) -> None:
            names_seen.append(state.read(Counted).names)

    with trial(follow, Look, state=state) as dry_run:
        a = on(dry_run)["a"]
        dry_run.remove(a)
        dry_run.add(a)
        dry_run.status()
    assert names_seen == [("-a@n0", "+a@n0")]
    assert state.read(Counted).names == ()


def test_a_plugin_that_skipped_is_not_told():
    state = CycleState()
    state.skipped_filters = frozenset({"Refuse"})
    with trial(pre_filter("Refuse", lambda: (None, SKIP), extensions=Refuse()), state=state) as dry_run:
        dry_run.remove(on(dry_run)["a"])


def test_a_plugin_that_cannot_follow_is_named():
    with trial(pre_filter("P", lambda: (None, None), extensions=Refuse())) as dry_run:
        a = on(dry_run)["a"]
        with pytest.raises(PluginError, match='running RemovePod on PreFilter plugin "P": OSError: cannot remove'):
            dry_run.remove(a)
        with pytest.raises(PluginError, match='running AddPod on PreFilter plugin "P": cannot add'):
            dry_run.add(a)


def test_a_filter_that_fails_is_an_error_status():
    with trial(node_filter("F", raising(OSError("x")))) as dry_run:
        status = dry_run.status()
        assert (status.code, status.message) == (Code.ERROR, 'running "F" filter plugin: OSError: x')


def test_nominated_pods_count_as_if_they_were_there():
    promised = Nominated({"n1": [pod("promised", cpu="1")]})
    with trial(fits_alone(), row=1, nominator=promised) as dry_run:
        assert dry_run.status().message == "promised"
        assert on(dry_run) == {}


def test_the_diagnosis_is_passed_on():
    cycle = Cycle(framework(), INCOMING, snapshot_of(node("n0"), node("n1")), Nominator({}.get))
    cycle.diagnosis.reject_one(1, unschedulable("x"))
    after_filtering = AfterFiltering(cycle)
    assert after_filtering.codes().tolist()[:2] == [Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.UNSCHEDULABLE]
    assert after_filtering.status(1) == unschedulable("x")

"""The contract checks: podium's own plugins pass them, and each rule catches who breaks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from podium.config import ARGS_BY_PLUGIN
from podium.framework import (
    SKIP,
    ActionType,
    Code,
    CycleState,
    EventRegistration,
    EventResource,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PluginError,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
    TableFilterPlugin,
    TableScorePlugin,
    on,
    unschedulable,
)
from podium.framework.contract.cluster_event import ClusterEvent
from podium.plugins import IN_TREE
from podium.testing import BrokenContract, check_contract


@pytest.mark.parametrize("name", IN_TREE)
def test_in_tree_plugins_keep_the_contract(name: str) -> None:
    kind = ARGS_BY_PLUGIN.get(name)
    check_contract(IN_TREE[name], None if kind is None else kind())


class Odd(FilterPlugin, TableFilterPlugin):
    """Disagrees with itself about nodes of an odd name."""

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        return unschedulable("odd") if node.name[-1] in "135" else None

    def filter_rows(self, state: Any, pod: Any, snapshot: Any, rows: Any) -> Any:
        return np.array([snapshot.name(row)[-1] in "024" for row in rows.tolist()], np.int64)

    def explain(self, state: Any, pod: Any, verdict: int) -> Status:
        return unschedulable("odd")


class Fickle(FilterPlugin):
    """Answers by who was asked about last."""

    last = ""

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        last, self.last = self.last, node.name
        return unschedulable("again") if last == node.name else None


class Failing(FilterPlugin):
    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        return Status(Code.ERROR, ("broken",))


class Raising(FilterPlugin):
    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        raise KeyError("gone")


class Meddling(FilterPlugin):
    """Takes the pods off what it looks at."""

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        self.handle.snapshot().pods[node.row] = {}
        return None


class Subtracting(FilterPlugin):
    """Computes in the snapshot's own columns."""

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        free = node.snapshot.allocatable("cpu")
        free -= node.snapshot.requested("cpu")
        return None


class Exits(FilterPlugin):
    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        raise SystemExit(0)


class GoesByRowNumbers(PreFilterPlugin):
    """Takes the rows of a snapshot for numbers from 0 on, which they are until a node is deleted."""

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        return PreFilterResult(frozenset(snapshot.node(row).name for row in range(len(snapshot)))), None


class GoesThroughNodes(PreFilterPlugin):
    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        return PreFilterResult(frozenset(node.name for node in snapshot)), None


@dataclass(frozen=True)
class Crowded:
    nodes: frozenset[str]


class Remembers(PreFilterPlugin, FilterPlugin):
    """Looks at the pods on the nodes once, and not again when one of them goes."""

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        state.write(Crowded(frozenset(node.name for node in snapshot if node.pods)))
        return None, None

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        return unschedulable("somebody is there") if node.name in state.read(Crowded).nodes else None


class RemembersOrSkips(Remembers):
    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        super().pre_filter(state, pod, snapshot)
        return None, None if state.read(Crowded).nodes else SKIP


class RemembersThePodOnly(Remembers):
    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        state.write(Crowded(frozenset({"n1"} if pod.metadata.labels["app"] == "web" else ())))
        return None, None


class FewVerdicts(TableFilterPlugin):
    def filter_rows(self, state: Any, pod: Any, snapshot: Any, rows: Any) -> Any:
        return np.zeros(len(rows) + 1, np.int64)

    def explain(self, state: Any, pod: Any, verdict: int) -> Status:
        return unschedulable("never")


class TooHigh(ScorePlugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 101


class Fractions(TableScorePlugin):
    def score_rows(self, state: Any, pod: Any, snapshot: Any, rows: Any) -> Any:
        return np.full(len(rows), 0.5)


class TwoMinds(ScorePlugin, TableScorePlugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 1

    def score_rows(self, state: Any, pod: Any, snapshot: Any, rows: Any) -> Any:
        return np.full(len(rows), 2)


class Random(ScorePlugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int(self.handle.random.randint(0, 100))


class Rejects(PreScorePlugin):
    def pre_score(self, state: Any, pod: Any, snapshot: Any, rows: Any) -> Status | None:
        return unschedulable("too late")


@dataclass
class Count:
    pods: int

    def clone(self) -> Count:
        return Count(self.pods)


class Shared(Count):
    def clone(self) -> Count:
        return self


class Counts(PreFilterPlugin, FilterPlugin, PreFilterExtensions):
    """Takes more pods off than it puts back."""

    kind: type[Count] = Count
    put_back = 0

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        state.write(self.kind(10))
        return None, None

    def pre_filter_extensions(self) -> PreFilterExtensions:
        return self

    def add_pod(self, state: Any, pod: Any, added_pod: Any, node: Any) -> Status | None:
        state.read(self.kind).pods += self.put_back
        return None

    def remove_pod(self, state: Any, pod: Any, removed_pod: Any, node: Any) -> Status | None:
        state.read(self.kind).pods -= 1
        return None

    def filter(self, state: CycleState, pod: Any, node: Any) -> Status | None:
        pod_count = state.read(self.kind).pods
        return unschedulable(f"only {pod_count}") if pod_count < 10 else None


class CountsOnOneState(Counts):
    kind = Shared
    put_back = -1


class NeedsItsReserve(ReservePlugin):
    def reserve(self, state: Any, pod: Any, node_name: str) -> Status | None:
        state.write(Count(1))
        return None

    def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
        state.read(Count)


class WaitsForNothing(PermitPlugin):
    def permit(self, state: Any, pod: Any, node_name: str) -> Any:
        return Status(Code.WAIT), 0


class WaitsBackwards(PermitPlugin):
    def permit(self, state: Any, pod: Any, node_name: str) -> Any:
        return None, -1


class RejectsInPreFlight(PreBindPlugin):
    def pre_bind_pre_flight(self, state: Any, pod: Any, node_name: str) -> Any:
        return None, unschedulable("no")

    async def pre_bind(self, state: Any, pod: Any, node_name: str) -> Status | None:
        return None


class Blocks(PreBindPlugin):
    def pre_bind(self, state: Any, pod: Any, node_name: str) -> Any:
        return None


class Awaits(FilterPlugin):
    async def filter(self, state: Any, pod: Any, node: Any) -> Any:
        return None


class SkipsTheGate(PreEnqueuePlugin):
    def pre_enqueue(self, pod: Any) -> Status | None:
        return SKIP


class Wavers(PreEnqueuePlugin):
    count = 0

    def pre_enqueue(self, pod: Any) -> Status | None:
        self.count += 1
        return unschedulable("not yet") if self.count % 2 else None


class AfterItself(QueueSortPlugin):
    def less(self, a: Any, b: Any) -> bool:
        return bool(a.timestamp_s <= b.timestamp_s)


class NoAction(FilterPlugin):
    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        return None

    def events_to_register(self) -> Any:
        return [EventRegistration(ClusterEvent(EventResource.NODE, ActionType(0)))]


class NoRegistration(NoAction):
    def events_to_register(self) -> Any:
        return [EventResource.NODE]


class SaysYes(NoAction):
    def events_to_register(self) -> Any:
        return [on(EventResource.NODE, ActionType.ADD, hint=yes)]


def yes(pod: Any, old: Any, new: Any) -> Any:
    return True


@pytest.mark.parametrize(
    ("plugin", "words"),
    [
        (Odd, "the node form and the table form filter differently"),
        (Fickle, "has another outcome"),
        (Failing, "filter answered Error"),
        (Raising, "raised KeyError: 'gone'"),
        (Meddling, "the snapshot was changed"),
        (Subtracting, "raised ValueError: output array is read-only"),
        (Exits, "raised SystemExit: 0"),
        (GoesByRowNumbers, "raised AssertionError: row . has no node, as any row may that is not in `order`"),
        (Remembers, "there is no pre_filter_extensions"),
        (RemembersOrSkips, "there is no pre_filter_extensions"),
        (FewVerdicts, "verdicts for"),
        (TooHigh, r"outside 0\.\.100: \[101"),
        (Fractions, "score is not one integer for each node"),
        (TwoMinds, "the node form and the table form score differently"),
        (Random, "scoring again has another outcome"),
        (Rejects, "pre_score answered Unschedulable"),
        (Counts, "after a pod is taken off and put back"),
        (CountsOnOneState, "nodes fare differently|has reached the original"),
        (NeedsItsReserve, "raised KeyError"),
        (WaitsForNothing, "Wait without seconds"),
        (WaitsBackwards, "-1 seconds"),
        (RejectsInPreFlight, "pre_bind_pre_flight answered Unschedulable"),
        (Blocks, "pre_bind is not an async def"),
        (Awaits, "filter is an async def"),
        (SkipsTheGate, "pre_enqueue answered Skip"),
        (Wavers, "pre_enqueue answers differently"),
        (AfterItself, "before itself"),
        (NoAction, "Node without an action"),
        (NoRegistration, "not an EventRegistration"),
        (SaysYes, "a hint for Node answered True"),
    ],
)
def test_who_breaks_a_rule_is_named_with_the_rule_and_the_cluster(plugin: type[Plugin], words: str) -> None:
    with pytest.raises(BrokenContract, match=rf"^{plugin.name}, seed 0, cluster \d+, pod incoming-\d: .*({words})"):
        check_contract(plugin)


@pytest.mark.parametrize("plugin", [GoesThroughNodes, RemembersThePodOnly])
def test_who_does_it_right_passes(plugin: type[Plugin]) -> None:
    check_contract(plugin)


class Capped(ScorePlugin):
    @dataclass(frozen=True)
    class Args:
        cap: int

    args: Args

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.args.cap


def test_args_are_those_of_the_configuration_or_of_the_declared_type() -> None:
    check_contract(Capped, {"cap": 100})
    check_contract(Capped, Capped.Args(100))
    with pytest.raises(PluginError, match=r"args.cap"):
        check_contract(Capped, {"cap": "many"})
    with pytest.raises(BrokenContract, match=r"\[101"):
        check_contract(Capped, {"cap": 101})


def test_the_same_seed_finds_the_same_cluster() -> None:
    clusters = []
    for _ in range(2):
        with pytest.raises(BrokenContract) as error:
            check_contract(Counts, seed=7)
        clusters.append(str(error.value))
    assert clusters[0] == clusters[1]
    assert "seed 7" in clusters[0]

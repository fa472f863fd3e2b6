"""Checks the rules of the plugin contract, each in one function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray, Rows, Snapshot, pod_usage
from podium.framework import contract
from podium.framework.contract.bind import PermitPlugin, PreBindPlugin, ReservePlugin
from podium.framework.contract.cluster_event import ActionType, EventRegistration, QueueingHint
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin, PreFilterPlugin, TableFilterPlugin
from podium.framework.contract.plugin import Plugin, PreEnqueuePlugin, QueueSortPlugin
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.score import MAX_NODE_SCORE, PreScorePlugin, ScorePlugin, TableScorePlugin
from podium.framework.contract.status import Code, Status
from podium.framework.profile.forms import Filter, NodeFilter, NodeScorer, Scorer, TableFilter, TableScorer
from podium.objects.core import Pod
from podium.objects.resource_types import EventResource
from podium.testing.random_clusters import RandomCluster

_REJECTIONS: Final = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", "example.com/gpu")
_CONTRACT: Final = f"{contract.__name__}."
_WAITS: Final = frozenset({"pre_bind", "bind", "post_bind"})


class BrokenContract(AssertionError):  # noqa: N818 - the name is read in test reports
    """A plugin breaks a rule of the plugin contract."""


@dataclass(slots=True)
class Subject:
    """A plugin constructed for one cluster, and the pod to call it with."""

    plugin: Plugin
    pod: Pod
    snapshot: Snapshot
    cluster: RandomCluster

    def fingerprint(self) -> tuple[object, ...]:
        """Return the content of the snapshot, which a plugin must not change."""
        snapshot = self.snapshot
        columns: list[NDArray[Any]] = [
            column(name) for name in _RESOURCES for column in (snapshot.allocatable, snapshot.requested)
        ]
        columns += [snapshot.allowed_pods, snapshot.pod_count, snapshot.order, snapshot.taint_set]
        return (
            tuple(column.tobytes() for column in columns),
            snapshot.unschedulable.tobytes(),
            tuple(tuple(pods) for pods in snapshot.pods),
        )

    def begin(self) -> tuple[CycleState, Rows | None]:
        """Run PreFilter; return the state and the rows to filter, None if PreFilter skips or rejects."""
        state = CycleState()
        if not isinstance(self.plugin, PreFilterPlugin):
            return state, self.snapshot.order
        result, status = self.plugin.pre_filter(state, self.pod, self.snapshot)
        _demand_code("pre_filter", status, _REJECTIONS | {Code.SKIP})
        if status is not None and status.code is not Code.SUCCESS:
            return state, None
        if result is None:
            return state, self.snapshot.order
        rows = [row for name in result.node_names if (row := self.snapshot.row_of.get(name)) is not None]
        return state, np.array(sorted(rows), np.intp)


def _demand(holds: object, words: str) -> None:
    if not holds:
        raise BrokenContract(words)


def _demand_code(point: str, status: object, codes: Collection[Code]) -> None:
    if status is None:
        return
    _demand(isinstance(status, Status), f"{point} answered {status!r}, which is not a Status")
    assert isinstance(status, Status)
    names = ", ".join(sorted(code.label for code in codes))
    words = f"{point} answered {status.code.label} ({status.message}); it may answer success or {names}"
    _demand(status.code is Code.SUCCESS or status.code in codes, words)


# ---------------------------------------------------------------- every plugin


def only_the_asynchronous_points_wait(subject: Subject) -> None:
    """Check that methods that carry a decision out are `async def`, and all others plain `def`."""
    # The methods of the contract only: a plugin may have others, of either kind.
    kinds = (base for base in type(subject.plugin).__mro__ if base.__module__.startswith(_CONTRACT))
    for name in sorted({name for kind in kinds for name in vars(kind) if not name.startswith("_")}):
        method = getattr(type(subject.plugin), name)
        if callable(method) and name != "Args":
            is_async = inspect.iscoroutinefunction(method)
            _demand(is_async == (name in _WAITS), f"{name} is {'' if is_async else 'not '}an async def")


def events_are_valid(subject: Subject) -> None:
    """Check that registrations name events that can happen, and that their hints answer."""
    for registration in subject.plugin.events_to_register():
        # Registrations are plain objects, and a mistake in them shows only when a pod is never requeued.
        _demand(
            isinstance(registration, EventRegistration),
            f"events_to_register has {registration!r}: not an EventRegistration",
        )
        _demand(
            registration.event.action, f"events_to_register has {registration.event.resource.value} without an action"
        )
        for old, new in _changes(subject, registration):
            hint = registration.hint(subject.pod, old, new) if registration.hint is not None else QueueingHint.QUEUE
            _demand(isinstance(hint, QueueingHint), f"a hint for {registration.event.resource.value} answered {hint!r}")


def _changes(subject: Subject, registration: EventRegistration) -> Iterator[tuple[Any, Any]]:
    """Yield sample changes that the registration covers, as old and new object."""
    objects: Sequence[Any] = ()
    if registration.event.resource is EventResource.NODE:
        objects = subject.cluster.nodes
    elif registration.event.resource in (EventResource.POD, EventResource.ASSIGNED_POD):
        objects = subject.cluster.existing_pods
    action = registration.event.action
    for item in objects:
        if action & ActionType.ADD:
            yield None, item
        if action & ActionType.UPDATE:
            yield item, item
        if action & ActionType.DELETE:
            yield item, None


# ---------------------------------------------------------------- the queue


def pre_enqueue_is_steady(subject: Subject) -> None:
    """Check that the same pod gets the same answer."""
    assert isinstance(subject.plugin, PreEnqueuePlugin)
    first, second = subject.plugin.pre_enqueue(subject.pod), subject.plugin.pre_enqueue(subject.pod)
    _demand_code("pre_enqueue", first, _REJECTIONS)
    _demand(first == second, "pre_enqueue answers differently when asked twice")


def less_is_an_order(subject: Subject) -> None:
    """Check that `less` is a strict order: irreflexive, asymmetric and transitive."""
    assert isinstance(subject.plugin, QueueSortPlugin)
    is_less = subject.plugin.less
    infos = [QueuedPodInfo(pod, float(index % 2)) for index, pod in enumerate(subject.cluster.incoming)]
    # All triples: the heap of the queue misbehaves silently if the order is not transitive.
    for a in infos:
        _demand(not is_less(a, a), "less puts a pod before itself")
        for b in infos:
            _demand(not (is_less(a, b) and is_less(b, a)), "less puts two pods before each other")
            for c in infos:
                _demand(not (is_less(a, b) and is_less(b, c)) or is_less(a, c), "less has no order among three pods")


# ---------------------------------------------------------------- filtering


def _filters(plugin: Plugin) -> Iterator[Filter]:
    if isinstance(plugin, FilterPlugin):
        yield NodeFilter(plugin)
    if isinstance(plugin, TableFilterPlugin):
        yield TableFilter(plugin)


def _answers(form: Filter, subject: Subject, state: CycleState, snapshot: Snapshot, rows: Rows) -> list[object]:
    """Return the answers of a form for the rows, in order of the row numbers."""
    verdict_columns = form.filter(state, subject.pod, snapshot, rows)
    if verdict_columns is None:
        return [None] * len(rows)
    verdicts, explain = verdict_columns
    _demand(
        np.shape(verdicts) == rows.shape, f"filter_rows answered {np.shape(verdicts)} verdicts for {len(rows)} rows"
    )
    by_row: dict[int, object] = {}
    for row, verdict in zip(rows.tolist(), verdicts.tolist(), strict=True):
        status = explain(verdict) if verdict else None
        _demand_code("filter", status, _REJECTIONS)
        by_row[row] = (status.code, status.all_reasons) if status is not None else None
    return [by_row[row] for row in sorted(by_row)]


def filtering_is_steady(subject: Subject) -> None:
    """Check that both forms give the same answers, however often, in any order and for any number of nodes."""
    state, rows = subject.begin()
    if rows is None:
        return
    previous_answers: list[object] | None = None
    for form in _filters(subject.plugin):
        answers = _answers(form, subject, state, subject.snapshot, rows)
        _demand(previous_answers in (None, answers), "the node form and the table form filter differently")
        previous_answers = answers
        # Reversed and one by one, since sampling and caches give a plugin any subset in any order.
        repeated_answers = _answers(form, subject, state, subject.snapshot, rows[::-1].copy())
        _demand(repeated_answers == answers, "filtering again, in another order, has another outcome")
        one_by_one = [
            _answers(form, subject, state, subject.snapshot, rows[position : position + 1])
            for position in np.argsort(rows)
        ]
        _demand([answer for (answer,) in one_by_one] == answers, "a node alone fares differently from among others")


def add_pod_undoes_remove_pod(subject: Subject) -> None:
    """Check that AddPod undoes RemovePod, and that changes of a cloned state do not affect the original."""
    assert isinstance(subject.plugin, PreFilterPlugin)
    extensions, (state, rows) = subject.plugin.pre_filter_extensions(), subject.begin()
    if extensions is None or rows is None:
        return
    for form in _filters(subject.plugin):
        answers = _answers(form, subject, state, subject.snapshot, rows)
        for existing_pod in subject.cluster.existing_pods:
            # Preemption tries removals on a fork with a clone of the state, as here.
            world, twin = subject.snapshot.fork(), state.clone()
            row = world.row_of[existing_pod.node_name]
            world.remove_pod(row, existing_pod.uid)
            _demand_code("remove_pod", extensions.remove_pod(twin, subject.pod, existing_pod, world.node(row)), ())
            _answers(form, subject, twin, world, rows)
            world.add_pod(row, existing_pod, pod_usage(existing_pod))
            _demand_code("add_pod", extensions.add_pod(twin, subject.pod, existing_pod, world.node(row)), ())
            restored_answers = _answers(form, subject, twin, world, rows)
            _demand(restored_answers == answers, "after a pod is taken off and put back, nodes fare differently")
            original = _answers(form, subject, state, subject.snapshot, rows)
            _demand(original == answers, "what was tried out on a clone of the state has reached the original")


def old_state_follows_removed_pods(subject: Subject) -> None:
    """Check that without extensions, Filter with the old state is still right after a pod is removed."""
    plugin = subject.plugin
    assert isinstance(plugin, PreFilterPlugin)
    state, rows = subject.begin()
    if rows is None or plugin.pre_filter_extensions() is not None:
        return
    for existing_pod in subject.cluster.existing_pods:
        world, anew = subject.snapshot.fork(), CycleState()
        row = world.row_of[existing_pod.node_name]
        world.remove_pod(row, existing_pod.uid)
        result, status = plugin.pre_filter(anew, subject.pod, world)
        is_skipped = status is not None and status.code is Code.SKIP
        # An answer other than "go on" may rightly differ once a pod is gone.
        if row not in rows or result is not None or (status is not None and not is_skipped):
            continue
        _demand(
            _fits(subject, state.clone(), world, row) == (is_skipped or _fits(subject, anew, world, row)),
            "pre_filter remembers what depends on other pods, and there is no pre_filter_extensions: once a pod is "
            "taken off a node, as preemption does, filter goes by what is no longer true",
        )


def _fits(subject: Subject, state: CycleState, world: Snapshot, row: int) -> bool:
    single_row = np.array([row], np.intp)
    return all(_answers(form, subject, state, world, single_row) == [None] for form in _filters(subject.plugin))


# ---------------------------------------------------------------- scoring


def _scorers(plugin: Plugin) -> Iterator[Scorer]:
    if isinstance(plugin, ScorePlugin):
        yield NodeScorer(plugin)
    if isinstance(plugin, TableScorePlugin):
        yield TableScorer(plugin)


def _integers(point: str, answer: object, count: int) -> IntArray:
    scores = np.asarray(answer)
    _demand(scores.shape == (count,) and scores.dtype.kind == "i", f"{point} is not one integer for each node")
    return scores


def scoring_is_steady(subject: Subject) -> None:
    """Check that both forms give the same integer scores, which are in range once normalised."""
    state, rows = subject.begin()
    if rows is None or not len(rows):
        rows = subject.snapshot.order
    if isinstance(subject.plugin, PreScorePlugin):
        status = subject.plugin.pre_score(state, subject.pod, subject.snapshot, rows)
        _demand_code("pre_score", status, {Code.SKIP})
        if status is not None and status.code is Code.SKIP:
            return
    previous_scores: list[int] | None = None
    for form in _scorers(subject.plugin):
        scores = _score(form, subject, state, rows)
        _demand(previous_scores in (None, scores.tolist()), "the node form and the table form score differently")
        previous_scores = scores.tolist()
        _demand(previous_scores == _score(form, subject, state, rows).tolist(), "scoring again has another outcome")
        normalized = _integers("normalize_scores", form.normalize(state, subject.pod, scores), len(rows))
        outside = [score for score in normalized.tolist() if not 0 <= score <= MAX_NODE_SCORE]
        _demand(not outside, f"normalised scores are outside 0..{MAX_NODE_SCORE}: {outside}")


def _score(form: Scorer, subject: Subject, state: CycleState, rows: Rows) -> IntArray:
    return _integers("score", form.score(state, subject.pod, subject.snapshot, rows), len(rows))


# ---------------------------------------------------------------- after a node is chosen


def unreserve_is_harmless(subject: Subject) -> None:
    """Unreserve may be called without Reserve, and twice."""
    assert isinstance(subject.plugin, ReservePlugin)
    state, _ = subject.begin()
    for name in subject.snapshot.row_of:
        # Upstream calls Unreserve of all plugins if Reserve of one fails, also of those that had not been called.
        subject.plugin.unreserve(state, subject.pod, name)
        _demand_code("reserve", subject.plugin.reserve(state, subject.pod, name), _REJECTIONS)
        subject.plugin.unreserve(state, subject.pod, name)
        subject.plugin.unreserve(state, subject.pod, name)


def permit_answers(subject: Subject) -> None:
    """Permit returns a status and seconds."""
    assert isinstance(subject.plugin, PermitPlugin)
    state, _ = subject.begin()
    for name in subject.snapshot.row_of:
        status, timeout_s = subject.plugin.permit(state, subject.pod, name)
        _demand_code("permit", status, _REJECTIONS | {Code.WAIT})
        _demand(timeout_s >= 0, f"permit answered {timeout_s!r} seconds")
        waits = status is not None and status.code is Code.WAIT
        # Zero would end the wait at once, as a rejection.
        _demand(not waits or timeout_s > 0, "permit answered Wait without seconds to wait")


def pre_flight_answers(subject: Subject) -> None:
    """Check that the pre-flight of PreBind returns Skip or success."""
    assert isinstance(subject.plugin, PreBindPlugin)
    state, _ = subject.begin()
    for name in subject.snapshot.row_of:
        _, status = subject.plugin.pre_bind_pre_flight(state, subject.pod, name)
        _demand_code("pre_bind_pre_flight", status, {Code.SKIP})


CHECKS: Final[Sequence[tuple[tuple[type, ...], Callable[[Subject], None]]]] = (
    ((Plugin,), only_the_asynchronous_points_wait),
    ((Plugin,), events_are_valid),
    ((PreEnqueuePlugin,), pre_enqueue_is_steady),
    ((QueueSortPlugin,), less_is_an_order),
    ((FilterPlugin, TableFilterPlugin), filtering_is_steady),
    ((PreFilterPlugin,), add_pod_undoes_remove_pod),
    ((PreFilterPlugin,), old_state_follows_removed_pods),
    ((PreScorePlugin, ScorePlugin, TableScorePlugin), scoring_is_steady),
    ((ReservePlugin,), unreserve_is_harmless),
    ((PermitPlugin,), permit_answers),
    ((PreBindPlugin,), pre_flight_answers),
)
"""Each rule, with the kinds of plugins that it applies to."""

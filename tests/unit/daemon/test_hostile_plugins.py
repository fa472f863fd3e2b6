"""Whatever a plugin answers or raises, at whatever extension point, is its failure in that attempt: named and counted.

One loop for each extension point. Each way to misbehave has a pod of its own, and pods that the plugin treats well are
among them: these are bound at once, the others as soon as the plugin does what it should.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.lowlevel
import numpy as np
import pytest
from structlog.testing import capture_logs

from podium.framework.contract.bind import BindPlugin, PermitPlugin, PostBindPlugin, PreBindPlugin, ReservePlugin
from podium.framework.contract.cluster_event import ActionType, on
from podium.framework.contract.filter import FilterPlugin, PreFilterPlugin, TableFilterPlugin
from podium.framework.contract.plugin import PreEnqueuePlugin
from podium.framework.contract.post_filter import PostFilterPlugin
from podium.framework.contract.score import PreScorePlugin, ScorePlugin, TableScorePlugin
from podium.framework.contract.status import SKIP, unschedulable
from podium.objects.core import Pod
from podium.objects.resource_types import EventResource
from tests.builders import node, pod
from tests.unit.daemon.hostile_plugins import (
    EXCEPTIONS,
    MISPLACED,
    ODD_STATUSES,
    ODD_VALUES,
    POST_FILTER_RESULTS,
    PRE_FILTER_RESULTS,
    SCORES,
    SCORES_OF_ROWS,
    SECONDS,
    STATUSES,
    VERDICTS,
    Misbehaves,
    in_pairs,
)
from tests.unit.daemon.loop_bench import LoopBench, fits
from tests.unit.framework.profiles import Built, node_scorer
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio

NOT_NONE = {**EXCEPTIONS, **ODD_VALUES, "a rejection": lambda: unschedulable("no")}
NO_STATUS = {**EXCEPTIONS, **{name: odd for name, odd in ODD_VALUES.items() if name != "answers 0"}}


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


class Culprit:
    """Misbehaves for the pods that it has a way for, until it is healed."""

    def __init__(self, ways: Mapping[str, Misbehaves]) -> None:
        self.ways = dict(zip((f"victim-{number}" for number in range(len(ways))), ways.values(), strict=True))
        self.names = dict(zip(self.ways, ways, strict=True))
        self.is_healed = False

    def method(self, good: Callable[..., Any], *, is_async: bool = False) -> Callable[..., Any]:
        def call(_: Any, *args: Any) -> Any:
            about = next(arg for arg in args if isinstance(arg, Pod))
            misbehave = None if self.is_healed else self.ways.get(about.metadata.name)
            return good(*args) if misbehave is None else misbehave()

        async def call_later(plugin: Any, *args: Any) -> Any:
            await anyio.lowlevel.checkpoint()
            return call(plugin, *args)

        return call_later if is_async else call


def nothing(*_: Any) -> None:
    return None


def ones(state: Any, pod: Any, snapshot: Any, rows: Any) -> Any:
    return np.ones(len(rows), np.int64)


PRE_FILTER = (
    STATUSES
    | PRE_FILTER_RESULTS
    | in_pairs(STATUSES | {"Wait": MISPLACED["Wait"]}, False, None)
    | in_pairs(NO_STATUS, True, None)
)
PERMIT = STATUSES | SECONDS | in_pairs(STATUSES | {"Skip": MISPLACED["Skip"]}, True, 0.0)
PRE_FLIGHT = STATUSES | in_pairs(STATUSES | {"Wait": MISPLACED["Wait"]}, False, None) | in_pairs(NO_STATUS, True, None)

FAIL_THE_ATTEMPT: list[
    tuple[str, tuple[type, ...], str, Callable[..., Any], Mapping[str, Misbehaves], dict[str, Any]]
] = [
    ("PreEnqueue", (PreEnqueuePlugin,), "pre_enqueue", nothing, STATUSES | MISPLACED, {}),
    ("PreFilter", (PreFilterPlugin,), "pre_filter", lambda *_: (None, None), PRE_FILTER, {}),
    ("Filter", (FilterPlugin,), "filter", nothing, STATUSES | MISPLACED, {}),
    (
        "Filter",
        (TableFilterPlugin,),
        "filter_rows",
        nothing,
        NO_STATUS | VERDICTS,
        {"explain": lambda self, state, pod, verdict: unschedulable("no")},
    ),
    (
        "Filter",
        (TableFilterPlugin,),
        "explain",
        lambda state, pod, verdict: unschedulable("no"),
        STATUSES | MISPLACED | {"None": nothing},
        # A row is rejected, so that there is something to explain, and one is not.
        {"filter_rows": lambda self, state, pod, snapshot, rows: (rows == rows[0]).astype(np.int64)},
    ),
    ("PreScore", (PreScorePlugin, ScorePlugin), "pre_score", nothing, STATUSES, {"score": lambda *_: 1}),
    ("Score", (ScorePlugin,), "score", lambda *_: 1, EXCEPTIONS | SCORES, {}),
    ("Score", (TableScorePlugin,), "score_rows", ones, EXCEPTIONS | SCORES_OF_ROWS, {}),
    (
        "ScoreExtensionNormalize",
        (ScorePlugin,),
        "normalize_scores",
        lambda state, pod, scores: scores,
        EXCEPTIONS | SCORES_OF_ROWS,
        {"score": lambda *_: 1},
    ),
    ("Reserve", (ReservePlugin,), "reserve", nothing, STATUSES | MISPLACED, {"unreserve": nothing}),
    ("Permit", (PermitPlugin,), "permit", lambda *_: (None, 0.0), PERMIT, {}),
    ("PreBindPreFlight", (PreBindPlugin,), "pre_bind_pre_flight", lambda *_: (None, None), PRE_FLIGHT, {}),
    ("PreBind", (PreBindPlugin,), "pre_bind", nothing, STATUSES | {"Wait": MISPLACED["Wait"]}, {}),
    ("Bind", (BindPlugin,), "bind", lambda *_: SKIP, STATUSES | {"Wait": MISPLACED["Wait"]}, {}),
]
ASYNC = ("pre_bind", "bind", "post_bind")


async def asynchronously(*_: Any) -> None:
    return None


def hostile_plugin(
    bases: tuple[type, ...], method: str, call: Callable[..., Any], methods: Mapping[str, Any]
) -> type[Any]:
    if method == "pre_bind_pre_flight":
        methods = {**methods, "pre_bind": asynchronously}
    return type("Hostile", (Built, *bases), {**methods, method: call})


async def wait_bound(bench: LoopBench, names: set[str], within_s: float) -> set[str]:
    """Which of the pods are bound by then."""
    for _ in range(round(within_s / 0.5)):
        if names <= {name for name, _ in bench.bindings}:
            break
        await anyio.sleep(0.5)
    return names & {name for name, _ in bench.bindings}


def failures(logs: list[Any], point: str) -> set[str]:
    """The pods about which a failure of the plugin at that point is in the log."""
    # A score need not be in range before it is normalised.
    points = (point, "ScoreExtensionNormalize") if point == "Score" else (point,)
    return {
        entry["pod"].removeprefix("default/")
        for entry in logs
        if (entry["event"], entry.get("plugin")) == ("Plugin failed", "Hostile") and entry["extension_point"] in points
    }


@pytest.mark.parametrize(
    ("point", "bases", "method", "good", "ways", "methods"),
    FAIL_THE_ATTEMPT,
    ids=[f"{case[0]}-{case[2]}" for case in FAIL_THE_ATTEMPT],
)
async def test_it_fails_the_attempt_by_name_and_the_pod_is_tried_again(
    point: str,
    bases: tuple[type, ...],
    method: str,
    good: Callable[..., Any],
    ways: Mapping[str, Misbehaves],
    methods: Mapping[str, Any],
) -> None:
    culprit = Culprit(ways)
    call = culprit.method(good, is_async=method in ASYNC)
    bench = LoopBench(hostile_plugin(bases, method, call, methods))
    with capture_logs() as logs:
        bench.put(node("n1", pods=1000), node("n2", pods=1000), pod("other-1"), *map(pod, culprit.ways), pod("other-2"))
        async with bench.running():
            await anyio.sleep(1.0)
            early = {name for name, _ in bench.bindings}
            assert early == {"other-1", "other-2"}
            missing = [culprit.names[name] for name in sorted(culprit.ways.keys() - failures(logs, point))]
            assert not missing, "not told of"
            assert bench.metrics.value("podium_unexpected_errors_total", where="plugin", name="Hostile") >= len(ways)
            culprit.is_healed = True
            bound_names = await wait_bound(bench, set(culprit.ways), 60.0)
            assert not [culprit.names[name] for name in sorted(culprit.ways.keys() - bound_names)], (
                "not bound after all"
            )


async def test_a_post_filter_leaves_the_pod_unschedulable_until_something_happens() -> None:
    ways = (
        STATUSES | POST_FILTER_RESULTS | in_pairs(STATUSES | MISPLACED, False, None) | in_pairs(NO_STATUS, True, None)
    )
    culprit = Culprit(ways)
    post_filter = culprit.method(lambda *_: (None, unschedulable("no help")))
    bench = LoopBench(
        fits(lambda name: None if name == "late" else unschedulable("not here")),
        hostile_plugin((PostFilterPlugin,), "post_filter", post_filter, {}),
    )
    with capture_logs() as logs:
        bench.put(node("n1"), *map(pod, culprit.ways))
        async with bench.running():
            await anyio.sleep(1.0)
            missing = [culprit.names[name] for name in sorted(culprit.ways.keys() - failures(logs, "PostFilter"))]
            assert not missing
            bench.put(node("late", pods=1000))
            bound_names = await wait_bound(bench, set(culprit.ways), 60.0)
            assert not [culprit.names[name] for name in sorted(culprit.ways.keys() - bound_names)]


async def test_a_post_bind_or_unreserve_changes_nothing() -> None:
    post_bind_culprit = Culprit(NOT_NONE)
    undo = Culprit(NOT_NONE)
    once: set[str] = set()

    def reserve(_: Any, state: Any, about: Pod, node_name: str) -> Any:
        first = about.metadata.name not in once
        once.add(about.metadata.name)
        return unschedulable("not yet") if first else None

    bench = LoopBench(
        type(
            "Hostile",
            (Built, PostBindPlugin, ReservePlugin),
            {
                "reserve": reserve,
                "unreserve": undo.method(nothing),
                "post_bind": post_bind_culprit.method(nothing, is_async=True),
            },
        )
    )
    with capture_logs() as logs:
        bench.put(node("n1", pods=1000), *map(pod, post_bind_culprit.ways))
        async with bench.running():
            await anyio.sleep(1.0)
            bench.put(node("n2", pods=1000))
            assert await wait_bound(bench, set(post_bind_culprit.ways), 60.0) == set(post_bind_culprit.ways)
            await anyio.sleep(1.0)
    for point in ("Unreserve", "PostBind"):
        assert not [
            post_bind_culprit.names[name] for name in sorted(post_bind_culprit.ways.keys() - failures(logs, point))
        ], point


async def test_hints_queue_the_pod() -> None:
    culprit = Culprit(EXCEPTIONS | ODD_VALUES | ODD_STATUSES)
    hint = culprit.method(lambda *_: None)
    registration = on(EventResource.NODE, ActionType.ADD, hint=lambda *args: hint(None, *args))
    bench = LoopBench(
        fits(lambda name: None if name == "late" else unschedulable("not here"), registration, name="Hostile")
    )
    with capture_logs() as logs:
        bench.put(node("n1"), *map(pod, culprit.ways))
        async with bench.running():
            await anyio.sleep(1.0)
            bench.put(node("late", pods=1000))
            bound_names = await wait_bound(bench, set(culprit.ways), 60.0)
            assert not [culprit.names[name] for name in sorted(culprit.ways.keys() - bound_names)]
    assert failures(logs, "QueueingHint") == set(culprit.ways)


async def test_a_plugin_that_meddles_with_what_it_is_lent_harms_its_own_attempt_only() -> None:
    def meddle(_: Any, state: Any, about: Pod, node: Any) -> int:
        if about.metadata.name.startswith("victim") and not healed:
            state.skipped_scores = 42
        return 0

    healed: list[bool] = []
    harmless = node_scorer("Harmless", lambda name: 0)
    bench = LoopBench(type("Hostile", (Built, ScorePlugin), {"score": meddle}), harmless)
    bench.put(node("n1"), node("n2"), pod("victim-0"), pod("other-1"))
    async with bench.running():
        await anyio.sleep(1.0)
        assert [name for name, _ in bench.bindings] == ["other-1"]
        assert bench.metrics.value("podium_unexpected_errors_total", where="task", name="scheduling attempt") == 1
        healed.append(True)
        assert await wait_bound(bench, {"victim-0"}, 60.0)

from __future__ import annotations

from random import Random
from typing import Any

import anyio
import pytest

from podium.config import LOOSE_GROUPS
from podium.daemon.options import Options, TracingOptions
from podium.daemon.tracing import Tracing, tracing
from podium.framework.contract.bind import PreBindPlugin
from podium.framework.contract.status import Code, Status, error_status, unschedulable
from podium.lib.clock import ManualClock
from podium.objects.api_errors import InternalError
from podium.objects.core import Pod
from podium.telemetry import Metrics
from podium.telemetry.spans import Span
from tests.builders import node, pod, pod_group
from tests.unit.daemon.loop_bench import LoopBench, fits, settle
from tests.unit.daemon.test_pod_groups import Fit, GangScheduling
from tests.unit.framework.profiles import Built, permit, reserve
from tests.virtual_time import START_S, VIRTUAL_TIME

pytestmark = pytest.mark.anyio

ALL = 1_000_000


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


class Volumes(Built, PreBindPlugin):
    """A pod with a label takes long at PreBind."""

    name = "Volumes"

    async def pre_bind(self, state: Any, pod: Pod, node_name: str) -> None:
        await anyio.sleep(float(pod.metadata.labels.get("seconds", 0)))


def attempt_spans(bench: LoopBench, samples_per_million: int = ALL) -> list[Span]:
    """The spans of the bench's attempts, as they come."""
    spans: list[Span] = []
    bench.observers.add(Tracing(bench.clock, Random(1), samples_per_million, spans.append))
    return spans


def shape(span: Span) -> Any:
    """The names of a span and of what is below it."""
    return (span.name, [shape(child) for child in span.children]) if span.children else span.name


def child(span: Span, name: str) -> Span:
    (child,) = [candidate for candidate in span.children if candidate.name == name]
    return child


async def test_a_bound_pod_has_a_span_for_each_cycle_with_its_phases() -> None:
    plugins = (fits(lambda name: None), reserve("Keeps", lambda: None), permit("Lets", lambda: (None, 0.0)), Volumes)
    bench = LoopBench(*plugins)
    spans = attempt_spans(bench)
    bench.put(node("n1"), pod("web-1", labels={"seconds": "2"}))
    async with bench.running():
        await anyio.sleep(5)
    (root,) = spans
    assert shape(root) == (
        "schedulingCycle",
        [
            "RunPreFilterPlugins",
            "RunFilterPlugins",
            "RunReservePlugins",
            "RunPermitPlugins",
            ("bindingCycle", ["RunPreBindPreFlights", ("RunPreBindPlugins", ["Volumes"]), "RunBindPlugins"]),
        ],
    )
    binding = child(root, "bindingCycle")
    assert root.started_ns == root.ended_ns == binding.started_ns == int(START_S * 1e9)
    assert binding.ended_ns - binding.started_ns == 2_000_000_000
    (volumes,) = child(binding, "RunPreBindPlugins").children
    assert volumes.ended_ns - volumes.started_ns == 2_000_000_000
    assert volumes.attributes == {"podium.plugin": "Volumes", "podium.extension_point": "PreBind"}
    assert root.attributes == {
        "k8s.namespace.name": "default",
        "k8s.pod.name": "web-1",
        "k8s.pod.uid": "uid-web-1",
        "k8s.node.name": "n1",
        "podium.profile": "podium",
        "podium.attempt": 1,
        "podium.evaluated_nodes": 1,
        "podium.feasible_nodes": 1,
        "podium.result": "scheduled",
    }
    assert root.size == 10


async def test_a_pod_without_a_node_has_a_scheduling_cycle_only_which_says_why() -> None:
    bench = LoopBench(fits(lambda name: unschedulable("too small")))
    spans = attempt_spans(bench)
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        pass
    (root,) = spans
    assert shape(root) == ("schedulingCycle", ["RunPreFilterPlugins", "RunFilterPlugins"])
    assert child(root, "RunFilterPlugins").attributes == {"podium.status": "Unschedulable"}
    assert (root.attributes["podium.result"], root.failure) == ("unschedulable", None)
    assert root.attributes["podium.message"] == "0/1 nodes are available: 1 too small."


async def test_an_error_is_that_of_the_cycle_and_the_phase_in_which_it_came() -> None:
    bench = LoopBench(fits(lambda name: None), reserve("Keeps", lambda: error_status("no luck")))
    spans = attempt_spans(bench)
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        pass
    (root,) = spans
    names = ["RunPreFilterPlugins", "RunFilterPlugins", "RunReservePlugins", "RunReservePluginsUnreserve"]
    assert shape(root) == ("schedulingCycle", names)
    assert child(root, "RunReservePlugins").failure == "Error"
    assert root.failure is not None
    assert "no luck" in root.failure


async def test_an_error_of_the_binding_is_not_the_scheduling_cycles() -> None:
    bench = LoopBench(fits(lambda name: None))
    spans = attempt_spans(bench)

    def answer(request: Any) -> Any:
        if request.path.endswith("/binding"):
            raise InternalError("full")
        return {}

    bench.wire.answer = answer
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        await settle()
    root = spans[0]
    assert root.failure is None
    assert "full" in (child(root, "bindingCycle").failure or "")
    assert root.attributes["podium.result"] == "error"


async def test_a_wait_at_permit_is_a_span_of_the_binding_cycle() -> None:
    bench = LoopBench(permit("Waits", lambda: (Status(Code.WAIT), 3.0)))
    spans = attempt_spans(bench)
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        await anyio.sleep(3.5)
    waited = child(child(spans[0], "bindingCycle"), "WaitOnPermit")
    assert waited.ended_ns - waited.started_ns == 3_000_000_000


async def test_binding_cycles_at_the_same_time_have_each_their_own_spans() -> None:
    bench = LoopBench(Volumes)
    spans = attempt_spans(bench)
    bench.put(node("n1"), *(pod(f"web-{seconds}", labels={"seconds": f"{seconds}"}) for seconds in (3, 1, 2)))
    async with bench.running():
        await anyio.sleep(5)
    took = {}
    for root in spans:
        names = [span.name for span in root.children]
        assert names == ["RunPreFilterPlugins", "RunFilterPlugins", "bindingCycle"]
        pre_bind = child(child(root, "bindingCycle"), "RunPreBindPlugins")
        took[root.attributes["k8s.pod.name"]] = (pre_bind.ended_ns - pre_bind.started_ns) / 1e9
    assert took == {"web-1": 1.0, "web-2": 2.0, "web-3": 3.0}


async def test_a_slow_plugin_has_a_span_within_its_phase() -> None:
    clock = ManualClock()
    bench = LoopBench(fits(lambda name: clock.advance(0.25)), clock=clock)
    spans = attempt_spans(bench)
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        pass
    phase = child(spans[0], "RunFilterPlugins")
    (slow,) = phase.children
    assert (slow.name, slow.ended_ns - slow.started_ns) == ("Fits", pytest.approx(250_000_000, abs=1000))
    assert phase.started_ns <= slow.started_ns
    assert slow.ended_ns <= phase.ended_ns


async def test_phases_of_a_pod_groups_attempt_belong_to_none_of_its_pods() -> None:
    bench = LoopBench(Fit, GangScheduling, rules=LOOSE_GROUPS)
    spans = attempt_spans(bench)
    bench.put(node("n1", cpu="8"), pod_group("gang", min_count=2, metadata={"generation": 1}))
    async with bench.running():
        bench.put(*(pod(name, group="gang", cpu="1") for name in "ab"))
        await settle()
    assert len(spans) == 2
    for root in spans:
        names = [span.name for span in root.children]
        assert names == ["RunPermitPlugins", "bindingCycle"]


@pytest.mark.parametrize(("samples_per_million", "count"), [(0, 0), (250_000, 22), (ALL, 80)])
async def test_attempts_are_sampled(samples_per_million: int, count: int) -> None:
    bench = LoopBench(fits(lambda name: None))
    spans = attempt_spans(bench, samples_per_million)
    bench.put(node("n1"), *(pod(f"web-{index}") for index in range(80)))
    async with bench.running():
        await settle()
    assert len(bench.bindings) == 80
    assert len(spans) == count
    for root in spans:
        assert [span.name for span in root.children] == ["RunPreFilterPlugins", "RunFilterPlugins", "bindingCycle"]


class Wired:
    """As much of a scheduler as the face looks at."""

    def __init__(self, options: TracingOptions | None) -> None:
        self.options = Options(tracing=options)
        self.clock = ManualClock()
        self.metrics = Metrics()


async def test_without_a_collector_nothing_hears_or_runs() -> None:
    face = tracing(Wired(None))  # type: ignore[arg-type]
    assert not face.observers
    assert not face.tasks


async def test_with_a_collector_spans_are_made_exported_and_counted() -> None:
    wired = Wired(TracingOptions("http://ann:s3cr3t@collector:4318/v1/traces", ALL))
    face = tracing(wired)  # type: ignore[arg-type]
    assert [type(observer) for observer in face.observers] == [Tracing]
    assert list(face.tasks) == ["span export"]
    assert wired.metrics.value("podium_tracing_spans_total", result="dropped") == 0

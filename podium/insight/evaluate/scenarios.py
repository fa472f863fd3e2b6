"""Answers recorded questions, one JSON object each.

A question holds a cluster's objects, an optional configuration, optional feature gates, and one of: a pod (one attempt
over all nodes), a queue of pods (the node of each, or with pod groups every attempt), or a pod and an event (the
plugins that would requeue the pod for it). Or it holds a device selector and one device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from podium.config import ConfigGates, KubeSchedulerConfiguration, parse_feature_gates
from podium.engine.cluster import Cluster
from podium.engine.configurations import Configurations
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.evaluation import as_status
from podium.engine.manifests import read_manifest, resource_of
from podium.engine.placement import Placement
from podium.engine.recorded_questions import RecordedQuestion, answer_line
from podium.engine.store import LATER_THAN_ALL_S, ObjectStore
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import ScheduleError
from podium.insight.evaluate.devices import devices_of_attempt, devices_of_queue
from podium.insight.evaluate.events import Change, events_of, hints_for
from podium.insight.evaluate.pod_groups import PodGroupQueue
from podium.insight.evaluate.selectors import answer_selector
from podium.objects.core import Pod
from podium.objects.devices import Device
from podium.objects.node_metrics import ANY_SOURCE, NODE_METRICS
from podium.objects.resource_types import PODS
from podium.plugins import IN_TREE
from podium.plugins.contrib import SCHEDULER_PLUGINS
from podium.plugins.dynamic_resources.plugin import DynamicResources

_SIDES = {"Add": (False, True), "Update": (True, True), "Delete": (True, False)}
"""By action: whether the change has an old object, and a new one."""


class RecordedChange(Struct):
    """A change of the cluster; `action` is Add, Update or Delete."""

    action: str
    old: Any = None
    new: Any = None


class Scenario(RecordedQuestion):
    """One question. `objects` are the state after the event, if there is an event.

    `metrics` are the loads of nodes, as a load watcher answers them; without them no source has been read.
    """

    pods: list[Any] | None = None
    gates: dict[str, bool] = field(default_factory=dict)
    event: RecordedChange | None = None
    expression: str | None = None
    driver: str = ""
    device: Device = Device()
    metrics: Any = None

    def store(self) -> ObjectStore:
        """Read the objects, and the metrics as those of every source.

        Raises:
            ManifestError: an object or the metrics cannot be read.
        """
        store = super().store()
        if self.metrics is not None:
            if not isinstance(self.metrics, dict):
                raise ManifestError(f"metrics: expected an object, got {type(self.metrics).__name__}")
            manifest = {**self.metrics, "metadata": {"name": ANY_SOURCE}}
            store.put(NODE_METRICS, read_manifest(manifest, NODE_METRICS))
        return store


class Evaluator:
    """Answers questions independently of each other.

    Args:
        classes: the available plugins by name.
        config: for questions without a configuration of their own; by default upstream's defaults.
        now_s: the time at which the questions are answered, in seconds since the epoch.
        ported: decides, by its release, the questions whose own configuration enables plugins of scheduler-plugins;
            by default `config` decides them too.
    """

    def __init__(
        self,
        classes: Mapping[str, type[Plugin]] = IN_TREE,
        config: KubeSchedulerConfiguration | None = None,
        now_s: float = LATER_THAN_ALL_S,
        *,
        ported: KubeSchedulerConfiguration | None = None,
    ) -> None:
        self._classes = classes
        self._now_s = now_s
        self._configurations = Configurations(classes, config)
        self._ported = self._configurations if ported is None else Configurations(classes, ported)

    def answer_line(self, line: bytes, name: str) -> dict[str, Any]:
        """Answer one line, as `podium.engine.recorded_questions.answer_line` does."""
        return answer_line(line, name, Scenario, self.answer)

    def answer(self, scenario: Scenario) -> dict[str, Any]:
        """Answer the question.

        Raises:
            ClusterError, ConfigError, FeatureGateError, PluginError, ScheduleError, CacheError, FieldError: there is no
                answer.
        """
        if scenario.expression is not None:
            rules = self._configurations.release.devices.selectors
            return answer_selector(scenario.expression, scenario.driver, scenario.device, rules)
        gates, config = self._gates_and_configuration(scenario)
        store = scenario.store()
        store.now_s = self._now_s
        if scenario.pods is not None:
            pods = [read_manifest(manifest, PODS) for manifest in scenario.pods]
            if gates.pod_groups is not None:
                return PodGroupQueue(config, gates.pod_groups, store, self._classes, pods).answer()
            return _answer_queue(self._cluster(config, store, *pods), pods)
        if gates.pod_groups is not None:
            raise ClusterError("gates: pod groups are scheduled from a queue of `pods`, not as a single pod")
        pod = read_manifest(scenario.pod, PODS)
        cluster = self._cluster(config, store, pod)
        if scenario.event is not None:
            return _answer_event(cluster, pod, _change(scenario.event))
        return _answer_pod(cluster, pod)

    def _gates_and_configuration(self, scenario: Scenario) -> tuple[ConfigGates, KubeSchedulerConfiguration]:
        gates, config = _read_by(self._configurations, scenario)
        if any(not SCHEDULER_PLUGINS.isdisjoint(profile.plugins.enabled_names()) for profile in config.profiles):
            return _read_by(self._ported, scenario)
        return gates, config

    def _cluster(self, config: KubeSchedulerConfiguration, store: ObjectStore, *pods: Pod) -> Cluster:
        for pod in pods:
            store.put(PODS, pod)
        return Cluster(config, store, self._classes, asked=[pod.key for pod in pods])


def _read_by(configurations: Configurations, scenario: Scenario) -> tuple[ConfigGates, KubeSchedulerConfiguration]:
    settings = (f"{name}={str(value).lower()}" for name, value in scenario.gates.items())
    gates = parse_feature_gates(settings, configurations.release)
    return gates, configurations.of(scenario.config, gates)


def _answer_queue(cluster: Cluster, pods: Sequence[Pod]) -> dict[str, Any]:
    placements: list[Placement] = []
    messages: dict[str, str] = {}
    for pod in cluster.in_queue_order(pods):
        try:
            (placement,) = cluster.place_all([pod])
        except ScheduleError as error:
            # The queue continues after a pod that fails.
            placement = Placement(pod, None)
            messages[pod.key] = str(error).removeprefix(f"{pod.key}: ")
        if placement.node is None and placement.state is not None:
            messages[pod.key] = placement.message
        placements.append(placement)
    answer: dict[str, Any] = {
        "placements": [placement.as_dict() for placement in placements],
        **devices_of_queue(placements),
    }
    return {**answer, "messages": messages} if messages else answer


def _answer_pod(cluster: Cluster, pod: Pod) -> dict[str, Any]:
    gates = [as_status(gate) for gate in cluster.gates_of(pod) if gate.plugin == DynamicResources.name]
    gate_answer = {"preenqueue": gates[0]} if gates else {}
    try:
        evaluation = cluster.evaluate(pod)
    except ScheduleError as error:
        return {**gate_answer, "error": str(error)}
    answer = evaluation.as_dict()
    return {**gate_answer, **answer, **devices_of_attempt(evaluation.found.state, answer["feasible"])}


def _change(event: RecordedChange) -> Change:
    if event.action not in _SIDES:
        raise ClusterError(f"event.action: expected Add, Update or Delete, got {event.action!r}")
    has_old, has_new = _SIDES[event.action]
    return Change(_read(event.old, "old") if has_old else None, _read(event.new, "new") if has_new else None)


def _read(manifest: Any, side: str) -> Any:
    resource = resource_of(manifest) if isinstance(manifest, dict) else None
    if resource is None:
        raise ManifestError(f"event.{side}: expected an object of a kind that schedulers read")
    return read_manifest(manifest, resource)


def _answer_event(cluster: Cluster, pod: Pod, change: Change) -> dict[str, Any]:
    framework = cluster.framework_for(pod)
    events = events_of(change, framework.release)
    hints = {event.label: hints_for(framework, pod, event, change) for event in events}
    return {"events": [event.label for event in events], "hints": hints}

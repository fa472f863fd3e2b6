"""Runs one scheduling cycle over a handful of objects, and returns its full result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from podium.cluster import Cache, Snapshot
from podium.config import KubeSchedulerConfiguration, default_configuration, load, load_file
from podium.engine.configurations import with_plugins
from podium.engine.placing import Engine
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import Status
from podium.framework.cycle.diagnosis import FitError
from podium.framework.cycle.evaluation import FullEvaluation, evaluate_all
from podium.framework.cycle.schedule import NO_NODES
from podium.framework.profile.observer import Observer
from podium.framework.profile.runtime import Framework, registry_of
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.resource_types import KubeObject
from podium.objects.unreadable import kind_of
from podium.plugins import IN_TREE
from podium.testing.builders import node
from podium.testing.handle import RecordingHandle


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one scheduling cycle.

    Attributes:
        node_name: the chosen node; None if the pod stays pending, because no node fits, or Reserve or Permit rejected
        it.
        rejected: the reasons by node name, including nodes that PreFilter excluded.
        scores: plugin → node → normalised score times weight, for feasible nodes.
        message: the message of the pod's condition; "" if the pod has a node.
        waits: plugin → seconds, if Permit makes the pod wait before it is bound.
        status: the status of Reserve or Permit, if one of them rejected the pod.
        handle: the plugins' handle, with its `events`, `waiting_pods` and `client`.
    """

    node_name: str | None
    rejected: Mapping[str, Status]
    scores: Mapping[str, Mapping[str, int]]
    message: str
    waits: Mapping[str, float]
    status: Status | None
    handle: RecordingHandle

    @property
    def totals(self) -> Mapping[str, int]:
        """Sum up all plugins' scores by node."""
        totals: dict[str, int] = {}
        for scores in self.scores.values():
            for name, score in scores.items():
                totals[name] = totals.get(name, 0) + score
        return totals


_DELETED: Final = node("a-node-that-was-deleted")


def schedule_once(
    pod: Pod,
    nodes: Iterable[Node],
    pods: Iterable[Pod] = (),
    *,
    plugins: Sequence[type[Plugin]] = (),
    config: Path | str | None = None,
    objects: Iterable[KubeObject] = (),
) -> Result:
    """Run one cycle for the pod, up to and including Permit. Every node is filtered, every feasible node is scored.

    Args:
        pods: existing pods, on their nodes or pending.
        plugins: your own plugins; without `config` they run in addition to the default plugins, with weight 1 and no
        args.
        config: a KubeSchedulerConfiguration, as a file or as text; the pod's `schedulerName` chooses the profile.
        objects: other objects for the plugins' listers.

    Raises:
        ConfigError, PluginError: the profile cannot be built.
        ScheduleError: a plugin failed. The message names it.
        ValueError: an object cannot be read, or no profile has the pod's scheduler name.
    """
    nodes, pods = tuple(nodes), tuple(pods)
    classes = {**IN_TREE, **{plugin.name: plugin for plugin in plugins}}
    cache = _cache_of(*nodes, *(existing_pod for existing_pod in pods if existing_pod.node_name))
    configuration = _default(plugins, pod) if config is None else _load(config, classes)
    handle = RecordingHandle(cache.snapshot(), (*nodes, *pods, pod, *objects), release=configuration.release)
    framework = _framework(configuration, pod, classes, handle)
    return _cycle(Engine(cache, handle.nominator, configuration.percentage_of_nodes_to_score), framework, pod, handle)


def snapshot_of(*objects: Node | Pod) -> Snapshot:
    """Return the snapshot of a cluster with these nodes, and these pods on them.

    Its first row is empty, as if a node had been deleted, because plugins must cope with such rows.

    Raises:
        ValueError: an object has a field that cannot be read.
    """
    return _cache_of(*objects).snapshot()


def _cache_of(*objects: Node | Pod) -> Cache:
    cache = Cache(_refuse)
    # A deleted node leaves a gap in the rows, which plugins with arrays of their own tend to forget.
    cache.put_node(_DELETED)
    for item in objects:
        if isinstance(item, Node):
            cache.put_node(item)
        else:
            cache.add_pod(item)
    # The gap only exists once a snapshot has had the row.
    cache.snapshot()
    cache.remove_node(_DELETED.name)
    return cache


def _refuse(item: Node | Pod, error: FieldError) -> NoReturn:
    raise ValueError(f"{kind_of(item)} {item.key}: {error}") from error


def _default(plugins: Iterable[type[Plugin]], pod: Pod) -> KubeSchedulerConfiguration:
    """Return the default configuration with these plugins added."""
    config = default_configuration()
    (profile,) = with_plugins(config, plugins).profiles
    return replace(config, profiles=(replace(profile, scheduler_name=pod.spec.scheduler_name),))


def _load(config: Path | str, classes: Mapping[str, type[Plugin]]) -> KubeSchedulerConfiguration:
    registry = registry_of(classes)
    return (load_file(config, registry) if isinstance(config, Path) else load(config, "config", registry)).config


def _framework(
    config: KubeSchedulerConfiguration, pod: Pod, classes: Mapping[str, type[Plugin]], handle: RecordingHandle
) -> Framework:
    for profile in config.profiles:
        if profile.scheduler_name == pod.spec.scheduler_name:
            return Framework(profile, classes, handle, Observer())
    names = ", ".join(profile.scheduler_name for profile in config.profiles)
    raise ValueError(f"Pod {pod.key}: no profile is named {pod.spec.scheduler_name!r}, only {names}")


def _cycle(engine: Engine, framework: Framework, pod: Pod, handle: RecordingHandle) -> Result:
    cycle = engine.cycle(framework, pod)
    # All nodes, not a sample: the result of a test must not depend on where a search begins.
    evaluation, snapshot = evaluate_all(cycle), cycle.snapshot
    fits = set(evaluation.filter_result.rows.tolist())
    rejections = {
        snapshot.name(row): evaluation.diagnosis.status(row) for row in snapshot.order.tolist() if row not in fits
    }
    if evaluation.winner is None:
        error = FitError(len(snapshot), evaluation.diagnosis, evaluation.post_filter_message)
        message = error.message if len(snapshot) else NO_NODES
        return Result(None, rejections, {}, message, {}, None, handle)
    name = snapshot.name(evaluation.winner)
    scores, placement = _scores(evaluation, snapshot), engine.place(cycle, name)
    status, waits = placement.status, placement.waits
    message = status.message if status is not None else ""
    return Result(name if status is None else None, rejections, scores, message, waits, status, handle)


def _scores(evaluation: FullEvaluation, snapshot: Snapshot) -> dict[str, dict[str, int]]:
    names = [snapshot.name(row) for row in evaluation.filter_result.rows.tolist()]
    by_plugin: Mapping[str, Any] = evaluation.scores.plugins if evaluation.scores is not None else {}
    return {plugin: dict(zip(names, scores.tolist(), strict=True)) for plugin, scores in by_plugin.items()}

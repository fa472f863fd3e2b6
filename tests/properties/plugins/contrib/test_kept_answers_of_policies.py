"""Policies whose answers are kept decide as without, whatever happens to loads, topologies, pods and the clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest

from podium.daemon.observers import PluginMetrics
from podium.engine.configurations import read_configuration
from podium.engine.placing import Engine, PlacedPod
from podium.framework.cycle.schedule import DoesNotFit, Suggested
from podium.framework.profile.runtime import Framework
from podium.framework.profile.signature_cache import SignatureCache
from podium.objects.node_metrics import NODE_METRICS
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB
from podium.plugins.contrib.node_resource_topology_match.objects import (
    NODE_RESOURCE_TOPOLOGIES,
    NodeResourceTopology,
)
from podium.telemetry import Metrics
from podium.testing import RecordingHandle, node, node_metrics, pod
from tests.builders import cache_of

NODES = 6
PLUGINS = {**IN_TREE, **CONTRIB}
NODE_LOAD = {"watcherAddress": "http://watcher", "settlingSeconds": 30, "staleAfterSeconds": 60}


def configuration(numa_args: dict[str, Any]) -> str:
    names = ("NodeResourceTopologyMatch", "NodeLoad")
    args = {"NodeResourceTopologyMatch": numa_args, "NodeLoad": NODE_LOAD}
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": name} for name in names]}},
        "pluginConfig": [{"name": name, "args": value} for name, value in args.items()],
    }
    api_version = "kubescheduler.config.k8s.io/v1"
    return json.dumps({"apiVersion": api_version, "kind": "KubeSchedulerConfiguration", "profiles": [profile]})


def topology(name: str, random: Random) -> NodeResourceTopology:
    zones = [
        {"name": f"node-{number}", "type": "Node", "resources": [amount("cpu", random), amount("memory", random)]}
        for number in range(2)
    ]
    content = {"metadata": {"name": name}, "topologyPolicies": ["SingleNUMANodePodLevel"], "zones": zones}
    return msgspec.convert(content, NodeResourceTopology)


def amount(name: str, random: Random) -> dict[str, str]:
    available = f"{random.randint(0, 8)}" if name == "cpu" else f"{random.randint(1, 16)}Gi"
    return {"name": name, "capacity": available, "allocatable": available, "available": available}


class Side:
    """One scheduler, whose answers are kept or not."""

    def __init__(self, numa_args: dict[str, Any], *, is_warm: bool) -> None:
        self.cache = cache_of(*(node(f"n{number}", cpu="16", memory="32Gi") for number in range(NODES)))
        self.handle = RecordingHandle(self.cache.snapshot())
        self.store = self.handle.lister_of.__self__  # type: ignore[attr-defined]
        signatures = SignatureCache if is_warm else partial(SignatureCache, rows_max=0)
        profile = read_configuration(configuration(numa_args), "test", PLUGINS).profiles[0]
        self.framework = Framework(profile, PLUGINS, self.handle, PluginMetrics(Metrics()), signatures=signatures)
        self.engine = Engine(self.cache, self.handle.nominator, percentage_of_nodes_to_score=0)
        self.placements: list[PlacedPod] = []

    def attempt(self, name: str, cpu: int) -> object:
        limits = {"cpu": f"{cpu}", "memory": "1Gi"}
        incoming = pod(name, cpu=limits["cpu"], memory=limits["memory"], status={"qosClass": "Guaranteed"})
        cycle = self.engine.cycle(self.framework, incoming)
        decision = self.engine.decide(cycle)
        if isinstance(decision, Suggested):
            self.placements.append(self.engine.place(cycle, decision.node_name))
            return decision
        assert isinstance(decision, DoesNotFit)
        return decision.error.message

    def take_back(self, number: int) -> None:
        if self.placements:
            self.engine.take_back(self.placements.pop(number % len(self.placements)))


def history(random: Random) -> Iterator[tuple[str, Any]]:
    end_s = 1_700_000_000
    for number in range(80):
        step = random.choice(["attempt"] * 5 + ["report", "topology", "time", "take back"])
        if step == "attempt":
            yield step, (f"p{number}", random.choice((1, 2)))
        elif step == "report":
            end_s += random.randint(0, 40)
            loads = {f"n{at}": {"CPU": random.randint(0, 99), "Memory": random.randint(0, 99)} for at in range(NODES)}
            loads.pop(f"n{random.randrange(NODES)}")
            yield step, msgspec.structs.replace(node_metrics(loads, end=end_s), fetched_s=float(end_s))
        elif step == "topology":
            yield step, topology(f"n{random.randrange(NODES)}", random)
        else:
            yield step, random.randint(0, 45)


def take(side: Side, step: str, detail: Any) -> object:
    if step == "attempt":
        return side.attempt(*detail)
    if step == "report":
        side.store.put(NODE_METRICS, detail)
    elif step == "topology":
        side.store.put(NODE_RESOURCE_TOPOLOGIES, detail)
    elif step == "time":
        side.handle.clock.advance(detail)
    else:
        side.take_back(detail)
    return None


@pytest.mark.parametrize("numa_args", [{}, {"cacheResyncPeriodSeconds": 5}, {"discardReservedNodes": True}])
@pytest.mark.parametrize("seed", range(12))
def test_kept_answers_are_those_that_would_be_given_anew(seed: int, numa_args: dict[str, Any]) -> None:
    warm, cold = Side(numa_args, is_warm=True), Side(numa_args, is_warm=False)
    outcomes = []
    for step, detail in history(Random(seed)):
        outcomes.append(take(warm, step, detail))
        assert take(cold, step, detail) == outcomes[-1], (step, detail)
    assert any(isinstance(outcome, Suggested) for outcome in outcomes)

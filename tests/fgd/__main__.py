"""Places the trace of "Beware of Fragmentation" (USENIX ATC 2023) with FragmentationGradientDescent.

Compares the share of GPUs that is allocated once 100 % and 130 % of them were asked for with the published table. The
trace and the table are read from a copy of the simulator's repository, which is not part of podium:

    python -m tests.fgd --tree PATH_OF_A_CLONE --seeds 42 46

Nodes, pods, their order and the choice among equal nodes are the simulator's; filters, scores and devices are podium's.
"""

from __future__ import annotations

import argparse
import csv
import io
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from podium.cluster import Cache
from podium.engine.configurations import Configurations
from podium.engine.offline import OfflineHandle
from podium.engine.placing import Engine
from podium.engine.store import ObjectStore
from podium.framework.cycle.schedule import Suggested
from podium.framework.profile.observer import Observer
from podium.framework.profile.runtime import Framework
from podium.lib.clock import ManualClock
from podium.objects.core import Node, Pod
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB
from podium.queues import Nominator
from tests.builders import cache_of, node, pod

TOLERANCE = 0.01
"""Percentage points."""
LOAD = 1.3
ARRIVALS = (100, 130)
POPULAR = 0.95
COUNT, SHARE, MODEL = "alibabacloud.com/gpu-count", "alibabacloud.com/gpu-milli", "alibabacloud.com/gpu-card-model"
PLUGINS = {**IN_TREE, **CONTRIB}
NAME = "FragmentationGradientDescent"


@dataclass(frozen=True, order=True)
class Kind:
    """What a pod asks for, in the order in which equally frequent kinds come last to first."""

    cpu_milli: int
    milli: int
    gpus: int
    models: str


@dataclass(frozen=True)
class Asked:
    """One pod of the trace."""

    name: str
    kind: Kind
    memory_mib: int


class Tree:
    """A copy of the simulator's repository, with or without a work tree."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def table(self, name: str) -> list[dict[str, str]]:
        text = subprocess.run(
            ["git", "-C", str(self._path), "show", f"HEAD:{name}"], check=True, capture_output=True, text=True
        ).stdout
        return list(csv.DictReader(io.StringIO(text)))

    def pods(self) -> list[Asked]:
        rows = self.table("data/csv/openb_pod_list_default.csv")
        return sorted(map(_asked, rows), key=lambda item: item.name)

    def published(self, seed: int) -> dict[int, float]:
        rows = self.table("experiments/analysis/expected_results/analysis_allo_discrete.csv")
        key = ("openb_pod_list_default", "06-FGD", str(LOAD), str(seed))
        row = next(row for row in rows if (row["workload"], row["sc_policy"], row["tune"], row["seed"]) == key)
        return {arrival: float(row[str(arrival)]) for arrival in ARRIVALS}


def _asked(row: dict[str, str]) -> Asked:
    gpus = int(row["num_gpu"])
    milli = min(max(int(row["gpu_milli"]), 0), 1000) if gpus else 0
    models = "|".join(filter(None, row["gpu_spec"].split("|"))) if gpus else ""
    return Asked(row["name"], Kind(int(row["cpu_milli"]), milli, gpus, models), int(row["memory_mib"]))


def usual_pods(pods: Iterable[Asked]) -> list[dict[str, Any]]:
    """The most frequent kinds, which together are 95 % of the pods."""
    counts = Counter(item.kind for item in pods)
    total = float(counts.total())
    by_count = sorted(counts.items(), key=lambda entry: (entry[1], entry[0]), reverse=True)
    chosen: list[tuple[Kind, int]] = []
    covered = 0.0
    for kind, count in by_count:
        if covered >= POPULAR * total:
            break
        chosen.append((kind, count))
        covered += count
    return [
        {
            "cpuMilli": kind.cpu_milli,
            "gpus": kind.gpus,
            "milli": kind.milli,
            "models": [model for model in kind.models.split("|") if model],
            "weight": count / total / (covered / total),
        }
        for kind, count in chosen
    ]


def manifest_of(item: Asked, number: int) -> Pod:
    kind = item.kind
    requests: dict[str, str | int] = {"cpu": f"{kind.cpu_milli}m", "memory": f"{item.memory_mib}Mi"}
    if kind.gpus:
        requests |= {SHARE: kind.milli} if kind.gpus == 1 and kind.milli < 1000 else {COUNT: kind.gpus}
    expressions = [{"key": MODEL, "operator": "In", "values": kind.models.split("|")}] if kind.models else []
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}} if expressions else None
    return pod(f"{item.name}-{number}", requests=requests, affinity=affinity)


def node_of(row: dict[str, str], number: int) -> Node:
    gpus = int(row["gpu"])
    return node(
        f"{number:04d}-{row['sn']}",
        cpu=f"{row['cpu_milli']}m",
        memory=f"{row['memory_mib']}Mi",
        pods=1001,
        allocatable={COUNT: gpus, SHARE: 1000 * gpus},
        labels={MODEL: row["model"]},
    )


def draws(seed: int, target: int, node_count: int, pods: list[Asked]) -> tuple[list[int], list[int]]:
    """The pods in the order of their arrival, and the numbers of the nodes."""
    lines = [f"{seed} {target} {node_count} {len(pods)}"]
    lines += [f"{item.kind.milli} {item.kind.milli * item.kind.gpus}" for item in pods]
    program = Path(__file__).parent / "go" / "draws.go"
    result = subprocess.run(
        ["go", "run", str(program)], input="\n".join(lines), check=True, capture_output=True, text=True
    )
    numbers = list(map(int, result.stdout.split()))
    return numbers[1 : 1 + numbers[0]], numbers[1 + numbers[0] :]


def configuration(usual: list[dict[str, Any]]) -> Any:
    args = {"gpuResource": COUNT, "shareResource": SHARE, "modelLabel": MODEL, "usualPods": usual}
    plugins = {
        "multiPoint": {"enabled": [{"name": NAME}]},
        "preScore": {"disabled": [{"name": "*"}]},
        "score": {"disabled": [{"name": "*"}], "enabled": [{"name": NAME}]},
        "postFilter": {"disabled": [{"name": "*"}]},
    }
    profile = {
        "schedulerName": "podium",
        "plugins": plugins,
        "pluginConfig": [{"name": NAME, "args": args}],
        "percentageOfNodesToScore": 100,
    }
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return Configurations(PLUGINS).of({**head, "profiles": [profile]})


def placed(nodes: list[Node], pods: Iterable[Pod], config: Any) -> Iterator[bool]:
    """Place the pods in turn; tell of each whether it fits. Among equal nodes the one with the lowest name wins."""
    cache: Cache = cache_of(*sorted(nodes, key=lambda item: item.name))
    nominator = Nominator({}.get)
    handle = OfflineHandle(ManualClock(), Random(1), nominator, cache.snapshot, ObjectStore(()).lister)
    framework = Framework(config.profiles[0], PLUGINS, handle, Observer())
    engine = Engine(cache, nominator, 100, pick=lambda total: int(total.argmax()))
    for item in pods:
        cycle = engine.cycle(framework, item)
        decision = engine.decide(cycle)
        if isinstance(decision, Suggested):
            result = engine.place(cycle, decision.node_name)
            assert result.status is None, result.status
        yield isinstance(decision, Suggested)


def run(tree: Tree, seed: int) -> dict[int, float]:
    """Allocated GPUs in percent, at each of `ARRIVALS`."""
    pods = tree.pods()
    rows = sorted(tree.table("data/csv/openb_node_list_gpu_node.csv"), key=lambda row: row["sn"])
    gpu_count = sum(int(row["gpu"]) for row in rows)
    order, numbers = draws(seed, int(LOAD * gpu_count * 1000), len(rows), pods)
    nodes = [node_of(row, number) for row, number in zip(rows, numbers, strict=True)]
    arriving = [pods[index] for index in order]
    manifests = (manifest_of(item, number) for number, item in enumerate(arriving))
    asked_milli = in_use_milli = 0
    shares: dict[int, list[float]] = {arrival: [] for arrival in ARRIVALS}
    for item, fits in zip(arriving, placed(nodes, manifests, configuration(usual_pods(pods))), strict=True):
        milli = item.kind.milli * item.kind.gpus
        asked_milli += milli
        in_use_milli += milli if fits else 0
        arrival = round(asked_milli / gpu_count / 10)
        if arrival in shares:
            shares[arrival].append(round(in_use_milli / gpu_count / 10, 2))
    return {arrival: round(sum(values) / len(values), 2) for arrival, values in shares.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fgd", description=__doc__)
    parser.add_argument("--tree", type=Path, required=True, help="a clone of the simulator's repository")
    parser.add_argument("--seeds", type=int, nargs=2, default=(42, 46), metavar=("FIRST", "LAST"))
    options = parser.parse_args()
    tree = Tree(options.tree)
    is_equal = True
    for seed in range(options.seeds[0], options.seeds[1] + 1):
        published, found = tree.published(seed), run(tree, seed)
        for arrival in ARRIVALS:
            difference = abs(found[arrival] - published[arrival])
            is_equal &= difference <= TOLERANCE + 1e-9
            result = f"{found[arrival]:.2f} %, published {published[arrival]:.2f} %"
            sys.stdout.write(f"seed {seed}, {arrival} % asked for: {result}\n")
    sys.exit(0 if is_equal else 1)


if __name__ == "__main__":
    main()

"""Nodes to try preemption on, budgets, and what there is to preempt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from podium.framework.contract.status import Status, unschedulable
from podium.framework.preemption.candidates import Budgets, Importance
from podium.objects.core import Pod
from podium.objects.workloads import PodDisruptionBudget
from tests.builders import pod

NOW_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z
IMPORTANCE = Importance(NOW_S)
NO_BUDGETS = Budgets(())
TOO_FULL = unschedulable("too full")


def pod_on_node(name: str, priority: int = 0, start_time: str | None = None, **fields: Any) -> Pod:
    return pod(name, priority=priority, node="n1", status={"startTime": start_time}, **fields)


def budget(
    name: str, disruptions: int, *, selector: Any = None, disrupted: tuple[str, ...] = (), namespace: str = "default"
):
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": {"app": "db"}} if selector is None else selector},
            "status": {
                "disruptionsAllowed": disruptions,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
        PodDisruptionBudget,
    )


DB = {"labels": {"app": "db"}}


class Node:
    def __init__(self, name: str, pods: list[Pod]) -> None:
        self.name, self.pods = name, pods


class Room:
    """A node with room for so many pods besides the incoming one. Implements `NodeDryRun`."""

    def __init__(self, *pods: Pod, room: int, name: str = "n1", otherwise: Status | None = TOO_FULL) -> None:
        self.node = Node(name, list(pods))
        self.room, self.otherwise = room, otherwise
        self.story: list[str] = []

    def remove(self, pod: Pod) -> None:
        self.story.append(f"-{pod.metadata.name}")
        self.node.pods = [remaining_pod for remaining_pod in self.node.pods if remaining_pod.uid != pod.uid]

    def add(self, pod: Pod) -> None:
        self.story.append(f"+{pod.metadata.name}")
        self.node.pods = [*self.node.pods, pod]

    def status(self) -> Status | None:
        return None if len(self.node.pods) <= self.room else self.otherwise


class Rooms:
    """Implements `FilteredNodes` as far as trials go."""

    def __init__(self, *rooms: Room) -> None:
        self.rooms, self.tried = rooms, []

    def pods(self, row: int) -> list[Pod]:
        return self.rooms[row].node.pods

    @contextmanager
    def dry_run(self, row: int) -> Iterator[Any]:
        self.tried.append(row)
        yield self.rooms[row]

    def dry_run_of_nodes(self) -> None:
        """It takes seeing the pods."""

"""Answers that are kept: the same as those that are found anew, whatever has changed in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest

from podium.devices import AllocatedDevices, AllocationError, Allocator, Inventory
from podium.devices.questions import Questions
from podium.lib.change_log import ChangeLog
from podium.objects.core import Node
from podium.objects.devices import ResourceSlice
from podium.objects.meta import ObjectMeta
from tests.unit.devices.cluster import CLASSES, a_slice, answer_of, claim, device, devices_of, request

NODES = ("n1", "n2", "n3")
SELECTOR = [{"cel": {"expression": 'device.attributes["gpu.example.com"].index < 3'}}]
UNGUARDED = [{"cel": {"expression": 'device.attributes["gpu.example.com"].odd == 1'}}]
CLAIMS = (
    [claim()],
    [claim(request(count=2), constraints=[{"requests": ["r"], "matchAttribute": "gpu.example.com/root"}])],
    [claim(request(selectors=SELECTOR)), claim(request("s"), name="d")],
    [claim(request(allocationMode="All"))],
    [claim(request(selectors=UNGUARDED))],
)


def node_with(name: str, labels: Mapping[str, str]) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels))


@dataclass
class NodesByRow:
    """The nodes of a cluster."""

    nodes: list[Node | None]
    node_changes: ChangeLog[int]

    def replace(self, row: int, node: Node | None) -> None:
        self.nodes[row] = node
        self.node_changes.append(row)


def cached_answers(allocator: Allocator, claims: Any, nodes: NodesByRow) -> list[Any]:
    """The cached answers of all nodes."""
    row_answers = allocator.cached_answers(claims, np.arange(len(nodes.nodes)), nodes)
    assert row_answers is not None
    answers, are_allocations = row_answers
    assert are_allocations.tolist() == [isinstance(answer, tuple) for answer in answers]
    return [*answers]


class Cluster:
    """Nodes with devices that come and go, and are allocated and freed."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.inventory = Inventory()
        self.slices: dict[str, ResourceSlice] = {}
        self.base = AllocatedDevices()
        self.allocated = AllocatedDevices(self.base)
        self.held: list[tuple[AllocatedDevices, Any]] = []
        self.questions = Questions()
        self.nodes = NodesByRow([node_with(name, {"zone": "a"}) for name in NODES], ChangeLog())
        for _ in range(6):
            self.change_slice()

    def change_slice(self) -> None:
        name = self.random.choice([*NODES, "everywhere", "zone", "spanning"])
        if name in self.slices and self.random.random() < 0.3:
            self.inventory.remove(self.slices.pop(name))
            return
        count = self.random.randrange(1, 5)
        fields: dict[str, Any] = {}
        if self.random.random() < 0.2:
            fields = {"allowMultipleAllocations": True}
        devices = [device(f"g{at}", attributes={"index": at, "root": at // 2}, **fields) for at in range(count)]
        where: dict[str, Any] = {"nodeName": name}
        if name == "everywhere":
            where = {"allNodes": True}
        elif name == "zone":
            expression = {"key": "zone", "operator": "In", "values": ["a"]}
            where = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        elif name == "spanning":
            where = {"nodeName": self.random.choice(NODES)}
        pool = "n1" if name == "spanning" else name
        new = a_slice(name, *devices, pool=pool, generation=self.random.randrange(1, 3), **where)
        self.inventory.put(new, self.slices.get(name))
        self.slices[name] = new

    def change_labels(self) -> None:
        row = self.random.randrange(len(NODES))
        self.nodes.replace(row, node_with(NODES[row], {"zone": self.random.choice("ab")}))

    def replace_node(self) -> None:
        """Have a newer state of a node with the same labels."""
        row = self.random.randrange(len(NODES))
        self.nodes.replace(row, node_with(NODES[row], self.labels(row)))

    def labels(self, row: int) -> Mapping[str, str]:
        node = self.nodes.nodes[row]
        assert node is not None
        return node.metadata.labels

    def free(self) -> None:
        if self.held:
            where, allocation = self.held.pop(self.random.randrange(len(self.held)))
            where.remove(allocation)

    def hand_over(self) -> None:
        """Count an allocation elsewhere, as when its claim is written: in both places for a moment."""
        if self.held:
            index = self.random.randrange(len(self.held))
            where, allocation = self.held[index]
            new_place = self.base if where is self.allocated else self.allocated
            new_place.add(allocation)
            where.remove(allocation)
            self.held[index] = new_place, allocation

    def cached_answers(self, claims: Any) -> list[Any]:
        allocator = Allocator(self.inventory, CLASSES.get, self.allocated, Random(1), 0, self.questions)
        return cached_answers(allocator, claims, self.nodes)

    def answers(self, row: int, claims: Any) -> list[Any]:
        """As found anew, and as kept."""
        answers = []
        for questions in (None, self.questions):
            allocator = Allocator(self.inventory, CLASSES.get, self.allocated, Random(1), 0, questions)
            try:
                answers.append(answer_of(allocator, claims, NODES[row], self.labels(row)))
            except AllocationError as error:
                answers.append(str(error))
        return answers


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_a_kept_answer_is_the_one_that_would_be_found_anew(seed: int) -> None:
    random = Random(seed)
    cluster = Cluster(random)
    for _ in range(150):
        changes = (cluster.change_slice, cluster.change_labels, cluster.replace_node, cluster.free, cluster.hand_over)
        random.choice((*changes, lambda: None))()
        claims = random.choice(CLAIMS)
        early_answers = cluster.cached_answers(claims)
        for row, early in enumerate(early_answers):
            anew, repeated = cluster.answers(row, claims)
            assert repeated == anew
            # Errors are not kept, and neither are answers that depend on more than the devices.
            assert early is None or early == anew
            assert (late := cluster.cached_answers(claims)[row]) is None or late == anew
        if isinstance(repeated, tuple):
            where = random.choice((cluster.base, cluster.allocated))
            for allocation in repeated:
                where.add(allocation)
                cluster.held.append((where, allocation))


def test_claims_with_equal_specs_ask_the_same_until_a_class_changes() -> None:
    questions = Questions()
    first = questions.of([claim()], CLASSES.get, 0)
    assert questions.of([claim(name="other")], CLASSES.get, 0) is first
    assert questions.of([claim(request(count=2))], CLASSES.get, 0) is not first
    assert questions.of([claim()], CLASSES.get, 1) is not first
    assert questions.of([claim()], {}.get, 0) is not first


def test_a_node_is_searched_once_while_its_devices_stay_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    search = Allocator._search

    def count_and_search(self: Allocator, pools: Any, node_name: str, *arguments: Any) -> Any:
        searched.append(node_name)
        return search(self, pools, node_name, *arguments)

    monkeypatch.setattr(Allocator, "_search", count_and_search)
    inventory = Inventory([a_slice(node, "g0", "g1", pool=node, nodeName=node) for node in NODES])
    devices_in_use, questions = AllocatedDevices(), Questions()

    def attempt() -> Any:
        allocator = Allocator(inventory, CLASSES.get, devices_in_use, Random(1), 0, questions)
        claims = [claim()]
        return [answer_of(allocator, claims, node) for node in NODES]

    first, *_ = attempt()
    assert searched == list(NODES)
    devices_in_use.add(first[0])
    assert [devices_of(answer) for answer in attempt()] == [[["g1"]], [["g0"]], [["g0"]]]
    assert searched == [*NODES, "n1"]

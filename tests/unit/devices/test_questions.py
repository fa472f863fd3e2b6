"""Answers that are kept: the same as those that are found anew, whatever has changed in between."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from podium.devices import AllocatedDevices, AllocationError, Allocator, Inventory
from podium.devices.questions import Questions
from podium.objects.devices import ResourceSlice
from tests.unit.devices.cluster import CLASSES, a_slice, claim, device, devices_of, request

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
        self.labels = {node: {"zone": "a"} for node in NODES}
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
        self.labels[self.random.choice(NODES)] = {"zone": self.random.choice("ab")}

    def free(self) -> None:
        if self.held:
            where, allocation = self.held.pop(self.random.randrange(len(self.held)))
            where.remove(allocation)

    def cached_answer(self, node: str, claims: Any) -> Any:
        allocator = Allocator(self.inventory, CLASSES.get, self.allocated, Random(1), 0, self.questions)
        return allocator.cached_answers(claims)(node, self.labels[node])

    def answers(self, node: str, claims: Any) -> list[Any]:
        """As found anew, and as kept."""
        answers = []
        for questions in (None, self.questions):
            allocator = Allocator(self.inventory, CLASSES.get, self.allocated, Random(1), 0, questions)
            try:
                answers.append(allocator.allocate(node, self.labels[node], claims))
            except AllocationError as error:
                answers.append(str(error))
        return answers


@pytest.mark.parametrize("seed", range(8))
def test_a_kept_answer_is_the_one_that_would_be_found_anew(seed: int) -> None:
    random = Random(seed)
    cluster = Cluster(random)
    for _ in range(150):
        random.choice((cluster.change_slice, cluster.change_labels, cluster.free, lambda: None))()
        claims = random.choice(CLAIMS)
        for node in NODES:
            early = cluster.cached_answer(node, claims)
            anew, repeated = cluster.answers(node, claims)
            assert repeated == anew
            # Errors are not kept, and neither are answers that depend on more than the devices.
            assert early is None or early == anew
            assert (late := cluster.cached_answer(node, claims)) is None or late == anew
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
        return [allocator.allocate(node, {}, claims) for node in NODES]

    first, *_ = attempt()
    assert searched == list(NODES)
    devices_in_use.add(first[0])
    assert [devices_of(answer) for answer in attempt()] == [[["g1"]], [["g0"]], [["g0"]]]
    assert searched == [*NODES, "n1"]


def test_an_answer_is_looked_up_until_devices_of_its_pools_or_the_labels_change() -> None:
    inventory = Inventory([a_slice(node, "g0", "g1", pool=node, nodeName=node) for node in NODES])
    devices_in_use, questions, claims = AllocatedDevices(), Questions(), [claim()]
    labels: dict[str, str] = {}
    allocator = Allocator(inventory, CLASSES.get, devices_in_use, Random(1), 0, questions)
    assert [allocator.cached_answers(claims)(node, labels) for node in NODES] == [None, None, None]
    answers = [allocator.allocate(node, labels, claims) for node in NODES]
    assert [allocator.cached_answers(claims)(node, labels) for node in NODES] == answers
    # Labels are compared by identity here: equal ones are asked about with a search, which looks closer.
    assert allocator.cached_answers(claims)("n1", {}) is None
    assert isinstance(answers[0], tuple)
    devices_in_use.add(answers[0][0])
    assert [allocator.cached_answers(claims)(node, labels) for node in NODES] == [None, *answers[1:]]
    assert Allocator(inventory, CLASSES.get, devices_in_use, Random(1), 0).cached_answers(claims)("n2", labels) is None

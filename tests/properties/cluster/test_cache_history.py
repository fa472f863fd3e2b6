"""After any history, the incremental snapshot equals one built from scratch, and forks leave no trace."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cache, HostPort, Snapshot, pod_usage
from podium.cluster.pod_states import PodState
from podium.objects.requests import node_allocatable
from tests.builders import node, pod

NODES = [f"n{index}" for index in range(20)]
PODS = [f"p{index}" for index in range(30)]
PORTS = (80, 81)
IMAGES = ("app", "db")
LABELS = ("app", "topology.kubernetes.io/zone")
RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "example.com/nic")


def picture(snapshot: Snapshot) -> dict[str, object]:
    """Everything a snapshot says, by node name."""
    rows_by_port = {port: snapshot.host_ports.conflicting_rows(HostPort("0.0.0.0", "TCP", port)) for port in PORTS}
    images = {image: snapshot.images.get(image) for image in IMAGES}
    return {
        name: (
            snapshot.nodes[row],
            [int(snapshot.allocatable(resource)[row]) for resource in RESOURCES],
            [int(snapshot.requested(resource)[row]) for resource in RESOURCES],
            [int(snapshot.nonzero_requested(resource)[row]) for resource in RESOURCES],
            (int(snapshot.allowed_pods[row]), int(snapshot.pod_count[row]), bool(snapshot.unschedulable[row])),
            snapshot.taint_sets[snapshot.taint_set[row]],
            dict(snapshot.pods[row]),
            [snapshot.label_column(key).values[snapshot.label_column(key).ids[row]] for key in LABELS],
            [row in rows for rows in rows_by_port.values()],
            [state is not None and bool(state.presence(len(snapshot.nodes))[row]) for state in images.values()],
            row in snapshot.closed,
        )
        for name, row in snapshot.row_of.items()
    }


class Order:
    """The node order as the cache must have it: zones as lists, looked at anew when a node comes or goes."""

    def __init__(self) -> None:
        self.zones: list[tuple[str | None, list[str]]] = []
        self.shown: list[str] = []
        self.is_stale = False

    def put(self, name: str, zone: str | None) -> None:
        if any(name in names and zone == zone_name for zone_name, names in self.zones):
            return
        self.is_stale |= not self._take_out(name)
        home = next((names for zone_name, names in self.zones if zone_name == zone), None)
        if home is None:
            self.zones.append((zone, [name]))
        else:
            home.append(name)

    def remove(self, name: str) -> None:
        self.is_stale |= self._take_out(name)

    def _take_out(self, name: str) -> bool:
        was_there = any(name in names for _, names in self.zones)
        names_by_zone = [(zone, [node_name for node_name in names if node_name != name]) for zone, names in self.zones]
        self.zones = [(zone, names) for zone, names in names_by_zone if names]
        return was_there

    def look(self) -> list[str]:
        if self.is_stale:
            self.shown, self.is_stale = [], False
            name_queues = [list(names) for _, names in self.zones]
            while any(name_queues):
                self.shown += [names.pop(0) for names in name_queues if names]
        return self.shown


class History:
    """A cache that random things happen to, and what is true by now."""

    def __init__(self, random: Random, odd_pods: float = 0.0) -> None:
        self.random = random
        self.odd_pods = odd_pods
        self.cache = Cache(self._check_fault)
        self.nodes: dict[str, object] = {}
        self.pods: dict[str, object] = {}
        self.order = Order()

    def _check_fault(self, item, error) -> None:
        assert self.odd_pods or item.name in NODES, "only nodes are broken here"

    def step(self) -> None:
        self.random.choice((self.put_node, self.put_node, self.drop_node, *[self.pod_event] * 9))()

    def put_node(self) -> None:
        random, name = self.random, self.random.choice(NODES)
        zone = random.choice((None, "a", "b", "c"))
        is_broken = random.random() < 0.1
        item = node(
            name,
            cpu="many" if is_broken else str(random.randrange(1, 9)),
            pods=random.choice((10, 110)),
            zone=zone,
            labels={"app": random.choice("xyz")} if random.random() < 0.5 else {},
            taints=random.choice(((), ("k:NoSchedule",), ("k:NoExecute", "m=1:NoSchedule"))),
            unschedulable=random.random() < 0.2,
            images={image: 7 for image in IMAGES if random.random() < 0.5},
            allocatable={"example.com/gpu": 4} if random.random() < 0.2 else {},
        )
        assert self.cache.put_node(item) == (not is_broken)
        self.nodes[name] = item
        self.order.put(name, zone)

    def drop_node(self) -> None:
        name = self.random.choice(NODES)
        self.cache.remove_node(name)
        self.nodes.pop(name, None)
        self.order.remove(name)

    def pod_event(self) -> None:
        random, cache, name = self.random, self.cache, self.random.choice(PODS)
        on = random.choice(NODES)
        item = pod(
            name,
            cpu="lots" if random.random() < self.odd_pods else random.choice((None, "100m", "1")),
            requests={"example.com/nic": 1} if random.random() < 0.2 else {},
            host_ports=[random.choice(PORTS)] if random.random() < 0.3 else [],
            labels={"v": str(random.randrange(3))},
            node=on,
        )
        state = cache.state_of(item.uid)
        if state is PodState.UNKNOWN and random.random() < 0.5:
            cache.assume_pod(item, on)
            self.pods[name] = item
        elif state is PodState.ASSUMED and random.random() < 0.3:
            assert cache.forget_pod(item)
            del self.pods[name]
        elif state is not PodState.UNKNOWN and random.random() < 0.3:
            cache.remove_pod(item)
            del self.pods[name]
        else:
            (cache.update_pod if state is PodState.ADDED else cache.add_pod)(item)
            self.pods[name] = item

    def rebuilt(self) -> Snapshot:
        """A snapshot of the same cluster without a past."""
        cache = Cache(self._check_fault)
        for item in self.nodes.values():
            cache.put_node(item)
        for item in self.pods.values():
            cache.add_pod(item)
        return cache.snapshot()

    def check(self) -> None:
        snapshot = self.cache.snapshot()
        assert picture(snapshot) == picture(self.rebuilt())
        assert [snapshot.name(row) for row in snapshot.order] == self.order.look()
        assert len(snapshot) == len(self.nodes) == self.cache.statistics()["nodes"]


@given(seed=st.integers(0, 2**32), steps=st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_snapshot_equals_one_built_from_scratch(seed, steps):
    history = History(Random(seed), odd_pods=0.1)
    for count in steps:
        for _ in range(count):
            history.step()
        history.check()


@given(seed=st.integers(0, 2**32), steps=st.integers(0, 80))
def test_fork_equals_a_cluster_with_its_changes_and_leaves_no_trace(seed, steps):
    random = Random(seed)
    history = History(random)
    for _ in range(20 + steps):
        history.step()
    snapshot = history.cache.snapshot()
    original = picture(snapshot)
    fork = snapshot.fork()
    for _ in range(steps):
        _change_a_pod(fork, random, history)
    assert picture(fork) == picture(history.rebuilt())
    assert picture(snapshot) == original


@given(seed=st.integers(0, 2**32), steps=st.integers(0, 80))
def test_fork_whose_nodes_change_equals_a_cluster_with_its_changes_and_leaves_no_trace(seed, steps):
    random = Random(seed)
    history = History(random)
    for _ in range(20 + steps):
        history.step()
    snapshot = history.cache.snapshot()
    original, twin = picture(snapshot), snapshot.fork()
    fork = twin.fork()
    for _ in range(steps):
        (_change_a_node if random.random() < 0.3 else _change_a_pod)(fork, random, history)
    fork.settle()
    assert picture(fork) == picture(history.rebuilt())
    assert sorted(fork.name(row) for row in fork.order.tolist()) == sorted(history.nodes)
    assert picture(snapshot) == picture(twin) == original


def _change_a_node(fork: Snapshot, random: Random, history: History) -> None:
    name = random.choice(NODES)
    if name in fork.row_of and random.random() < 0.4:
        fork.drop_node(name)
        del history.nodes[name]
        return
    is_new = name not in fork.row_of
    item = node(name, zone=random.choice(("a", "b")), labels={"app": random.choice("xyz")}, images={"app": 7})
    fork.put_node(item, *node_allocatable(item))
    fork.close_node(name, "")  # this one can be read
    history.nodes[name] = item
    pods_on_node = [pod for pod in history.pods.values() if pod.node_name == name] if is_new else []
    for existing_pod in pods_on_node:
        fork.add_pod(fork.row_of[name], existing_pod, pod_usage(existing_pod))


def _change_a_pod(fork: Snapshot, random: Random, history: History) -> None:
    name = random.choice(PODS)
    former = history.pods.pop(name, None)
    if former is not None:
        if former.node_name in fork.row_of:
            fork.remove_pod(fork.row_of[former.node_name], former.uid)
        return
    if not fork.row_of:
        return
    on = random.choice(sorted(fork.row_of))
    item = pod(name, cpu="300m", requests={"example.com/nic": 2}, host_ports=[random.choice(PORTS)], node=on)
    fork.add_pod(fork.row_of[on], item, pod_usage(item))
    history.pods[name] = item


@pytest.mark.parametrize("seed", range(3))
def test_long_history_without_a_look_ends_in_the_same_snapshot(seed):
    history = History(Random(seed), odd_pods=0.1)
    for _ in range(2000):
        history.step()
    history.check()

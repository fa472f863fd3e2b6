from __future__ import annotations

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from podium.cluster import Cache, CacheError, HostPort
from podium.cluster.cache import CHANGES_WAITING_MAX
from podium.cluster.pod_states import POD_STATES, PodEvent, PodState
from podium.lib.state_table import InvalidTransition
from podium.objects.core import Container, PodSpec
from podium.objects.meta import OwnerReference
from podium.objects.requests import CONTAINERS_MAX
from tests.builders import node, pod

PORT = HostPort("0.0.0.0", "TCP", 80)


class FaultRecorder:
    """Notes which objects were reported, and for which field."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, str]] = []

    def __call__(self, item, error) -> None:
        self.reports.append((item.key, error.path))


@pytest.fixture
def recorder() -> FaultRecorder:
    return FaultRecorder()


@pytest.fixture
def cache(recorder: FaultRecorder) -> Cache:
    return Cache(recorder)


def names(cache: Cache) -> list[str]:
    snapshot = cache.snapshot()
    return [snapshot.name(row) for row in snapshot.order]


def pods_on(cache: Cache, name: str) -> set[str]:
    snapshot = cache.snapshot()
    return {pod.metadata.name for pod in snapshot.node(snapshot.row_of[name]).pods}


def requests_on(cache: Cache, name: str, resource: str = "cpu") -> int:
    snapshot = cache.snapshot()
    return snapshot.node(snapshot.row_of[name]).requested(resource)


def in_state(cache: Cache, state: PodState):
    """A pod in that state, on node n1 unless it is unknown."""
    item = pod("web", cpu="1", node="n1")
    if state is PodState.ASSUMED:
        cache.assume_pod(pod("web", cpu="1"), "n1")
    elif state is PodState.ADDED:
        cache.add_pod(item)
    return item


APPLY = {
    PodEvent.ASSUME: lambda cache, item: cache.assume_pod(item, "n1"),
    PodEvent.FORGET: lambda cache, item: cache.forget_pod(item),
    PodEvent.ADD: lambda cache, item: cache.add_pod(item),
    PodEvent.UPDATE: lambda cache, item: cache.update_pod(item),
    PodEvent.REMOVE: lambda cache, item: cache.remove_pod(item),
}
UNKNOWN, ASSUMED, ADDED = PodState.UNKNOWN, PodState.ASSUMED, PodState.ADDED
AFTER = {
    (UNKNOWN, PodEvent.ASSUME): ASSUMED,
    (UNKNOWN, PodEvent.FORGET): UNKNOWN,
    (UNKNOWN, PodEvent.ADD): ADDED,
    (UNKNOWN, PodEvent.UPDATE): "pod uid-web(default/web) is not in added state, so cannot be updated",
    (UNKNOWN, PodEvent.REMOVE): "pod uid-web(default/web) is not found in scheduler cache, "
    "so cannot be removed from it",
    (ASSUMED, PodEvent.ASSUME): "pod uid-web(default/web) is in the cache, so can't be assumed",
    (ASSUMED, PodEvent.FORGET): UNKNOWN,
    (ASSUMED, PodEvent.ADD): ADDED,
    (ASSUMED, PodEvent.UPDATE): "pod uid-web(default/web) is not in added state, so cannot be updated",
    (ASSUMED, PodEvent.REMOVE): UNKNOWN,
    (ADDED, PodEvent.ASSUME): "pod uid-web(default/web) is in the cache, so can't be assumed",
    (ADDED, PodEvent.FORGET): "pod uid-web(default/web) is not assumed, so it cannot be removed or forgotten",
    (ADDED, PodEvent.ADD): "pod uid-web(default/web) was already in added state",
    (ADDED, PodEvent.UPDATE): ADDED,
    (ADDED, PodEvent.REMOVE): UNKNOWN,
}


@pytest.mark.parametrize("event", PodEvent)
@pytest.mark.parametrize("state", PodState)
def test_every_event_in_every_state(cache, state, event):
    cache.put_node(node("n1"))
    item = in_state(cache, state)
    next_state = AFTER[state, event]
    if isinstance(next_state, str):
        with pytest.raises(CacheError) as refusal:
            APPLY[event](cache, item)
        assert str(refusal.value) == next_state
        with pytest.raises(InvalidTransition):
            POD_STATES.next(state, event)
        next_state = state
    else:
        APPLY[event](cache, item)
        assert POD_STATES.next(state, event) is next_state
    assert cache.state_of(item.uid) is next_state
    assert cache.is_assumed(item.uid) == (next_state is ASSUMED)
    assert (cache.pod(item.uid) is None) == (next_state is UNKNOWN)
    assert requests_on(cache, "n1") == (0 if next_state is UNKNOWN else 1000)
    assert cache.statistics() == {
        "nodes": 1,
        "pods": int(next_state is not UNKNOWN),
        "assumed_pods": int(next_state is ASSUMED),
    }


def test_assumed_pod_counts_with_the_node_it_was_assumed_on(cache):
    cache.put_node(node("n1"))
    cache.assume_pod(pod("web", cpu="250m"), "n1")
    assert cache.pod("uid-web").node_name == "n1"
    assert requests_on(cache, "n1") == 250


def test_forgetting_says_whether_the_pod_was_assumed(cache):
    cache.put_node(node("n1"))
    cache.assume_pod(pod("web"), "n1")
    assert cache.forget_pod(pod("web")) is True
    assert cache.forget_pod(pod("web")) is False
    assert pods_on(cache, "n1") == set()


def test_confirmed_pod_replaces_the_assumed_one(cache):
    cache.put_node(node("n1"))
    cache.assume_pod(pod("web", cpu="1"), "n1")
    confirmed = pod("web", cpu="1", node="n1", status={"phase": "Running"})
    cache.add_pod(confirmed)
    assert cache.pod("uid-web") is confirmed
    snapshot = cache.snapshot()
    assert list(snapshot.node(snapshot.row_of["n1"]).pods) == [confirmed]
    assert requests_on(cache, "n1") == 1000


@pytest.mark.parametrize("is_seen_between", [False, True])
def test_pod_confirmed_on_another_node_moves_there(cache, is_seen_between):
    cache.put_node(node("n1"))
    cache.put_node(node("n2"))
    cache.assume_pod(pod("web", cpu="1", host_ports=[80]), "n1")
    if is_seen_between:
        cache.snapshot()
    cache.add_pod(pod("web", cpu="1", host_ports=[80], node="n2"))
    assert (requests_on(cache, "n1"), requests_on(cache, "n2")) == (0, 1000)
    assert cache.state_of("uid-web") is ADDED
    assert not cache.is_assumed("uid-web")


def test_pod_that_reappears_on_another_node_is_logged(cache):
    cache.add_pod(pod("web", node="n1"))
    with capture_logs() as lines:
        cache.update_pod(pod("web", node="n2"))
        cache.update_pod(pod("web", node="n2"))
    [line] = lines
    assert line["log_level"] == "warning"
    assert (line["pod"], line["before"], line["node"]) == ("default/web", "n1", "n2")


def test_updated_pod_counts_with_its_new_requests(cache):
    cache.put_node(node("n1"))
    cache.add_pod(pod("web", cpu="1", node="n1", host_ports=[80]))
    cache.snapshot()
    cache.update_pod(pod("web", cpu="2", node="n1"))
    assert requests_on(cache, "n1") == 2000
    assert cache.snapshot().host_ports.conflicting_rows(PORT) == []


def test_a_heartbeat_of_a_node_changes_nothing(cache):
    first = node("n1", images={"app": 1})
    cache.put_node(first)
    metadata = replace(first.metadata, resource_version="2")
    cache.put_node(replace(node("n1", images={"app": 1}), metadata=metadata))
    assert cache.snapshot().nodes[0] is first
    for changed_node in (
        node("n1", images={"app": 2}),
        node("n1", labels={"disk": "ssd"}),
        node("n1", unschedulable=True),
        node("n1", uid="another"),
        replace(first, metadata=replace(metadata, annotations={"a": "b"})),
        replace(first, metadata=replace(metadata, deletion_timestamp="2026-01-01T00:00:00Z")),
        replace(first, metadata=replace(metadata, owner_references=(OwnerReference(kind="Machine", name="m"),))),
    ):
        cache.put_node(changed_node)
        assert cache.snapshot().nodes[0] is changed_node


def test_pods_of_a_node_that_comes_later_count_from_then_on(cache):
    cache.add_pod(pod("early", cpu="1", node="n1"))
    cache.assume_pod(pod("bold", cpu="2"), "n1")
    assert len(cache.snapshot()) == 0
    cache.put_node(node("n1"))
    assert pods_on(cache, "n1") == {"early", "bold"}
    assert requests_on(cache, "n1") == 3000


def test_pods_outlive_their_node_and_count_again_when_it_returns(cache):
    cache.put_node(node("n1"))
    cache.add_pod(pod("stays", cpu="1", node="n1"))
    cache.add_pod(pod("goes", cpu="1", node="n1"))
    cache.snapshot()
    cache.remove_node("n1")
    assert names(cache) == []
    assert cache.statistics()["pods"] == 2
    cache.remove_pod(pod("goes", node="n1"))
    cache.update_pod(pod("stays", cpu="3", node="n1"))
    cache.put_node(node("n1"))
    assert pods_on(cache, "n1") == {"stays"}
    assert requests_on(cache, "n1") == 3000


def test_node_that_goes_and_returns_between_two_snapshots_keeps_its_pods(cache):
    cache.put_node(node("n1"))
    cache.add_pod(pod("web", cpu="1", node="n1"))
    cache.snapshot()
    cache.remove_node("n1")
    cache.put_node(node("n1", cpu="8"))
    assert pods_on(cache, "n1") == {"web"}
    assert requests_on(cache, "n1") == 1000


def test_removing_an_unknown_node_changes_nothing(cache):
    cache.put_node(node("n1"))
    cache.remove_node("n2")
    assert names(cache) == ["n1"]
    assert list(cache.node_names()) == ["n1"]


def test_snapshot_is_always_the_same_object_and_changes_only_when_asked_for(cache):
    cache.put_node(node("n1"))
    snapshot = cache.snapshot()
    cache.assume_pod(pod("web", cpu="1"), "n1")
    assert snapshot.requested("cpu")[0] == 0
    assert cache.snapshot() is snapshot
    assert snapshot.requested("cpu")[0] == 1000


def test_changes_that_nobody_asks_about_do_not_pile_up(cache):
    cache.put_node(node("n1"))
    snapshot = cache.snapshot()
    cache.add_pod(pod("web", cpu="1", node="n1"))
    update = pod("web", cpu="2", node="n1")
    for _ in range(CHANGES_WAITING_MAX):
        cache.update_pod(update)
    assert snapshot.requested("cpu")[0] == 2000


def test_held_snapshot_stays_as_it_is_whatever_happens_and_whoever_asks(cache):
    cache.put_node(node("n1"))
    snapshot = cache.snapshot()
    cache.add_pod(pod("web", cpu="1", node="n1"))
    update = pod("web", cpu="2", node="n1")
    with cache.hold():
        for _ in range(CHANGES_WAITING_MAX):
            cache.update_pod(update)
        cache.remove_node("n1")
        assert cache.snapshot() is snapshot
        assert (len(snapshot), snapshot.requested("cpu")[0]) == (1, 0)
    assert len(cache.snapshot()) == 0


def closed_nodes(cache: Cache) -> dict[str, str]:
    snapshot = cache.snapshot()
    return {snapshot.name(row): why for row, why in snapshot.closed.items()}


def test_node_with_a_broken_quantity_is_reported_once_and_closed(cache, recorder):
    bad = node("n1", allocatable={"memory": "much"})
    assert cache.put_node(bad) is False
    assert cache.put_node(bad) is False
    assert recorder.reports == [("n1", "status.allocatable[memory]")]
    assert names(cache) == ["n1"]
    [why] = closed_nodes(cache).values()
    assert why.startswith("the node has a field that cannot be read, status.allocatable[memory]: ")
    assert (cache.snapshot().allocatable("cpu")[0], cache.snapshot().allowed_pods[0]) == (0, 0)


def test_node_that_breaks_is_closed_until_it_is_mended_and_its_pods_count_all_the_time(cache, recorder):
    assert cache.put_node(node("n1")) is True
    cache.add_pod(pod("web", cpu="1", node="n1"))
    cache.snapshot()
    cache.put_node(node("n1", cpu="four"))
    assert list(closed_nodes(cache)) == ["n1"]
    assert requests_on(cache, "n1") == 1000
    assert cache.put_node(node("n1")) is True
    assert closed_nodes(cache) == {}
    assert requests_on(cache, "n1") == 1000
    assert recorder.reports == [("n1", "status.allocatable[cpu]")]


def test_a_pod_with_unreadable_requests_closes_its_node_as_long_as_it_is_there(cache):
    cache.put_node(node("n1"))
    cache.put_node(node("n2"))
    cache.add_pod(pod("odd", cpu="lots", node="n1"))
    [(name, why)] = closed_nodes(cache).items()
    assert name == "n1"
    assert why.startswith("a pod there has a field that cannot be read, spec.containers[0].resources.requests[cpu]: ")
    assert "odd" not in why
    assert cache.take_opened() == ()
    cache.remove_pod(pod("odd", node="n1"))
    assert closed_nodes(cache) == {}
    assert [node.name for node in cache.take_opened()] == ["n1"]
    assert cache.take_opened() == ()


def test_a_pod_that_becomes_readable_or_moves_opens_its_node(cache):
    cache.put_node(node("n1"))
    cache.put_node(node("n2"))
    cache.add_pod(pod("odd", cpu="lots", node="n1"))
    cache.update_pod(pod("odd", cpu="1", node="n1"))
    assert closed_nodes(cache) == {}
    cache.update_pod(pod("odd", cpu="lots", node="n1"))
    cache.update_pod(pod("odd", cpu="lots", node="n2"))
    assert list(closed_nodes(cache)) == ["n2"]


def test_a_node_is_closed_until_the_last_reason_is_gone(cache):
    cache.put_node(node("n1", cpu="four"))
    cache.add_pod(pod("odd", cpu="lots", node="n1"))
    cache.add_pod(pod("even", memory="little", node="n1"))
    for mend in (
        lambda: cache.put_node(node("n1")),
        lambda: cache.remove_pod(pod("odd", node="n1")),
    ):
        mend()
        assert list(closed_nodes(cache)) == ["n1"]
    cache.remove_pod(pod("even", node="n1"))
    assert closed_nodes(cache) == {}


def test_a_node_that_comes_after_its_unreadable_pod_or_anew_is_closed(cache):
    cache.add_pod(pod("odd", cpu="lots", node="n1"))
    for _ in range(2):
        cache.put_node(node("n1"))
        assert list(closed_nodes(cache)) == ["n1"]
        cache.remove_node("n1")
        assert closed_nodes(cache) == {}
    cache.put_node(node("n2"))
    assert closed_nodes(cache) == {}


def test_a_pod_with_more_containers_than_are_counted_closes_its_node(cache):
    cache.put_node(node("n1"))
    spec = PodSpec(containers=tuple(Container(name=f"c{number}") for number in range(CONTAINERS_MAX + 1)))
    cache.add_pod(replace(pod("many", node="n1"), spec=spec))
    [why] = closed_nodes(cache).values()
    assert why.endswith("spec.containers: 3001 containers, at most 3000 are counted")


def test_a_pod_with_very_many_labels_counts_like_any_other(cache):
    cache.put_node(node("n1"))
    cache.add_pod(pod("many", cpu="3", labels={f"k{number}": "v" for number in range(50_000)}, node="n1"))
    assert requests_on(cache, "n1") == 3000
    assert closed_nodes(cache) == {}


def test_a_broken_node_that_was_gone_is_reported_anew(cache, recorder):
    for _ in range(2):
        cache.put_node(node("n1", memory="much"))
        cache.remove_node("n1")
    assert recorder.reports == [("n1", "status.allocatable[memory]")] * 2


def test_a_broken_pod_that_was_forgotten_is_reported_anew(cache, recorder):
    bad = pod("odd", cpu="abc")
    for _ in range(2):
        cache.assume_pod(bad, "n1")
        cache.forget_pod(bad)
    assert len(recorder.reports) == 2


def test_node_with_another_fault_is_reported_again(cache, recorder):
    cache.put_node(node("n1", cpu="four"))
    cache.put_node(node("n1", memory="much"))
    assert [path for _, path in recorder.reports] == ["status.allocatable[cpu]", "status.allocatable[memory]"]


def test_pod_with_a_broken_quantity_is_reported_once_and_counts_as_far_as_it_can_be_read(cache, recorder):
    cache.put_node(node("n1"))
    cache.add_pod(pod("odd", cpu="lots", host_ports=[80], node="n1"))
    cache.update_pod(pod("odd", cpu="lots", host_ports=[80], node="n1", labels={"a": "b"}))
    assert recorder.reports == [("default/odd", "spec.containers[0].resources.requests[cpu]")]
    snapshot = cache.snapshot()
    assert requests_on(cache, "n1") == 0
    assert snapshot.pod_count[0] == 1
    assert snapshot.host_ports.conflicting_rows(PORT) == [0]


def test_pod_of_the_same_uid_is_reported_again_after_it_was_removed(cache, recorder):
    for _ in range(2):
        cache.add_pod(pod("odd", cpu="lots", node="n1"))
        cache.remove_pod(pod("odd", node="n1"))
    assert len(recorder.reports) == 2


@pytest.mark.parametrize("amount", ["1e30", "9E", "-1", "9223372036854775807"])
def test_absurd_amounts_do_not_break_the_snapshot(cache, amount):
    cache.put_node(node("n1", memory=amount))
    cache.add_pod(pod("greedy", memory=amount, node="n1"))
    assert pods_on(cache, "n1") == {"greedy"}
    cache.remove_pod(pod("greedy", node="n1"))
    assert requests_on(cache, "n1", "memory") == 0

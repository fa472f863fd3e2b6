from __future__ import annotations

from podium.cluster import Cache
from podium.cluster.pod_groups import PodGroupState, PodGroupStates
from podium.objects.core import Pod
from tests.builders import node, pod


def member(name: str = "a", **fields: str) -> Pod:
    return pod(name, group="gang", **fields)  # type: ignore[arg-type]


def state_of(states: PodGroupStates) -> PodGroupState:
    state = states.get("default/gang")
    assert state is not None
    return state


def counts(states: PodGroupStates) -> tuple[int, int, int]:
    state = state_of(states)
    return len(state.unscheduled), len(state.assumed), len(state.assigned)


def cache_of_groups() -> tuple[Cache, PodGroupStates]:
    states = PodGroupStates()
    cache = Cache(lambda *_: None, pod_groups=states)
    cache.put_node(node("n1"))
    return cache, states


def test_a_group_exists_from_its_first_pod_to_its_last() -> None:
    states = PodGroupStates()
    assert states.get("default/gang") is None
    states.put_waiting(member())
    assert len(state_of(states)) == 1
    states.remove(member())
    assert states.get("default/gang") is None


def test_a_pod_without_a_group_is_in_none() -> None:
    states = PodGroupStates()
    for change in (states.put_waiting, states.put_assigned, states.forget, states.remove):
        change(pod())
    states.assume(pod(node="n1"))
    assert states.get("default/") is None


def test_a_pod_is_assumed_forgotten_assumed_again_and_bound() -> None:
    cache, states = cache_of_groups()
    states.put_waiting(member())
    cache.assume_pod(member(), "n1")
    assert counts(states) == (0, 1, 0)
    assert [pod_state.node_name for pod_state in state_of(states).scheduled()] == ["n1"]
    cache.forget_pod(member())
    assert counts(states) == (1, 0, 0)
    cache.assume_pod(member(), "n1")
    states.put_waiting(member())
    assert counts(states) == (0, 1, 0)
    cache.add_pod(member(node="n1"))
    assert counts(states) == (0, 0, 1)
    cache.update_pod(member(node="n1"))
    cache.remove_pod(member(node="n1"))
    assert states.get("default/gang") is None


def test_pods_that_others_have_bound_count_too() -> None:
    cache, states = cache_of_groups()
    cache.add_pod(member("theirs", node="n1"))
    states.put_waiting(member())
    assert (len(state_of(states)), state_of(states).scheduled_count) == (2, 1)


def test_a_pod_deleted_while_it_is_assumed_does_not_come_back() -> None:
    cache, states = cache_of_groups()
    for state in (member("a"), member("b")):
        states.put_waiting(state)
    cache.assume_pod(member("a"), "n1")
    states.remove(member("a"))
    cache.forget_pod(member("a"))
    assert list(state_of(states).unscheduled) == ["uid-b"]


def test_copies_and_forks_change_by_themselves() -> None:
    cache, states = cache_of_groups()
    states.put_waiting(member())
    copy = state_of(states).copy()
    copy.assume(member().on_node("n1"))
    twin = cache.fork()
    assert twin.pod_groups is not None
    twin.assume_pod(member(), "n1")
    assert counts(states) == (1, 0, 0)
    assert copy.scheduled_count == state_of(twin.pod_groups).scheduled_count == 1
    copy.forget(member())
    assert copy.scheduled_count == 0

"""The store's own rules; informers over a connection are in the integration tests."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.client.informer import Informer
from podium.objects.core import Pod
from podium.objects.meta import ObjectMeta
from podium.objects.resource_types import PODS
from podium.objects.wire import BrokenObject
from tests.unit.client.builders import pod_at

pytestmark = pytest.mark.anyio


class Story:
    """A handler that records its calls."""

    def __init__(self) -> None:
        self.events: list[tuple[str, ...]] = []

    def on_add(self, new: Pod) -> None:
        self.events.append(("add", version(new)))

    def on_update(self, old: Pod, new: Pod) -> None:
        self.events.append(("update", version(old), version(new)))

    def on_delete(self, old: Pod) -> None:
        self.events.append(("delete", version(old)))

    def on_broken(self, broken_object: BrokenObject) -> None:
        self.events.append(("broken", broken_object.detail))


def version(item: Pod) -> str:
    return f"{item.metadata.name}@{item.metadata.resource_version}"


def broken_object(name: str, detail: str = "bad", uid: str = "u") -> BrokenObject:
    return BrokenObject("Pod", "ns", name, uid, "99", detail)


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def informer(story: Story) -> Informer[Pod]:
    informer = Informer(PODS, lambda _resource, error: pytest.fail(str(error)))
    informer.add_handler(story)
    return informer


def test_an_older_or_equal_state_is_never_delivered(informer: Informer[Pod], story: Story) -> None:
    for resource_version in (9, 10, 10, 9, 11):
        informer.put(pod_at("a", resource_version))
    assert story.events == [("add", "a@9"), ("update", "a@9", "a@10"), ("update", "a@10", "a@11")]


def test_a_namespace_is_a_live_view_of_its_objects(informer: Informer[Pod]) -> None:
    def elsewhere(resource_version: int) -> Pod:
        meta = ObjectMeta(name="x", namespace="other", uid="u", resource_version=str(resource_version))
        return Pod(metadata=meta)

    informer.put(pod_at("a", 1))
    assert [version(item) for item in informer.in_namespace("ns")] == ["a@1"]
    assert list(informer.in_namespace("other")) == []
    for item in (pod_at("a", 2), pod_at("b", 3), elsewhere(4)):
        informer.put(item)
    assert [version(item) for item in informer.in_namespace("ns")] == ["a@2", "b@3"]
    informer.drop(pod_at("a", 5))
    assert [version(item) for item in informer.in_namespace("ns")] == ["b@3"]
    assert [version(item) for item in informer.in_namespace("other")] == ["x@4"]


async def test_a_list_is_right_even_when_versions_went_back(informer: Informer[Pod], story: Story) -> None:
    informer.put(pod_at("a", 500))
    informer.put(pod_at("same", 7))
    await informer.replace([pod_at("a", 3), pod_at("same", 7)], [])
    assert story.events[2:] == [("update", "a@500", "a@3")]


async def test_a_list_changes_an_object_that_has_another_content_at_the_version_that_was_known(
    informer: Informer[Pod], story: Story
) -> None:
    """After a restore, versions are given again: a bound pod may get the one that it had while it was pending."""
    stored_pod = pod_at("a", 7)
    informer.put(stored_pod)
    await informer.replace([stored_pod.on_node("n1")], [])
    assert informer.get("ns/a") == stored_pod.on_node("n1")
    assert story.events[1:] == [("update", "a@7", "a@7")]


async def test_the_first_list_is_taken_while_it_arrives(informer: Informer[Pod], story: Story) -> None:
    first, second = pod_at("a", 1), pod_at("b", 2)
    informer.take_early([first])
    assert story.events == [("add", "a@1")]
    await informer.replace([first, second], [])
    assert story.events == [("add", "a@1"), ("add", "b@2")]


async def test_what_a_torn_first_list_said_is_corrected_by_the_next(informer: Informer[Pod], story: Story) -> None:
    informer.take_early([pod_at("gone", 1), pod_at("changed", 2), pod_at("made-anew", 3, "first"), pod_at("broken", 4)])
    await informer.replace([pod_at("changed", 9), pod_at("made-anew", 8, "second")], [broken_object("broken")])
    assert story.events[4:] == [
        ("delete", "gone@1"),
        ("broken", "bad"),
        ("update", "changed@2", "changed@9"),
        ("delete", "made-anew@3"),
        ("add", "made-anew@8"),
    ]
    assert {version(item) for item in informer.list()} == {"broken@4", "changed@9", "made-anew@8"}


async def test_nothing_is_missing_from_a_list_with_an_object_that_cannot_be_identified(
    informer: Informer[Pod], story: Story
) -> None:
    informer.put(pod_at("a", 1))
    informer.put(pod_at("b", 2))
    await informer.replace([pod_at("b", 3)], [broken_object("")])
    assert story.events[2:] == [("broken", "bad"), ("update", "b@2", "b@3")]
    await informer.replace([pod_at("b", 3)], [])
    assert story.events[4:] == [("delete", "a@1")]


async def test_a_later_list_is_taken_as_a_whole(informer: Informer[Pod], story: Story) -> None:
    await informer.replace([pod_at("a", 1)], [])
    informer.set_synced()
    informer.take_early([pod_at("b", 2)])
    assert story.events == [("add", "a@1")]


def test_an_object_of_another_uid_is_another_object(informer: Informer[Pod], story: Story) -> None:
    informer.put(pod_at("a", 5, "first"))
    informer.put(pod_at("a", 9, "second"))
    assert story.events[1:] == [("delete", "a@5"), ("add", "a@9")]


def test_old_events_bring_nothing_back_and_take_nothing_away(informer: Informer[Pod], story: Story) -> None:
    informer.put(pod_at("a", 5, "first"))
    informer.drop(pod_at("a", 9, "first"))
    for version_of_old in (5, 9):
        informer.put(pod_at("a", version_of_old, "first"))
    assert story.events == [("add", "a@5"), ("delete", "a@5")]
    informer.put(pod_at("a", 12, "second"))
    informer.put(pod_at("a", 5, "first"))
    informer.drop(pod_at("a", 9, "first"))
    informer.drop(pod_at("a", 11, "second"))
    assert story.events[2:] == [("add", "a@12")]
    informer.drop(pod_at("b", 14))
    informer.put(pod_at("b", 13))
    assert story.events[3:] == []


async def test_a_list_brings_back_what_was_deleted(informer: Informer[Pod], story: Story) -> None:
    informer.put(pod_at("a", 5))
    informer.drop(pod_at("a", 9))
    await informer.replace([pod_at("a", 5)], [])
    informer.put(pod_at("a", 6))
    assert story.events[2:] == [("add", "a@5"), ("update", "a@5", "a@6")]


def test_a_deletion_delivers_the_state_that_handlers_know(informer: Informer[Pod], story: Story) -> None:
    informer.put(pod_at("a", 5))
    informer.drop(pod_at("a", 9))
    informer.drop(pod_at("a", 9))
    assert story.events[1:] == [("delete", "a@5")]


def test_an_object_without_a_version_is_changed_and_deleted_all_the_same(informer: Informer[Pod], story: Story) -> None:
    unversioned = Pod(metadata=ObjectMeta(name="a", namespace="ns", uid="u"))
    informer.put(pod_at("a", 5))
    informer.put(unversioned)
    informer.put(pod_at("a", 6))
    informer.drop(unversioned)
    assert story.events[1:] == [("update", "a@5", "a@"), ("update", "a@", "a@6"), ("delete", "a@6")]


async def test_a_broken_object_keeps_what_was_known_until_it_is_deleted_or_replaced(
    informer: Informer[Pod], story: Story
) -> None:
    informer.put(pod_at("a", 5))
    informer.mark_broken(broken_object("a"), deleted=False)
    informer.mark_broken(broken_object("a"), deleted=False)
    await informer.replace([], [broken_object("a")])
    informer.mark_broken(broken_object("a", "worse"), deleted=False)
    assert story.events[1:] == [("broken", "bad"), ("broken", "worse")]
    informer.mark_broken(broken_object("a", "worse", uid="other"), deleted=False)
    assert story.events[3:] == [("delete", "a@5"), ("broken", "worse")]
    informer.mark_broken(broken_object("a", uid="other"), deleted=True)
    informer.mark_broken(broken_object("a", uid="other"), deleted=False)
    assert story.events[5:] == [("broken", "bad")]


STATE = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(1, 30), st.sampled_from(["u", "v"])))


@pytest.mark.long
@given(st.lists(STATE, min_size=1, max_size=5))
async def test_whatever_lists_follow_each_other_handlers_can_follow_them(
    states: Sequence[dict[str, tuple[int, str]]],
) -> None:
    story = Story()
    informer = Informer(PODS, lambda _resource, error: pytest.fail(str(error)))
    informer.add_handler(story)
    for state in states:
        items = [pod_at(name, number, uid) for name, (number, uid) in state.items()]
        await informer.replace(items, [])
        assert sorted(informer.list(), key=version) == sorted(items, key=version)
    versions_heard: set[str] = set()
    for kind, *versions in story.events:
        if kind != "add":
            versions_heard.remove(versions[0])
        if kind != "delete":
            versions_heard.add(versions[-1])
    assert versions_heard == {version(item) for item in informer.list()}


def test_the_change_log_has_each_state_that_came_or_went(informer: Informer[Pod]) -> None:
    informer.put(pod_at("early", 1))
    log = informer.change_log()
    assert log is informer.change_log()
    informer.put(pod_at("a", 2))
    informer.put(pod_at("a", 3))
    informer.put(pod_at("a", 3))
    informer.drop(pod_at("a", 4))
    assert [version(item) for item in log.since(0) or ()] == ["a@2", "a@2", "a@3", "a@3"]

"""What a running podium says about gangs, in virtual time."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from podium.daemon.gang_stories import GangStories
from podium.engine.gang_story import COSCHEDULING, UPSTREAM, GangStory
from podium.objects.core import Pod
from tests.builders import node, pod
from tests.unit.daemon.loop_bench import LoopBench, settle
from tests.unit.daemon.test_coscheduling import bench_with, members, running
from tests.unit.daemon.test_pod_groups import GANG, A, B, C, gang_bench
from tests.unit.plugins.contrib.coscheduling.test_plugin import group, member
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


def story_of(bench: LoopBench, subject: Pod) -> GangStory | None:
    groups: Any = None if bench.groups is None else bench.objects
    stories = GangStories(lambda: bench.frameworks, bench.groups, groups, bench.waiting_pods, bench.cache.pod)
    return stories.story_of(subject, lambda pod: f"{pod.metadata.name} does not fit")


async def test_members_for_which_a_node_is_held_say_how_long_they_still_wait() -> None:
    bench, pods = bench_with(pod_group_reject_percentage=100), members("train", 3)
    bench.put(node("n1", cpu="2"), group(minMember=3, scheduleTimeoutSeconds=30))
    async with running(bench):
        bench.put(*pods)
        await anyio.sleep(5)
        story = story_of(bench, pods[0])
    assert story is not None
    assert (story.gang, story.api, story.needed, story.short) == ("default/train", COSCHEDULING, 3, 1)
    assert story.held == {"default/train-0": "n1", "default/train-1": "n1"}
    assert story.lacking == {"default/train-2": "train-2 does not fit"}
    assert story.left_s is not None
    assert 20 < story.left_s <= 25
    waits = f"hold nodes and wait for the others: n1 (2); {story.left_s:.0f} s are left, then they are given back"
    assert f"default/train-0, default/train-1 {waits}" in story.lines
    assert story.as_dict()["seconds_left"] == story.left_s


async def test_members_that_are_bound_have_a_node() -> None:
    bench, pods = bench_with(), members("train", 3)
    bench.put(node("n1", cpu="8"), group(minMember=3))
    async with running(bench):
        bench.put(*pods)
        await settle()
        story = story_of(bench, pods[0])
    assert story is not None
    assert (story.is_complete, set(story.placed.values()), dict(story.held)) == (True, {"n1"}, {})


async def test_a_gang_of_kubernetes_that_is_not_complete() -> None:
    bench = gang_bench()
    bench.put(node("n1", cpu="2"), GANG)
    async with bench.running():
        bench.put(A, B)
        await settle()
        story = story_of(bench, A)
        assert story is not None
        assert (story.api, story.problem) == (UPSTREAM, "only 2 of the 3 pods that it needs exist")
        bench.put(C)
        await settle()
        story = story_of(bench, A)
    assert story is not None
    assert (story.problem, story.short, len(story.lacking)) == ("", 3, 3)


async def test_pods_of_no_gang_have_no_story() -> None:
    assert story_of(bench_with(), pod("web")) is None
    assert story_of(LoopBench(), member("a")) is None
    unsized = bench_with()
    unsized.put(member("a"))
    story = story_of(unsized, member("a"))
    assert story is not None
    assert story.problem.startswith("neither a PodGroup default/train nor an annotation")

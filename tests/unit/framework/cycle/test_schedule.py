from __future__ import annotations

import pytest

from podium.framework.contract.filter import PreFilterResult
from podium.framework.contract.post_filter import PostFilterResult
from podium.framework.contract.status import Code, Status, error_status, unresolvable, unschedulable
from podium.framework.cycle.schedule import DoesNotFit, Failed, Suggested
from podium.framework.cycle.search import Rotation
from tests.builders import node, pod, snapshot_of
from tests.unit.framework.profiles import (
    Recorder,
    cluster,
    decide,
    framework,
    node_filter,
    node_scorer,
    post_filter,
    pre_filter,
    raising,
)

NOTHING = node_filter("F", lambda name: unschedulable("no"))


def scores(**by_name: int):
    return node_scorer("S", lambda name: by_name.get(name, 0))


def not_fitting(*plugins, observer=None) -> DoesNotFit:
    decision = decide(framework(NOTHING, *plugins, observer=observer), pod(), cluster(3))
    assert isinstance(decision, DoesNotFit)
    return decision


def test_best_node_is_suggested():
    assert decide(framework(scores(n2=5)), pod(), cluster(4)) == Suggested("n2", 2, 4, 4)


def test_first_examined_of_equal_nodes_is_suggested():
    assert decide(framework(scores()), pod(), cluster(4), rotation=Rotation(3)).node_name == "n3"


def test_only_feasible_node_is_taken_without_scoring():
    but_one = node_filter("F", lambda name: None if name == "n1" else unschedulable("no"))
    never = node_scorer("S", raising(AssertionError("not asked")))
    assert decide(framework(but_one, never), pod(), cluster(4)) == Suggested("n1", 1, 4, 1)


def test_cluster_without_nodes_is_unresolvable_and_nobody_is_asked():
    never = post_filter("Post", raising(AssertionError("not asked")))
    decision = decide(framework(never), pod(), snapshot_of())
    assert isinstance(decision, Failed)
    assert decision.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert decision.status.message == "no nodes available to schedule pods"


@pytest.mark.parametrize(
    ("own", "node_count"),
    [(None, 120), (0, 144), (50, 150), (100, 300)],
)
def test_profiles_own_percentage_comes_before_the_general_one(own, node_count):
    profile = framework(scores(), percentage=own)
    assert decide(profile, pod(), cluster(300), percentage=40).feasible_nodes == node_count


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (node_filter("F", raising(OSError("x"))), 'running "F" filter plugin: OSError: x'),
        (pre_filter("P", raising(OSError("x"))), 'running PreFilter plugin "P": OSError: x'),
        (node_scorer("S", raising(OSError("x"))), 'running Score plugins: plugin "S" failed with: OSError: x'),
    ],
)
def test_failing_plugin_fails_the_attempt_with_its_name(plugin, message):
    never = post_filter("Post", raising(AssertionError("not asked")))
    decision = decide(framework(plugin, never), pod(), cluster(3))
    assert isinstance(decision, Failed)
    assert (decision.status.code, decision.status.message) == (Code.ERROR, message)


def test_same_attempt_twice_decides_the_same():
    plugins = (node_filter("F", lambda name: unschedulable("no") if name in "n1n7" else None), scores(n3=1, n9=1))
    first, second = (decide(framework(*plugins), pod(), cluster(128), rotation=Rotation(5)) for _ in range(2))
    assert first == second


# ---------------------------------------------------------------- PostFilter


def test_without_post_filters_an_earlier_nomination_is_taken_back():
    decision = not_fitting()
    assert decision.post_filter == PostFilterResult("")
    assert decision.error.message == "0/3 nodes are available: 3 no."


def test_pre_filter_rejection_reaches_the_post_filters():
    codes = []
    post_plugin = post_filter(
        "Post", lambda nodes_filtered: codes.extend(nodes_filtered.codes()) or (None, unschedulable("tried"))
    )
    rejecting = pre_filter("P", lambda: (None, unresolvable("hopeless")))
    decision = decide(framework(rejecting, post_plugin), pod(), snapshot_of(node("n0"), node("n1")))
    assert decision.error.message == "0/2 nodes are available: hopeless. tried"
    assert set(codes) == {int(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)}


def test_nodes_outside_of_the_named_ones_are_told_of():
    narrowing = pre_filter("P", lambda: (PreFilterResult(frozenset({"n1"})), None))
    decision = decide(framework(narrowing, NOTHING), pod(), cluster(3))
    assert decision.error.message == ("0/3 nodes are available: 1 no, 2 node(s) didn't satisfy plugin(s) [P].")


NODE_A, NODE_B = PostFilterResult("a"), PostFilterResult("b")
MISPLACED = 'running PostFilter plugin "P1": answered Skip (odd), which it may not'
KEEP, UNRESOLVABLE = (NODE_A, unschedulable("first")), (None, unresolvable("stop"))


@pytest.mark.parametrize(
    ("answers", "message", "result"),
    [
        # A success ends it, with that plugin's result and without a message.
        ([(NODE_B, None)], "", NODE_B),
        ([KEEP, (NODE_B, Status(Code.SUCCESS))], "", NODE_B),
        ([KEEP, (None, None)], "", None),
        # So does the answer that nothing will help, with its own message.
        ([KEEP, UNRESOLVABLE], "stop", None),
        ([KEEP, (NODE_B, unresolvable("stop"))], "stop", NODE_B),
        # So does an error, which leaves nominations alone.
        ([KEEP, (NODE_B, error_status("broken"))], "broken", None),
        (
            [KEEP, (None, Status(Code.SKIP, ("odd",)))],
            'running PostFilter plugin "P1": answered Skip (odd), which it may not',
            None,
        ),
        # Else all reasons are collected, and the last result that there was is kept.
        ([KEEP, (None, unschedulable("second", "third"))], "first, second, third", NODE_A),
        ([KEEP, (NODE_B, unschedulable("second"))], "first, second", NODE_B),
        ([KEEP, (NODE_B, Status(Code.PENDING, ("later",)))], "first, later", NODE_B),
        ([(None, unschedulable())], "", None),
    ],
)
def test_answers_of_post_filters_are_merged(answers, message, result):
    never = post_filter("Never", raising(AssertionError("not asked")))
    plugins = [
        post_filter(f"P{index}", lambda nodes_filtered, answer=answer: answer) for index, answer in enumerate(answers)
    ]
    _, last = answers[-1]
    goes_on = last is not None and last.code in (Code.UNSCHEDULABLE, Code.PENDING)
    decision = not_fitting(*plugins, *([] if goes_on else [never]))
    assert decision.error.post_filter_message == message
    assert decision.post_filter == result


def test_status_of_the_last_post_filter_is_observed():
    recorder = Recorder()
    not_fitting(post_filter("P", lambda nodes_filtered: (None, unschedulable("x"))), observer=recorder)
    assert recorder.points[-1] == ("PostFilter", "Unschedulable")


@pytest.mark.parametrize(
    "answer", [raising(OSError("broken")), lambda nodes_filtered: None, lambda nodes_filtered: (None, False)]
)
def test_failing_post_filter_leaves_the_pod_not_fitting(answer):
    decision = not_fitting(post_filter("Bad", answer))
    assert decision.error.post_filter_message.startswith('running PostFilter plugin "Bad": ')
    assert decision.error.message.startswith("0/3 nodes are available: 3 no. running PostFilter")
    assert decision.post_filter is None

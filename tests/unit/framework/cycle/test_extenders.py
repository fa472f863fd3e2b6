from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from podium.config import Extender, ExtenderManagedResource
from podium.framework.contract.post_filter import AskingPostFilterPlugin, PostFilterResult
from podium.framework.contract.questions import (
    AskFilter,
    AskPreempt,
    AskPrioritize,
    ExtenderFailed,
    Filtered,
    Preemptable,
    Scored,
    Victims,
    name_of,
)
from podium.framework.contract.status import Code, error_status, unresolvable, unschedulable
from podium.framework.contract.steps import run_unasked
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.cycle.extenders import EXTENDER, NO_EXTENDERS, Extenders, choose_among_scored, narrow_by_extenders
from podium.framework.cycle.schedule import Decision, DoesNotFit, Failed, Suggested, attempt
from podium.framework.cycle.scoring import choose
from podium.framework.cycle.search import Rotation
from podium.framework.profile.rejection import Rejection
from podium.queues import Nominator
from tests.builders import node, pod, snapshot_of
from tests.unit.framework.profiles import (
    Built,
    Recorder,
    cluster,
    framework,
    node_filter,
    node_scorer,
    post_filter,
    raising,
)

FILTERS = Extender("http://f", filter_verb="filter")
SCORES = Extender("http://s", prioritize_verb="prioritize", weight=1)
PREEMPTS = Extender("http://p", preempt_verb="preempt")
IGNORABLE = Extender("http://i", filter_verb="filter", preempt_verb="preempt", ignorable=True)
EVEN = node_scorer("S", lambda name: 0)


def passing(*names: str, failures: Any = None, unresolvable: Any = None) -> Filtered:
    return Filtered(names, failures or {}, unresolvable or {})


class Attempt:
    """One attempt, its questions answered by `answer`; `questions` are those that came."""

    def __init__(self, answer: Callable[[Any], Any], *extenders: Extender, profile: Any = None, **options: Any) -> None:
        self.questions: list[Any] = []
        self._answer = answer
        self.rotation = options.get("rotation") or Rotation()
        self._steps = attempt(
            Cycle(
                profile or framework(EVEN),
                options.get("pod") or pod(),
                options.get("snapshot") or cluster(4),
                Nominator({}.get),
            ),
            self.rotation,
            0,
            Extenders(extenders, options.get("random") or Random(1)),
        )

    def run(self) -> Decision:
        try:
            question = next(self._steps)
            while True:
                self.questions.append(question)
                question = self._steps.send(self._answer(question))
        except StopIteration as end:
            decision: Decision = end.value
            return decision

    @property
    def nodes_asked(self) -> list[tuple[str, list[str]]]:
        return [(question.extender.url_prefix, [node.name for node in question.nodes]) for question in self.questions]


def no_fit(decision: Decision) -> DoesNotFit:
    assert isinstance(decision, DoesNotFit)
    return decision


def never(question: Any) -> Any:
    raise AssertionError(f"not to be asked: {question}")


# ---------------------------------------------------------------- who is asked


def test_extenders_that_may_be_ignored_are_asked_last():
    idle_extender = Extender("http://o")
    assert list(Extenders((IGNORABLE, FILTERS, idle_extender), Random())) == [FILTERS, idle_extender, IGNORABLE]


@pytest.mark.parametrize(
    "item",
    [
        pod(requests={"a.io/x": "1"}),
        pod(spec={"containers": [{"name": "c", "resources": {"limits": {"a.io/x": "1"}}}]}),
        pod(spec={"initContainers": [{"name": "c", "resources": {"limits": {"a.io/x": "1"}}}]}),
    ],
)
def test_managing_extender_is_asked_about_pods_that_name_its_resource(item):
    managing = Extender("http://m", managed_resources=(ExtenderManagedResource("a.io/x"),))
    extenders = Extenders((managing, FILTERS), Random())
    assert extenders.interested_in(item) == [managing, FILTERS]
    assert extenders.interested_in(pod(cpu="1")) == [FILTERS]


def test_extender_that_nobody_needs_to_ask_leaves_the_attempt_to_the_plugins():
    managing = Extender("http://m", "filter", managed_resources=(ExtenderManagedResource("a.io/x"),))
    assert Attempt(never, managing).run() == Suggested("n0", 0, 4, 4)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://ann:secret@host:80/path", "http://host:80/path"),
        ("https://host/?token=secret", "https://host/"),
        ("http://host", "http://host"),
    ],
)
def test_extender_is_named_by_its_url_without_secrets(url, name):
    assert name_of(Extender(url)) == name


# ---------------------------------------------------------------- filter


def test_each_extender_is_asked_about_what_those_before_it_have_left():
    answers = {"http://f": passing("n1", "n2", "n3"), "http://i": passing("n3")}
    attempt = Attempt(lambda question: answers[question.extender.url_prefix], IGNORABLE, FILTERS)
    assert attempt.run() == Suggested("n3", 3, 1, 1)
    assert attempt.nodes_asked == [("http://f", ["n0", "n1", "n2", "n3"]), ("http://i", ["n1", "n2", "n3"])]


def test_order_in_which_an_extender_answers_breaks_ties_of_nodes_without_scores():
    both_extender = Extender("http://b", filter_verb="filter", prioritize_verb="prioritize", weight=1)
    answers = {AskFilter: passing("n2", "n0"), AskPrioritize: Scored([ExtenderFailed(both_extender, "x")])}
    assert Attempt(lambda question: answers[type(question)], both_extender).run() == Suggested("n2", 2, 2, 2)


def test_nodes_that_the_plugins_rejected_are_not_asked_about():
    but_two = node_filter("F", lambda name: None if name in ("n1", "n3") else unschedulable("no"))
    attempt = Attempt(lambda _: passing("n3"), FILTERS, profile=framework(but_two, EVEN))
    assert attempt.run() == Suggested("n3", 3, 3, 1)
    assert attempt.nodes_asked == [("http://f", ["n1", "n3"])]


def test_no_extender_is_asked_where_no_node_is_left():
    nothing = node_filter("F", lambda name: unschedulable("no"))
    attempt = Attempt(never, FILTERS, profile=framework(nothing))
    assert no_fit(attempt.run()).error.diagnosis.unschedulable_plugins == {"F"}
    attempt = Attempt(lambda _: passing(), FILTERS, IGNORABLE)
    assert no_fit(attempt.run()).error.diagnosis.unschedulable_plugins == {EXTENDER}
    assert len(attempt.questions) == 1


def test_reasons_of_an_extender_are_in_the_message_and_final_ones_go_before_others():
    answer = passing(failures={"n0": "busy", "n1": "busy", "n2": "busy"}, unresolvable={"n2": "too old"})
    decision = no_fit(Attempt(lambda _: answer, FILTERS).run())
    assert decision.error.message == "0/4 nodes are available: 1 too old, 2 busy."
    diagnosis = decision.error.diagnosis
    unsaid = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert diagnosis.codes()[:4].tolist() == [Code.UNSCHEDULABLE, Code.UNSCHEDULABLE, unsaid, unsaid]


def test_what_an_extender_says_of_nodes_it_was_not_asked_about_overrules_the_plugins():
    but_one = node_filter("F", lambda name: None if name == "n0" else unschedulable("no"))
    answer = passing(failures={"n0": "busy", "gone": "x"}, unresolvable={"n1": "too old"})
    decision = no_fit(Attempt(lambda _: answer, FILTERS, profile=framework(but_one)).run())
    assert decision.error.message == "0/4 nodes are available: 1 busy, 1 too old, 2 no."


def test_failing_extender_fails_the_attempt_with_its_name():
    decision = Attempt(lambda question: ExtenderFailed(question.extender, "code 500"), FILTERS).run()
    assert isinstance(decision, Failed)
    assert (decision.status.code, decision.status.message) == (Code.ERROR, 'extender "http://f": code 500')


def test_failing_extender_that_may_be_ignored_leaves_the_nodes():
    decision = Attempt(lambda question: ExtenderFailed(question.extender, "x"), IGNORABLE).run()
    assert isinstance(decision, Suggested)
    assert decision.feasible_nodes == 4


def test_rotation_moves_on_by_what_the_plugins_have_looked_at():
    attempt = Attempt(lambda _: passing("n0"), FILTERS, profile=framework(EVEN), snapshot=cluster(300))
    attempt.run()
    assert attempt.rotation.next_start == 144


def test_without_scoring_plugins_all_nodes_are_looked_for_if_extenders_have_a_say():
    assert Attempt(lambda _: passing("n2"), FILTERS, profile=framework()).run() == Suggested("n2", 2, 1, 1)
    assert Attempt(never, PREEMPTS, profile=framework()).run() == Suggested("n0", 0, 1, 1)


def test_nominated_node_is_the_only_one_asked_about_if_the_extender_agrees():
    attempt = Attempt(lambda _: passing("n2"), FILTERS, pod=pod(nominated="n2"))
    assert attempt.run() == Suggested("n2", 2, 1, 1)
    assert attempt.nodes_asked == [("http://f", ["n2"])]


@pytest.mark.parametrize("fails", [True, False])
def test_all_nodes_are_asked_about_where_the_nominated_one_is_turned_down(fails):
    def answer(question: AskFilter) -> Any:
        if len(question.nodes) > 1:
            return passing("n1")
        return ExtenderFailed(question.extender, "x") if fails else passing(failures={"n2": "busy"})

    attempt = Attempt(answer, FILTERS, pod=pod(nominated="n2"))
    assert attempt.run() == Suggested("n1", 1, 2 - fails, 1)
    assert [len(names) for _, names in attempt.nodes_asked] == [1, 4]


def test_answer_with_a_node_that_was_not_asked_about_is_an_error():
    question = AskFilter(FILTERS, pod(), [node("n0")])
    assert question.accept(["n0", "n9"], {}, {}) == ExtenderFailed(
        FILTERS, 'claims a filtered node "n9" which is not found in the input node list'
    )


def test_node_that_is_named_twice_counts_once():
    assert AskFilter(FILTERS, pod(), [node("n0"), node("n1")]).accept(["n1", "n1"], {}, {}) == passing("n1")


# ---------------------------------------------------------------- prioritize


def test_all_scoring_extenders_are_asked_at_once_and_their_scores_are_added_with_their_weights():
    liking_n1 = node_scorer("S", lambda name: 50 if name == "n1" else 0)
    second_extender = Extender("http://t", prioritize_verb="p", weight=2)
    attempt = Attempt(
        lambda _: Scored([[("n0", 3), ("n2", 3)], [("n2", 2), ("elsewhere", 10)]]),
        SCORES,
        second_extender,
        profile=framework(liking_n1, weights={"S": 1}),
    )
    # n1: 50 by the plugin; n0: 30; n2: 30 and 2 * 2 * 10
    assert attempt.run() == Suggested("n2", 2, 4, 4)
    [question] = attempt.questions
    assert (question.extenders, [node.name for node in question.nodes]) == (
        [SCORES, second_extender],
        ["n0", "n1", "n2", "n3"],
    )


def test_failing_score_of_an_extender_is_ignored():
    attempt = Attempt(
        lambda question: Scored([ExtenderFailed(SCORES, "x")]),
        SCORES,
        profile=framework(node_scorer("S", lambda name: 1 if name == "n3" else 0), weights={"S": 1}),
    )
    assert attempt.run() == Suggested("n3", 3, 4, 4)


def test_only_node_left_is_not_scored():
    def answer(question: Any) -> Any:
        assert isinstance(question, AskFilter), question
        return passing("n1")

    assert Attempt(answer, FILTERS, SCORES).run() == Suggested("n1", 1, 1, 1)


def test_equal_nodes_that_an_extender_has_scored_take_turns_by_chance():
    def winner(seed: int) -> str:
        decision = Attempt(lambda _: Scored([[("n1", 0), ("n3", 0)]]), SCORES, random=Random(seed)).run()
        assert isinstance(decision, Suggested)
        return decision.node_name

    assert {winner(seed) for seed in range(20)} == {"n1", "n3"}


def test_interested_extender_without_scores_makes_ties_chance_too():
    def winner(seed: int) -> str:
        attempt = Attempt(
            lambda question: passing(*[node.name for node in question.nodes]), FILTERS, random=Random(seed)
        )
        decision = attempt.run()
        assert isinstance(decision, Suggested)
        return decision.node_name

    assert {winner(seed) for seed in range(40)} == {"n0", "n1", "n2", "n3"}


def test_score_that_cannot_be_added_up_is_an_error():
    heavy = Extender("http://h", prioritize_verb="p", weight=1 << 40)
    assert AskPrioritize.accept(heavy, [("n0", 1)]) == [("n0", 1)]
    assert AskPrioritize.accept(heavy, [("n0", 1 << 30)]) == ExtenderFailed(
        heavy, f'score {1 << 30} of node "n0" is out of range'
    )


def test_chance_chooses_only_among_the_best_that_were_scored():
    total = np.array([1, 2, 2, 2])
    assert choose_among_scored(np.array([True, False, True, False]), Random(1), total) == 2


def test_if_no_extender_has_scored_any_of_the_best_they_are_chosen_from_as_without_extenders():
    total = np.array([1, 2, 2, 2])
    assert choose_among_scored(np.array([True, False, False, False]), Random(1), total) == choose(total)


# ---------------------------------------------------------------- preempt

CLUSTER = snapshot_of(
    node("n0"),
    node("n1"),
    *(pod(f"v{index}", uid=f"u{index}", node=f"n{index % 2}") for index in range(4)),
)
VICTIMS = {f"v{index}": CLUSTER.pods[CLUSTER.row_of[f"n{index % 2}"]][f"u{index}"] for index in range(4)}
CANDIDATES = {
    "n0": Victims((VICTIMS["v0"], VICTIMS["v2"]), 1),
    "n1": Victims((VICTIMS["v1"],), 0),
}


def ask(extender: Extender) -> AskPreempt:
    return AskPreempt(extender, pod(), CANDIDATES, CLUSTER)


def test_answer_of_an_extender_says_who_goes_by_uid():
    assert ask(PREEMPTS).accept({"n0": (["u2"], 1)}) == Preemptable({"n0": Victims((VICTIMS["v2"],), 1)})


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ({"n9": (["u0"], 0)}, 'claims to make room on node "n9", which is not found'),
        (
            {"n0": (["u0", "u1"], 0)},
            "claims to preempt pod (UID: u1) on node: n0, but the pod is not found on that node",
        ),
        ({"n0": ([], 0)}, 'expected at least one victim pod on node "n0"'),
    ],
)
def test_answer_about_victims_that_makes_no_sense_is_an_error(answer, detail):
    assert ask(PREEMPTS).accept(answer) == ExtenderFailed(PREEMPTS, detail)


def test_node_without_victims_is_dropped_where_the_extender_may_be_ignored():
    answer = {"n0": ([], 0), "n1": (["u1"], 0)}
    assert ask(IGNORABLE).accept(answer) == Preemptable({"n1": CANDIDATES["n1"]})


AGREES = {"n1": CANDIDATES["n1"]}


def narrow(answer: Callable[[AskPreempt], Any], *extenders: Extender) -> tuple[Any, list[AskPreempt]]:
    steps, questions = narrow_by_extenders(extenders, pod(), CLUSTER, CANDIDATES), []
    try:
        question = next(steps)
        while True:
            assert isinstance(question, AskPreempt)
            questions.append(question)
            question = steps.send(answer(question))
    except StopIteration as end:
        return end.value, questions


def test_each_extender_is_shown_the_candidates_that_the_one_before_has_left():
    remaining = {"n1": CANDIDATES["n1"]}
    result, questions = narrow(lambda question: Preemptable(remaining), PREEMPTS, FILTERS, IGNORABLE)
    assert result == remaining
    assert [question.candidates for question in questions] == [CANDIDATES, remaining]


def test_nobody_is_asked_about_candidates_once_none_is_left():
    result, questions = narrow(lambda question: Preemptable({}), PREEMPTS, IGNORABLE)
    assert (result, len(questions)) == ({}, 1)


def test_failing_extender_that_may_be_ignored_leaves_the_candidates():
    result, _ = narrow(lambda question: ExtenderFailed(question.extender, "x"), IGNORABLE)
    assert result == CANDIDATES


class Asks(Built, AskingPostFilterPlugin):
    """Makes room where the extenders agree."""

    def post_filter_asking(self, state, pod, snapshot, nodes_filtered, extenders):
        agreed = yield from narrow_by_extenders(extenders, pod, snapshot, CANDIDATES)
        return PostFilterResult(next(iter(agreed)), ()), None


NOTHING = node_filter("F", lambda name: unresolvable("no"))


def making_room(answer: Any, *plugins: Any, observer: Recorder | None = None) -> PostFilterResult | None:
    """What PostFilter comes to where no node fits, with an extender that answers so."""
    profile = framework(NOTHING, *plugins, observer=observer)
    return no_fit(Attempt(answer, PREEMPTS, profile=profile, snapshot=CLUSTER).run()).post_filter


def test_post_filter_that_asks_is_answered():
    assert making_room(lambda _: Preemptable(AGREES), Asks) == PostFilterResult("n1", ())


def test_post_filter_that_asks_runs_alone_where_there_are_no_extenders():
    decision = no_fit(Attempt(never, profile=framework(NOTHING, Asks), snapshot=CLUSTER).run())
    assert decision.post_filter == PostFilterResult("n0", ())


def test_post_filter_that_fails_while_it_asks_is_told_of_by_name():
    observer = Recorder()
    assert making_room(lambda _: Preemptable({}), Asks, observer=observer) is None
    assert [failure[:2] for failure in observer.failures] == [("Asks", "PostFilter")]


def test_post_filters_that_do_not_ask_run_as_ever_beside_extenders():
    post_filter_result = PostFilterResult("n1")
    assert (
        making_room(never, post_filter("Post", lambda nodes_filtered: (post_filter_result, None))) == post_filter_result
    )
    assert making_room(never, post_filter("Post", raising(OSError("x")))) is None


# ---------------------------------------------------------------- the rest


def test_question_that_nobody_answers_is_a_mistake():
    with pytest.raises(AssertionError, match="have to be asked"):
        run_unasked(narrow_by_extenders([PREEMPTS], pod(), CLUSTER, CANDIDATES))


def test_no_extenders_is_false():
    assert not NO_EXTENDERS
    assert list(NO_EXTENDERS) == []
    assert Extenders((FILTERS,), Random())


def test_overruled_row_counts_once():
    diagnosis = Diagnosis(4)
    diagnosis.reject(Rejection.of(np.array([0, 1]), np.array([1, 1]), lambda _: unschedulable("no")))
    diagnosis.overrule(1, unresolvable("never"))
    diagnosis.overrule(0, error_status("x"))
    assert (diagnosis.rejected_count, diagnosis.rejections) == (2, [])
    assert diagnosis.reasons(4) == {"never": 1, "x": 1}

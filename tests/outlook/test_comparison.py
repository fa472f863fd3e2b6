"""What holds of an answer about one of several pods that are alike."""

from __future__ import annotations

from podium.insight.outlook import PodOutlook, Verdict
from podium.insight.pod_ends import PodEnd
from tests.outlook.comparison import Binding, Play, faults_of, pair_up
from tests.virtual_time import START_S

_NAMES = ("member-0", "member-1")
_OUTLOOKS = (
    PodOutlook("default/member-0", Verdict.LATER, node="node-0", by_s=START_S + 60),
    PodOutlook(
        "default/member-1", Verdict.LATER, ends=[PodEnd("default/member-0", "node-0", "it ends")], nodes=["node-0"]
    ),
)


def play_of(second_staying: frozenset[str]) -> Play:
    """The second member goes first, and the first one comes to its node in the first phase after all known ends."""
    bindings = {
        "member-1": Binding("node-0", 60.0, frozenset({"member-1"})),
        "member-0": Binding("node-0", 210.0, second_staying),
    }
    return Play(bindings, phase_ends_s=[200.0, 250.0])


def test_an_answer_about_a_pod_after_another_that_is_alike_holds_whichever_of_them_goes_first() -> None:
    play = play_of(frozenset({"member-0"}))
    answers = pair_up(_NAMES, _OUTLOOKS, play)
    assert [end.pod for end in answers["member-0"].ends] == ["default/member-1"]
    assert faults_of(answers, play) == {}


def test_an_answer_about_a_pod_after_another_that_is_alike_fails_if_that_one_stays() -> None:
    play = play_of(frozenset({"member-0", "member-1"}))
    faults = faults_of(pair_up(_NAMES, _OUTLOOKS, play), play)
    assert "default/member-1 stayed" in faults["member-0"]

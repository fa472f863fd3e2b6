from __future__ import annotations

import pytest

from podium.config import ConfigError
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.status import SKIP, Code, PluginError, Status, error_status, unschedulable
from podium.framework.profile.runtime import MEASURED_EVERY, PERMIT_TIMEOUT_S_MAX
from podium.lib.error_text import error_text
from tests.builders import pod
from tests.unit.framework.profiles import (
    Recorder,
    framework,
    node_filter,
    node_scorer,
    permit,
    raising,
    reserve,
)

STATE, POD = CycleState(), pod()
WAIT = Status(Code.WAIT)


class Journal:
    """Reserve plugins that note what is asked of them, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def plugin(self, name: str, answer: Status | Exception | None = None, undo_error: Exception | None = None):
        def reserving():
            self.lines.append(f"reserve {name}")
            if isinstance(answer, Exception):
                raise answer
            return answer

        def unreserving():
            self.lines.append(f"unreserve {name}")
            if undo_error is not None:
                raise undo_error

        return reserve(name, reserving, unreserving)


@pytest.fixture
def journal() -> Journal:
    return Journal()


def test_plugins_run_in_the_order_of_the_profile():
    runtime = framework(*(node_filter(name, lambda node: None) for name in ("B", "A", "C")))
    assert [plugin.name for plugin in runtime.filters] == ["B", "A", "C"]
    assert set(runtime.plugins) == {"Sort", "Bind", "A", "B", "C"}
    assert runtime.queue_sort.name == "Sort"
    assert [plugin.name for plugin in runtime.bind] == ["Bind"]


def test_plugins_get_their_args_and_the_handle():
    runtime = framework(node_filter("F", lambda node: None))
    assert runtime.plugins["F"].args is None
    assert runtime.plugins["F"].handle.clock is runtime.clock


def test_scorers_have_the_weights_of_the_profile_and_one_otherwise():
    plugins = [node_scorer(name, lambda node: 0) for name in ("S", "T")]
    assert [(scorer.name, weight) for scorer, weight in framework(*plugins, weights={"S": 5}).scorers] == [
        ("S", 5),
        ("T", 1),
    ]


@pytest.mark.parametrize("error", [TypeError("no"), ValueError("no"), PluginError("no"), KeyError("no")])
def test_plugin_that_cannot_be_built_is_named(error):
    refusing = node_filter("Picky", lambda node: None, __init__=raising(error))
    with pytest.raises(PluginError) as refusal:
        framework(refusing)
    words = f'creating profile for scheduler name podium: initializing plugin "Picky": {error_text(error)}'
    assert str(refusal.value) == words


def test_two_queue_sorts_are_refused():
    from podium.framework.contract.plugin import QueueSortPlugin
    from tests.unit.framework.profiles import Built

    second_sort = type("Other", (Built, QueueSortPlugin), {"less": lambda self, a, b: True})
    with pytest.raises(ConfigError, match="only one queue sort plugin"):
        framework(second_sort)


# ---------------------------------------------------------------- reserve


def test_reserve_runs_in_order_and_unreserve_in_reverse(journal):
    runtime = framework(journal.plugin("A"), journal.plugin("B"))
    assert runtime.run_reserve(STATE, POD, "n1") is None
    runtime.run_unreserve(STATE, POD, "n1")
    assert journal.lines == ["reserve A", "reserve B", "unreserve B", "unreserve A"]


def test_first_rejection_stops_reserve_and_names_the_plugin(journal):
    runtime = framework(journal.plugin("A"), journal.plugin("B", unschedulable("full")), journal.plugin("C"))
    assert runtime.run_reserve(STATE, POD, "n1") == unschedulable("full").by("B")
    assert journal.lines == ["reserve A", "reserve B"]


def test_unreserve_runs_every_plugin_even_those_that_were_not_asked_and_those_that_fail(journal):
    recorder = Recorder()
    runtime = framework(
        journal.plugin("A"), journal.plugin("B", undo_error=OSError("x")), journal.plugin("C"), observer=recorder
    )
    runtime.run_unreserve(STATE, POD, "n1")
    assert journal.lines == ["unreserve C", "unreserve B", "unreserve A"]
    assert recorder.points == [("Unreserve", "Error")]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (OSError("disk full"), "OSError: disk full"),
        (error_status("disk full"), "disk full"),
        (Status(Code.SKIP, ("disk full",)), "answered Skip (disk full), which it may not"),
    ],
)
def test_reserve_that_neither_succeeds_nor_rejects_is_an_error(journal, answer, words):
    recorder = Recorder()
    status = framework(journal.plugin("A", answer), observer=recorder).run_reserve(STATE, POD, "n1")
    assert (status.code, status.message, status.plugin) == (
        Code.ERROR,
        f'running Reserve plugin "A": {words}',
        "A",
    )
    assert recorder.points == [("Reserve", "Error")]


# ---------------------------------------------------------------- permit


def test_permit_of_all_lets_the_pod_through():
    result = framework(permit("A", lambda: (None, 0.0)), permit("B", lambda: (Status(Code.SUCCESS), 9.0))).run_permit(
        STATE, POD, "n1"
    )
    assert (result.status, result.waits) == (None, {})


def test_waits_are_collected_and_none_is_longer_than_fifteen_minutes():
    recorder = Recorder()
    runtime = framework(
        permit("Short", lambda: (WAIT, 2.5)),
        permit("Through", lambda: (None, 0.0)),
        permit("Long", lambda: (WAIT, 1e9)),
        observer=recorder,
    )
    result = runtime.run_permit(STATE, POD, "n1")
    assert result.status is None
    assert result.waits == {"Short": 2.5, "Long": PERMIT_TIMEOUT_S_MAX}
    assert PERMIT_TIMEOUT_S_MAX == 900
    assert recorder.points == [("Permit", "Wait")]


def test_later_rejection_wins_over_a_wait_and_stops():
    never = permit("Never", raising(AssertionError("not asked")))
    result = framework(permit("A", lambda: (WAIT, 5.0)), permit("B", lambda: (unschedulable("no"), 0.0)), never)
    answer = result.run_permit(STATE, POD, "n1")
    assert answer.status == unschedulable("no").by("B")
    assert answer.waits == {}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (raising(OSError("broken")), "OSError: broken"),
        (lambda: (error_status("broken"), 0.0), "broken"),
        (lambda: (Status(Code.SKIP, ("broken",)), 0.0), "answered Skip (broken), which it may not"),
    ],
)
def test_failing_permit_is_an_error_that_names_the_plugin(answer, words):
    status = framework(permit("A", answer)).run_permit(STATE, POD, "n1").status
    assert (status.code, status.message, status.plugin) == (Code.ERROR, f'running Permit plugin "A": {words}', "A")


@pytest.mark.parametrize("answer", [(WAIT, None), (WAIT,), None])
def test_permit_answer_of_the_wrong_shape_is_an_error(answer):
    status = framework(permit("A", lambda: answer)).run_permit(STATE, POD, "n1").status
    assert status.code is Code.ERROR
    assert status.message.startswith('running Permit plugin "A": ')


@pytest.mark.parametrize("answer", [False, SKIP.code, "no"])
def test_answer_that_is_no_status_is_an_error(journal, answer):
    status = framework(journal.plugin("A", answer)).run_reserve(STATE, POD, "n1")
    assert status.code is Code.ERROR
    assert status.message == f'running Reserve plugin "A": answered {answer!r}, which is not a Status'


def test_extension_points_are_timed_by_the_injected_clock():
    recorder = Recorder()
    runtime = framework(reserve("Slow", lambda: runtime.clock.advance(3)), observer=recorder)
    runtime.run_reserve(STATE, POD, "n1")
    assert recorder.points == [("Reserve", "Success")]
    assert recorder.seconds == [3]


def test_plugins_are_measured_one_by_one_in_one_attempt_of_ten():
    recorder = Recorder()
    runtime = framework(reserve("Good", lambda: None), reserve("Bad", raising(ValueError("no"))), observer=recorder)
    measured = []
    for _ in range(2 * MEASURED_EVERY):
        measured.append(runtime.begin_attempt())
        runtime.run_reserve(STATE, POD, "n1")
    assert sum(measured) == 2
    assert recorder.measured == [("Good", "Reserve", "Success"), ("Bad", "Reserve", "Error")] * 2

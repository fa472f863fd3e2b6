from __future__ import annotations

import numpy as np
import pytest

from podium.framework.contract.status import Code, Status, unresolvable, unschedulable
from podium.framework.cycle.diagnosis import Diagnosis, FitError, rejected_on
from podium.framework.profile.rejection import Rejection

CPU = unschedulable("Insufficient cpu").by("Fit")
BOTH = unschedulable("Insufficient cpu", "Insufficient memory").by("Fit")
TAINT = unresolvable("node(s) had untolerated taint(s)").by("Taints")


def rejection(verdicts: dict[int, int], *meanings: Status) -> Rejection:
    return Rejection.of(
        np.array(list(verdicts), np.intp),
        np.array(list(verdicts.values()), np.int64),
        lambda verdict: meanings[verdict - 1],
    )


def message(diagnosis: Diagnosis, node_count: int, post_filter: str = "") -> str:
    return FitError(node_count, diagnosis, post_filter).message


def test_reasons_are_counted_by_node_and_sorted_as_text():
    diagnosis = Diagnosis(table_size=16)
    diagnosis.reject(rejection({0: 1, 1: 1}, TAINT))
    diagnosis.reject(rejection(dict.fromkeys(range(2, 12), 1), CPU))
    assert message(diagnosis, 12) == (
        "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) had untolerated taint(s)."
    )


def test_shared_rejection_of_all_nodes_gives_each_attempt_its_own_text():
    rejection_of_all = rejection(dict.fromkeys(range(3), 1), CPU)
    alike, alone, fewer, larger = (Diagnosis(table_size=4) for _ in range(4))
    for diagnosis in (alike, alone, fewer, larger):
        diagnosis.reject(rejection_of_all)
    alone.overrule(1, TAINT)
    larger.reject(rejection({3: 1}, TAINT))
    cpu = "0/3 nodes are available: 3 Insufficient cpu."
    assert [message(alike, 3), message(alike, 3, "No help.")] == [cpu, f"{cpu} No help."]
    assert message(alone, 3) == "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
    assert message(larger, 4) == "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient cpu."
    fewer.absent = TAINT
    assert message(fewer, 4) == "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient cpu."


def test_node_with_several_reasons_counts_for_each():
    diagnosis = Diagnosis(table_size=4)
    diagnosis.reject(rejection({0: 1, 1: 2, 2: 2}, CPU, BOTH))
    assert message(diagnosis, 3) == "0/3 nodes are available: 2 Insufficient memory, 3 Insufficient cpu."


def test_same_reason_of_two_plugins_is_one_entry():
    diagnosis = Diagnosis(table_size=4)
    diagnosis.reject(rejection({0: 1}, CPU))
    diagnosis.reject(rejection({1: 1}, CPU.by("Other")))
    diagnosis.reject_one(2, CPU)
    assert message(diagnosis, 3) == "0/3 nodes are available: 3 Insufficient cpu."
    assert diagnosis.unschedulable_plugins == {"Fit", "Other"}


def test_nodes_without_a_status_of_their_own_count_with_the_absent_one():
    diagnosis = Diagnosis(table_size=8, absent=unresolvable("not asked", "nor wanted"))
    diagnosis.reject(rejection({0: 1}, CPU))
    assert message(diagnosis, 6) == "0/6 nodes are available: 1 Insufficient cpu, 5 nor wanted, 5 not asked."


def test_default_absent_status_says_nothing():
    assert message(Diagnosis(table_size=8), 6) == "0/6 nodes are available:"


def test_pre_filter_message_stands_alone():
    diagnosis = Diagnosis(table_size=4, pre_filter_message="no such claim", absent=unresolvable("no such claim"))
    assert message(diagnosis, 3, "preemption: no help.") == (
        "0/3 nodes are available: no such claim. preemption: no help."
    )


def test_post_filter_message_follows_without_a_period_of_its_own():
    diagnosis = Diagnosis(table_size=1)
    diagnosis.reject(rejection({0: 1}, CPU))
    assert message(diagnosis, 1, "tried") == "0/1 nodes are available: 1 Insufficient cpu. tried"


def test_status_of_every_row_by_row():
    diagnosis = Diagnosis(table_size=6, absent=unschedulable("absent"))
    diagnosis.reject(rejection({4: 2, 1: 1}, CPU, TAINT))
    diagnosis.reject_one(3, BOTH)
    assert diagnosis.statuses() == {1: CPU, 4: TAINT, 3: BOTH}
    assert [diagnosis.status(row) for row in (1, 3, 4, 5)] == [CPU, BOTH, TAINT, unschedulable("absent")]
    assert diagnosis.codes().tolist() == [2, 2, 2, 2, 3, 2]
    assert diagnosis.rejected_count == 3


def test_nodes_of_one_code_are_counted_with_those_that_have_no_entry():
    diagnosis = Diagnosis(table_size=6, absent=unschedulable("absent"))
    diagnosis.reject(rejection({4: 2, 1: 1}, CPU, TAINT))
    diagnosis.reject_one(3, BOTH)
    assert diagnosis.count(Code.UNSCHEDULABLE, 5) == diagnosis.codes()[:5].tolist().count(Code.UNSCHEDULABLE)
    assert diagnosis.count(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, 5) == 1


def test_codes_without_any_rejection_are_the_absent_ones():
    assert Diagnosis(table_size=2).codes().tolist() == [3, 3]


def test_row_rejected_alone_and_again_in_the_search_counts_once():
    diagnosis = Diagnosis(table_size=4)
    diagnosis.reject_one(1, CPU)
    diagnosis.reject_one(2, CPU)
    diagnosis.reject(rejection({0: 1, 1: 1}, TAINT))
    assert diagnosis.rejected_count == 3
    assert diagnosis.status(1) == TAINT
    assert message(diagnosis, 3) == ("0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s).")
    assert diagnosis.unschedulable_plugins == {"Fit", "Taints"}


@pytest.mark.parametrize("is_alone", [True, False])
def test_pending_plugins_are_kept_apart(is_alone):
    diagnosis = Diagnosis(table_size=4)
    pending = Status(Code.PENDING, ("wait",), "Devices")
    if is_alone:
        diagnosis.reject_one(0, pending)
    else:
        diagnosis.reject(rejection({0: 1}, pending))
    diagnosis.reject_one(1, Status(Code.UNSCHEDULABLE))
    assert diagnosis.pending_plugins == {"Devices"}
    assert diagnosis.unschedulable_plugins == set()


def test_cutting_a_rejection_keeps_the_rows_asked_for():
    cut = rejection({5: 2, 7: 1, 9: 2}, CPU, TAINT).only(np.array([True, True, False]))
    assert cut.rows.tolist() == [5, 7]
    assert sorted(cut.status_counts(), key=lambda entry: entry[0].message) == [(CPU, 1), (TAINT, 1)]
    none_pending = rejection({5: 2, 7: 1}, CPU, TAINT).only(np.array([False, True]))
    assert none_pending.status_counts() == [(CPU, 1)]


def test_meaning_of_a_verdict_is_asked_for_once():
    codes_asked: list[int] = []

    def explain(verdict: int) -> Status:
        codes_asked.append(verdict)
        return CPU

    diagnosis = Diagnosis(table_size=4)
    diagnosis.reject(Rejection.of(np.arange(4), np.array([1, 1, 2, 2]), explain))
    message(diagnosis, 4)
    diagnosis.statuses()
    assert sorted(codes_asked) == [1, 2]


def test_rejection_after_the_choice_reads_as_if_there_were_one_node():
    error = rejected_on(7, unschedulable("full").by("B"))
    assert error.message == "0/1 nodes are available: 1 full."
    assert error.diagnosis.unschedulable_plugins == {"B"}
    assert error.diagnosis.status(7) == unschedulable("full").by("B")

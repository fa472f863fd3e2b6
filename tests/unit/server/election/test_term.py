from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from podium.lib.clock import ManualClock
from podium.lib.state_table import InvalidTransition
from podium.server.election import LeaseRecord, LeaseState, Term, Timings

TIMINGS = Timings(15.0, 10.0, 2.0)
OTHER = LeaseRecord("other", 15.0, "a", "r0", 3)


def leading(clock: ManualClock) -> Term:
    term = Term("me", TIMINGS, clock)
    term.wrote(term.claim(), clock.monotonic())
    return term


def test_a_lease_nobody_has_made_is_claimed_as_its_first() -> None:
    record = Term("me", TIMINGS, ManualClock(1_700_000_000.0)).claim()
    assert record.spec() == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2023-11-14T22:13:20.000000Z",
        "renewTime": "2023-11-14T22:13:20.000000Z",
        "leaseTransitions": 0,
    }


def test_a_renewal_changes_the_renew_time_only() -> None:
    clock = ManualClock()
    term = leading(clock)
    first = term.claim()
    clock.advance(2.0)
    second = term.claim()
    assert second == replace(first, renew_time=second.renew_time)
    assert second.renew_time > first.renew_time


def test_a_lease_of_another_is_taken_only_after_it_has_not_changed_for_its_duration() -> None:
    clock = ManualClock()
    term = Term("me", TIMINGS, clock)
    assert not term.observe(OTHER)
    clock.advance(15.0)
    assert not term.observe(OTHER)
    clock.advance(0.001)
    assert term.observe(OTHER)
    claim = term.claim()
    assert (claim.holder, claim.transitions) == ("me", 4)


def test_each_change_starts_the_time_again() -> None:
    clock = ManualClock()
    term = Term("me", TIMINGS, clock)
    for index in range(10):
        clock.advance(14.0)
        assert not term.observe(replace(OTHER, renew_time=f"r{index}"))
    clock.advance(15.1)
    assert term.observe(replace(OTHER, renew_time="r9"))


def test_what_the_other_machines_clock_says_does_not_matter() -> None:
    clock = ManualClock()
    term = Term("me", TIMINGS, clock)
    for renew_time in ("1970-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z", "nonsense"):
        assert not term.observe(replace(OTHER, renew_time=renew_time))


def test_the_duration_that_counts_is_the_holders() -> None:
    clock = ManualClock()
    term = Term("me", TIMINGS, clock)
    assert not term.observe(replace(OTHER, duration_s=60.0))
    clock.advance(59.0)
    assert not term.observe(replace(OTHER, duration_s=60.0))
    clock.advance(1.5)
    assert term.observe(replace(OTHER, duration_s=60.0))


def test_a_lease_that_was_given_back_is_taken_at_once() -> None:
    term = Term("me", TIMINGS, ManualClock())
    assert term.observe(LeaseRecord("", 1.0, transitions=3))
    assert term.claim().transitions == 4


def test_a_lease_that_says_it_is_ours_is_ours_though_the_answer_to_our_write_was_lost() -> None:
    term = Term("me", TIMINGS, ManualClock())
    assert term.observe(LeaseRecord("me", 15.0, "a", "r", 7))
    assert not term.may_write()
    assert term.claim().transitions == 7


def test_a_leader_may_write_until_its_renew_deadline_counted_from_when_its_write_began() -> None:
    clock = ManualClock()
    term = Term("me", TIMINGS, clock)
    assert not term.may_write()
    started_s = clock.monotonic()
    clock.advance(3.0)
    term.wrote(term.claim(), started_s)
    clock.advance(6.9)
    assert term.may_write()
    assert not term.expire()
    clock.advance(0.1)
    assert not term.may_write()
    assert term.expire()
    assert term.state is LeaseState.LOST


def test_a_leader_in_doubt_goes_on_until_the_deadline_and_is_none_the_worse_for_a_late_success() -> None:
    clock = ManualClock()
    term = leading(clock)
    for _ in range(4):
        clock.advance(2.0)
        term.failed()
        assert term.may_write()
    term.wrote(term.claim(), clock.monotonic())
    clock.advance(9.0)
    assert term.may_write()


@pytest.mark.parametrize("lease_record", [OTHER, LeaseRecord("", 1.0, transitions=1)])
def test_a_leader_that_finds_another_record_has_lost(lease_record: LeaseRecord) -> None:
    term = leading(ManualClock())
    assert not term.observe(lease_record)
    assert (term.state, term.may_write()) == (LeaseState.LOST, False)
    with pytest.raises(InvalidTransition):
        term.wrote(term.claim(), 0.0)


def test_a_lease_given_back_names_nobody_and_may_be_taken_after_a_second() -> None:
    term = leading(ManualClock())
    record = term.released_record()
    assert (record.holder, record.duration_s) == ("", 1.0)
    term.give_up()
    assert not term.may_write()


def test_health_fails_only_for_a_holder_that_should_have_ended_long_ago() -> None:
    clock = ManualClock()
    standby, leader = Term("other", TIMINGS, clock), leading(clock)
    clock.advance(35.0)
    assert leader.health() is None
    clock.advance(0.1)
    assert leader.health() == "failed election to renew leadership"
    assert standby.health() is None


def test_a_fraction_of_a_second_is_rounded_up_so_that_others_wait_long_enough() -> None:
    assert LeaseRecord("me", 1.5).spec()["leaseDurationSeconds"] == 2


@pytest.mark.parametrize("seed", range(10))
def test_never_do_two_processes_whose_clocks_disagree_lead_at_once(seed: int) -> None:
    """Two candidates, one server; processes are stopped, writes are lost or their answers are, at random."""
    random = Random(seed)
    clocks = [ManualClock(random.uniform(0.0, 4e9)) for _ in range(2)]
    terms = [Term(f"p{index}", TIMINGS, clock) for index, clock in enumerate(clocks)]
    leases: list[LeaseRecord | None] = [None]
    wake_s = [0.0, 0.0]
    led = set()
    now_s = 0.0
    while now_s < 1000.0:
        step_s = random.uniform(0.01, 1.0)
        now_s += step_s
        for clock in clocks:
            clock.advance(step_s)
        assert sum(term.may_write() for term in terms) <= 1
        for index, (term, clock) in enumerate(zip(terms, clocks, strict=True)):
            if now_s < wake_s[index]:
                continue
            if term.expire():
                # It ends, and another process is started in its place.
                terms[index] = term = Term(f"{term.identity}'", TIMINGS, clock)
            if term.may_write():
                led.add(term.identity)
            wake_s[index] = now_s + (random.uniform(5.0, 60.0) if random.random() < 0.02 else random.uniform(0.5, 4.0))
            if random.random() < 0.1:
                term.failed()
                continue
            if leases[0] is not None and not term.observe(leases[0]):
                continue
            record = term.claim()
            leases[0] = record
            if random.random() < 0.1:
                term.failed()
            else:
                term.wrote(record, clock.monotonic())
    assert len(led) > 2

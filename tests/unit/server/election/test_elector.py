"""The election against an API server that is a function, in virtual time."""

from __future__ import annotations

from random import Random
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from podium.objects.api_errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    InternalError,
    NotFound,
    OutcomeUnknown,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from podium.server.election import Elector, LeadershipLostError, LeaseLock, LeaseTakenError, Term, Timings
from podium.telemetry import Metrics
from tests.unit.binder.builders import Request, Wire
from tests.virtual_time import VIRTUAL_TIME, LoopClock

pytestmark = pytest.mark.anyio

TIMINGS = Timings(15.0, 10.0, 2.0)


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


class Server:
    """One Lease, kept as an API server does; `failure` is what every request ends with meanwhile."""

    def __init__(self) -> None:
        self.object: dict[str, Any] | None = None
        self.version = 0
        self.failure: ApiError | None = None
        self.loses_answers = False
        self.touches_left = 0

    def answer(self, request: Request) -> Any:
        if self.failure is not None:
            raise self.failure
        if request.method == "GET":
            if self.object is None:
                raise NotFound("no such lease")
            return self.object
        if request.method == "POST" and self.object is not None:
            raise AlreadyExists("there is one")
        if request.method == "PUT":
            assert self.object is not None
            if self.touches_left:
                self.touches_left -= 1
                self.touch()
            if request.body["metadata"]["resourceVersion"] != self.object["metadata"]["resourceVersion"]:
                raise Conflict("the object has been modified")
        self.version += 1
        metadata = {**request.body["metadata"], "uid": "u", "resourceVersion": str(self.version)}
        self.object = {**request.body, "metadata": metadata}
        if self.loses_answers:
            raise OutcomeUnknown("the connection broke")
        return self.object

    @property
    def spec(self) -> dict[str, Any]:
        assert self.object is not None
        spec: dict[str, Any] = self.object["spec"]
        return spec

    def touch(self) -> None:
        """Somebody who has nothing to do with the election has written the object."""
        assert self.object is not None
        self.version += 1
        self.object = {**self.object, "metadata": {**self.object["metadata"], "resourceVersion": str(self.version)}}


class Candidate:
    """One replica's part in the election."""

    def __init__(
        self,
        server: Server,
        name: str,
        seed: int = 1,
        timings: Timings = TIMINGS,
        refusal: str | None = None,
        decides_as: str = "",
    ) -> None:
        self.clock, self.metrics = LoopClock(), Metrics()
        self.wire = Wire(server.answer)
        self.term = Term(name, timings, self.clock)
        self.told: list[str] = []
        self.leads = anyio.Event()
        lock = LeaseLock(self.wire, "kube-system", "podium", 5.0, decides_as)
        self.elector = Elector(
            self.term, lock, self.clock, Random(seed), self.metrics, self.told.append, refusal=refusal
        )

    async def serve(self) -> None:
        """Run a replica's whole life."""
        await self.elector.acquire()
        self.leads.set()
        await self.elector.renew()

    @property
    def master(self) -> float:
        return self.metrics.value("leader_election_master_status", name="kube-scheduler")


async def test_the_first_one_makes_the_lease_and_renews_it_every_retry_period() -> None:
    server = Server()
    candidate = Candidate(server, "one")
    assert candidate.master == 0
    with anyio.move_on_after(9.0):
        await candidate.serve()
    assert candidate.wire.calls[0].startswith("GET ")
    assert candidate.wire.calls[1].startswith("POST ")
    assert len(candidate.wire.calls[2:]) == 4
    assert {call.split()[0] for call in candidate.wire.calls[2:]} == {"PUT"}
    assert (server.spec["holderIdentity"], server.spec["leaseTransitions"]) == ("one", 0)
    assert (candidate.told, candidate.master) == (["one became leader"], 1)


async def test_the_second_one_leads_once_the_first_is_gone_for_the_leases_duration() -> None:
    server = Server()
    first, two = Candidate(server, "one"), Candidate(server, "two", seed=2)
    async with anyio.create_task_group() as tasks:
        life = anyio.CancelScope()

        async def live() -> None:
            with life:
                await first.serve()

        tasks.start_soon(live)
        await anyio.sleep(1.0)
        tasks.start_soon(two.serve)
        await anyio.sleep(100.0)
        assert not two.term.is_holding
        life.cancel()
        died_s = two.clock.monotonic()
        await two.leads.wait()
        waited_s = two.clock.monotonic() - died_s
        assert 13.0 <= waited_s <= 15.0 + 2 * 2.0 + 2.0
        assert (server.spec["holderIdentity"], server.spec["leaseTransitions"]) == ("two", 1)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(("minor", "warnings"), [("1.36", ["1.37"]), ("1.37", [])])
async def test_a_leader_with_other_rules_than_the_one_before_says_so(minor: str, warnings: list[str]) -> None:
    server = Server()
    first = Candidate(server, "one", decides_as="1.37")
    await first.elector.acquire()
    await first.elector.release()
    with capture_logs() as entries:
        await Candidate(server, "two", decides_as=minor).elector.acquire()
    assert [entry["minor"] for entry in entries if entry["log_level"] == "warning"] == warnings


@pytest.mark.parametrize("seed", range(20))
async def test_failover_takes_no_longer_than_duration_and_two_retry_periods_and_a_bit(seed: int) -> None:
    server = Server()
    first, two = Candidate(server, "one", seed), Candidate(server, "two", seed + 100)
    await first.elector.acquire()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(two.serve)
        with anyio.move_on_after(40.0 + Random(seed).uniform(0.0, 4.0)):
            await first.elector.renew()
        assert not two.leads.is_set()
        died_s = two.clock.monotonic()
        await two.leads.wait()
        assert two.clock.monotonic() - died_s <= 15.0 + 2 * 2.0 + 2.0
        tasks.cancel_scope.cancel()


async def test_a_lease_that_is_given_back_is_taken_at_the_next_try() -> None:
    server = Server()
    first, two = Candidate(server, "one"), Candidate(server, "two", seed=2)
    await first.elector.acquire()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(two.elector.acquire)
        await anyio.sleep(1.0)
        first.elector.report_stop()
        await first.elector.release()
        assert server.spec["holderIdentity"] == ""
        assert server.spec["leaseDurationSeconds"] == 1
        given_back_s = two.clock.monotonic()
    assert two.clock.monotonic() - given_back_s <= 2.2 * 2.0
    assert server.spec["leaseTransitions"] == 1
    assert first.told == ["one became leader", "one stopped leading"]
    assert (first.master, two.master) == (0, 1)


async def test_giving_back_a_lease_that_somebody_has_touched_reads_it_first() -> None:
    server = Server()
    candidate = Candidate(server, "one")
    await candidate.elector.acquire()
    server.touch()
    await candidate.elector.release()
    assert server.spec["holderIdentity"] == ""


async def test_giving_back_a_lease_that_others_keep_touching_is_tried_again() -> None:
    server = Server()
    candidate = Candidate(server, "one")
    await candidate.elector.acquire()
    server.touches_left = 3
    await candidate.elector.release()
    assert server.spec["holderIdentity"] == ""


async def test_who_does_not_lead_gives_nothing_back() -> None:
    server = Server()
    first, two = Candidate(server, "one"), Candidate(server, "two")
    await first.elector.acquire()
    two.elector.report_stop()
    await two.elector.release()
    assert (server.spec["holderIdentity"], two.wire.calls, two.told) == ("one", [], [])


async def test_a_leader_that_cannot_renew_has_lost_at_its_deadline_and_writes_nothing_after_it() -> None:
    server = Server()
    candidate = Candidate(server, "one")
    await candidate.elector.acquire()
    server.failure = Unreachable("no route")
    with pytest.raises(LeadershipLostError):
        await candidate.elector.renew()
    assert candidate.clock.monotonic() == pytest.approx(10.0)
    assert (candidate.term.may_write(), candidate.master) == (False, 0)


async def test_a_request_that_hangs_does_not_outlast_the_deadline() -> None:
    server = Server()
    candidate = Candidate(server, "one")
    await candidate.elector.acquire()
    candidate.wire.latency_s = 3600.0
    with pytest.raises(LeadershipLostError):
        await candidate.elector.renew()
    assert candidate.clock.monotonic() == pytest.approx(10.0)


@pytest.mark.parametrize(
    "failure",
    [
        Unreachable("no route"),
        Unauthorized("who?", code=401),
        Forbidden("no", code=403),
        TooManyRequests("slow down", retry_after_s=60.0),
        InternalError("oops", code=500),
        OutcomeUnknown("reset"),
    ],
    ids=lambda failure: type(failure).__name__,
)
async def test_a_short_outage_is_survived(failure: ApiError) -> None:
    server = Server()
    candidate = Candidate(server, "one")
    await candidate.elector.acquire()
    with anyio.move_on_after(60.0):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(candidate.elector.renew)
            for _ in range(5):
                server.failure = failure
                await anyio.sleep(6.0)
                server.failure = None
                await anyio.sleep(3.0)
            tasks.cancel_scope.cancel()
    assert candidate.term.may_write()


async def test_a_foreign_write_makes_the_leader_read_and_is_counted() -> None:
    server = Server()
    candidate = Candidate(server, "one")
    await candidate.elector.acquire()
    server.touch()
    with anyio.move_on_after(3.0):
        await candidate.elector.renew()
    assert candidate.term.may_write()
    assert candidate.metrics.value("leader_election_slowpath_total", name="kube-scheduler") == 1


async def test_a_leader_that_finds_another_in_the_lease_has_lost_at_once() -> None:
    server = Server()
    candidate = Candidate(server, "one")
    await candidate.elector.acquire()
    server.touch()
    server.spec["holderIdentity"] = "thief"
    with pytest.raises(LeadershipLostError):
        await candidate.elector.renew()
    assert candidate.clock.monotonic() == pytest.approx(2.0)


async def test_lost_answers_leave_no_lease_behind_that_nobody_holds() -> None:
    server = Server()
    candidate = Candidate(server, "one")
    server.loses_answers = True
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(candidate.elector.acquire)
        await anyio.sleep(10.0)
        assert not candidate.term.is_holding
        assert server.spec["holderIdentity"] == "one"
        server.loses_answers = False
    assert candidate.term.may_write()
    assert server.spec["leaseTransitions"] == 0


async def test_two_that_come_at_the_same_moment_do_not_both_lead() -> None:
    server = Server()
    candidates = [Candidate(server, f"c{index}", seed=7) for index in range(5)]
    for candidate in candidates:
        candidate.wire.latency_s = 0.5
    with anyio.move_on_after(120.0):
        async with anyio.create_task_group() as tasks:
            for candidate in candidates:
                tasks.start_soon(candidate.serve)
    assert [candidate.term.is_holding for candidate in candidates].count(True) == 1


def lease_of(holder: str, *managers: str) -> dict[str, Any]:
    """A Lease of that holder, whose election's fields these programs have written."""
    fields = {"f:spec": {"f:holderIdentity": {}, "f:renewTime": {}}}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "podium",
            "namespace": "kube-system",
            "resourceVersion": "1",
            "managedFields": [
                {"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
                *({"manager": name, "operation": "Update", "fieldsV1": fields} for name in managers),
            ],
        },
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15},
    }


@pytest.mark.parametrize(
    ("lease", "is_refused"),
    [
        (lease_of("master-1_7a", "kube-scheduler"), True),
        (lease_of("kube-scheduler-0_7a"), True),
        (lease_of("master-1_7a", "podium"), False),
        (lease_of("master-1_7a"), False),
        (lease_of("", "kube-scheduler"), False),
        ({**lease_of("master-1_7a"), "metadata": {"name": "podium", "namespace": "kube-system"}}, False),
    ],
)
async def test_a_lease_that_kube_scheduler_holds_is_refused_and_not_waited_for(
    lease: dict[str, Any], is_refused: bool
) -> None:
    server = Server()
    server.object = lease
    candidate = Candidate(server, "one", refusal="choose another")
    with anyio.move_on_after(3.0):
        if not is_refused:
            await candidate.elector.acquire()
            return
        with pytest.raises(LeaseTakenError) as error:
            await candidate.elector.acquire()
        assert str(error.value) == f"kube-system/podium is held by {lease['spec']['holderIdentity']}: choose another"
    assert not is_refused or candidate.told == []


async def test_a_lease_that_kube_scheduler_holds_is_waited_for_if_that_is_allowed() -> None:
    server = Server()
    server.object = lease_of("master-1_7a", "kube-scheduler")
    candidate = Candidate(server, "one")
    with anyio.fail_after(30.0):
        await candidate.elector.acquire()
    assert server.spec["holderIdentity"] == "one"

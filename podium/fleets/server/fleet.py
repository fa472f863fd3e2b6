"""The watched members, and questions to all of them.

Owns which members a question can be asked, why an answer is without the others, and the deadline. A member that fails
is stale after a time: from then on answers are without it, or say so. A fault of one member never affects another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import anyio

from podium.fleets.answers import FleetFit
from podium.fleets.fit import Outcome, fit_in_steps
from podium.fleets.loading import same_cluster
from podium.fleets.search import TIME_IS_UP, FleetQuestion, FleetSearch, Member
from podium.fleets.server.watched import WatchedCluster
from podium.lib.clock import Clock
from podium.lib.turns import Turns

_LOOK_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Staleness:
    """When a member is stale, and what follows.

    Attributes:
        after_s: how long its API server has to fail.
        is_asked: whether it is asked nevertheless; its answer then says how old its state is.
    """

    after_s: float = 30.0
    is_asked: bool = False


class WatchedFleet:
    """Implements the members of `podium.estimator.server.folder.Folder`."""

    def __init__(self, clock: Clock, staleness: Staleness) -> None:
        self._clock = clock
        self._staleness = staleness
        self._members: dict[str, WatchedCluster] = {}
        self._successors: dict[str, WatchedCluster] = {}
        """Members that are listed anew, while their earlier state answers."""
        self._refused: dict[str, str] = {}

    def put(self, name: str, member: WatchedCluster) -> None:
        """Watch a member from now on. An earlier member of that name answers until the new one is listed."""
        self._refused.pop(name, None)
        earlier = self._members.get(name)
        if earlier is None or not earlier.is_listed:
            self._members[name] = member
            return
        earlier.stop()
        self._successors[name] = member

    def let_go(self, name: str) -> None:
        """Forget a member: a workload must not go to a cluster that has left the fleet."""
        for members in (self._members, self._successors, self._refused):
            members.pop(name, None)

    def refuse(self, name: str, reason: str) -> None:
        """Note why a member cannot be watched."""
        self._refused[name] = reason

    def __len__(self) -> int:
        """Return the number of members, those that cannot be watched included."""
        return len(self._members.keys() | self._refused.keys())

    async def run(self) -> None:
        """Look regularly at which members fail, until cancelled."""
        while True:
            await anyio.sleep(_LOOK_S)
            self.look()

    def look(self) -> None:
        """Look at which members fail, and which are listed anew."""
        for name, successor in list(self._successors.items()):
            if successor.is_listed:
                self._members[name] = self._successors.pop(name)
        for member in self._members.values():
            # One with a successor is not watched any more.
            if member.name not in self._successors:
                member.look()

    def unlisted_names(self) -> list[str]:
        """Return the members that have never been listed."""
        return sorted(name for name, member in self._members.items() if not member.is_listed)

    def statistics(self) -> Iterator[Mapping[str, Any]]:
        """Yield the state of each member as JSON values."""
        members, without = self._askable(None)
        for name in sorted(self._members.keys() | self._refused.keys()):
            member = self._members.get(name)
            fields: dict[str, Any] = {"cluster": name, "asked": name in members}
            if name in without:
                fields["reason"] = without[name]
            if member is not None and member.failing_s is not None:
                fields |= {"failingSeconds": round(member.failing_s, 1), "error": member.last_error}
            yield fields | (member.statistics() if member is not None else {})

    async def ask(
        self, question: FleetQuestion, names: Collection[str] | None = None, deadline_s: float = 3.0
    ) -> FleetFit:
        """Ask the members within the deadline. The event loop does other work in between.

        Args:
            names: ask no others.
        """
        clock = self._clock
        ends_s, turns = clock.monotonic() + deadline_s, Turns(clock)
        members, without = self._askable(names)
        search = FleetSearch(question, without)
        for watched_cluster, stale_s in members.values():
            search.weigh(watched_cluster.member(stale_s))
            if turns.is_over():
                await turns.next()
            if clock.monotonic() >= ends_s:
                break
        for name in members.keys() - search.names():
            search.leave_out(name, TIME_IS_UP)
        for member in search.members():
            outcome = await self._try(members[member.name][0], member, question, lambda: clock.monotonic() >= ends_s)
            if outcome is None:
                search.leave_out(member.name, TIME_IS_UP)
                search.leave_out_rest(TIME_IS_UP)
                break
            search.note(member, outcome)
            if turns.is_over():
                await turns.next()
        return search.answer()

    async def _try(
        self, watched_cluster: WatchedCluster, member: Member, question: FleetQuestion, is_over: Callable[[], bool]
    ) -> Outcome | None:
        """Try one member; return None if the time is up."""
        turns, outcomes, revision = Turns(self._clock), question.workload.outcomes, watched_cluster.revision
        # A dispatcher asks about the same workload again and again, and most clusters are as they were then.
        if outcomes.get(member.name, (None,))[0] == revision:
            known_outcome: Outcome = outcomes[member.name][1]
            return known_outcome
        with (
            watched_cluster.dry_run(),
            closing(fit_in_steps(member.cluster, question.workload, member.waiting, member.admission)) as steps,
        ):
            has_paused = False
            while not is_over():
                try:
                    next(steps)
                except StopIteration as stop:
                    outcome: Outcome = stop.value
                    # What was lent for an uninterrupted run has been noted as a change, and is gone again.
                    outcomes[member.name] = revision if has_paused else watched_cluster.revision, outcome
                    return outcome
                has_paused = True
                if turns.is_over():
                    await turns.next()
        return None

    def _askable(
        self, names: Collection[str] | None
    ) -> tuple[dict[str, tuple[WatchedCluster, float | None]], dict[str, str]]:
        """Return the members to ask, each with how stale it is, and why the others cannot be asked."""
        members: dict[str, tuple[WatchedCluster, float | None]] = {}
        without = {
            name: reason
            for name, reason in self._refused.items()
            # While an earlier kubeconfig is in use, its member answers.
            if name not in self._members and (names is None or name in names)
        }
        for name in names or ():
            if name not in self._members and name not in self._refused:
                without[name] = "there is no such member"
        namesakes: dict[str, str] = {}
        for name, member in sorted(self._members.items()):
            if names is not None and name not in names:
                continue
            stale_s = self._stale_s(member)
            is_listed = member.is_listed
            identity = member.identity if is_listed else ""
            if not is_listed:
                error = member.last_error
                without[name] = f"it has not been listed yet{f': {error}' if error else ''}"
            elif stale_s is not None and not self._staleness.is_asked:
                error = member.last_error
                without[name] = f"it is stale: unreachable for {stale_s:.0f} s{f': {error}' if error else ''}"
            elif identity and identity in namesakes:
                without[name] = same_cluster(namesakes[identity])
            else:
                namesakes[identity] = name
                members[name] = member, stale_s
        return members, without

    def _stale_s(self, member: WatchedCluster) -> float | None:
        """Return how long the member has been unreachable; None if it is not stale."""
        failing_s = member.failing_s
        return failing_s if failing_s is not None and failing_s >= self._staleness.after_s else None

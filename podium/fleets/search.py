"""One question to a fleet: the clusters in the order in which they are tried, and the answer of those tried so far.

Owns when enough clusters take the workload. Never tries a cluster itself: whoever asks does, in its own way of waiting.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from podium.engine.cluster import Cluster
from podium.engine.errors import ClusterError
from podium.fleets.admission import admitted_pods
from podium.fleets.answers import FittingCluster, FleetFit, RejectedCluster
from podium.fleets.fit import Fit, Outcome, fit
from podium.fleets.ordering import Order, Prices, load_with, requests_of
from podium.fleets.workload import Workload
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.resource_types import NODES

TIME_IS_UP: Final = "it was not tried within the time limit"
"""Why an answer is without a cluster that nothing is wrong with."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member cluster at the time of a question.

    Attributes:
        waiting: its pending pods, the oldest first.
        admission: as the key of `admission.admitted_pods`.
        stale_s: as in `answers.FittingCluster`.
    """

    name: str
    cluster: Cluster
    waiting: Sequence[Pod]
    admission: object = None
    stale_s: float | None = None


@dataclass(frozen=True, slots=True)
class FleetQuestion:
    """The question.

    Attributes:
        clusters_max: how many clusters are enough; None for all. The cheapest are only known once all have been tried.
    """

    workload: Workload
    order: Order = Order.EMPTIEST
    prices: Prices = field(default_factory=Prices)
    clusters_max: int | None = None


class FleetSearch:
    """A question to the members that `weigh` adds.

    Args:
        without: the clusters that cannot be asked, and why.
    """

    def __init__(self, question: FleetQuestion, without: Mapping[str, str]) -> None:
        self._question = question
        self._without = dict(without)
        self._rejected: list[RejectedCluster] = []
        self._fits: list[FittingCluster] = []
        self._loads: dict[str, float] = {}
        self._pending: dict[str, Member] = {}
        self._pods: Sequence[Pod] = ()
        self._requests: Mapping[str, int] = {}

    def weigh(self, member: Member) -> None:
        """Add a member. Its load decides when it is tried."""
        workload = self._question.workload
        try:
            pods = admitted_pods(member.cluster, workload, member.admission)
            # Most members share the typed pods.
            if pods is not self._pods:
                self._pods, self._requests = pods, requests_of(pods)
            snapshot = member.cluster.engine_to_ask.cache.snapshot()
            self._loads[member.name] = load_with(snapshot, self._requests, len(pods))
        except FieldError as error:
            self._reject(member, str(error))
        except ClusterError as error:
            # What comes with the workload may yet make it admissible.
            if not workload.control_objects:
                self._reject(member, str(error))
            else:
                self._loads[member.name] = math.inf
        if member.name in self._loads:
            self._pending[member.name] = member

    def _reject(self, member: Member, reason: str, pod: str = "", placed_count: int = 0) -> None:
        self._rejected.append(RejectedCluster(member.name, reason, pod, placed_count, member.stale_s))

    def members(self) -> Iterator[Member]:
        """Yield the members to try until enough take the workload. Call `note` or `leave_out` for each."""
        clusters_max = self._question.clusters_max
        self._pending = dict(sorted(self._pending.items(), key=lambda item: (self._loads[item[0]], item[0])))
        stops_early = clusters_max is not None and self._question.order is Order.EMPTIEST
        while self._pending and not (stops_early and len(self._fits) >= (clusters_max or 0)):
            yield self._pending.pop(next(iter(self._pending)))

    def note(self, member: Member, outcome: Outcome) -> None:
        """Note the outcome of a member's dry run."""
        if not isinstance(outcome, Fit):
            self._reject(member, outcome.reason, outcome.pod, outcome.placed_count)
            return
        prices = self._question.prices
        nodes = member.cluster.store.objects(NODES) if prices else {}
        price = prices.of_fit(member.name, nodes, outcome) if prices else None
        load = self._loads[member.name]
        self._fits.append(FittingCluster(member.name, load, price, outcome.nodes, member.stale_s))

    def names(self) -> Collection[str]:
        """Return the members that have been added."""
        return {*self._loads, *(rejection.cluster for rejection in self._rejected)}

    def leave_out(self, name: str, reason: str) -> None:
        """Note why the answer is without a member."""
        self._without[name] = reason

    def leave_out_rest(self, reason: str) -> None:
        """Note why the answer is without all members that have not been tried."""
        for name in self._pending:
            self.leave_out(name, reason)
        self._pending.clear()

    def answer(self) -> FleetFit:
        """Return the answer of the members tried so far."""
        question = self._question
        fits = sorted(self._fits, key=_by_price if question.order is Order.CHEAPEST else _by_load)
        return FleetFit(
            question.workload.name,
            len(question.workload.pods),
            question.order,
            fits[: question.clusters_max],
            sorted(self._rejected, key=lambda cluster: cluster.cluster),
            dict(sorted(self._without.items())),
            [*sorted(self._pending), *(cluster.cluster for cluster in fits[len(fits[: question.clusters_max]) :])],
        )


def ask_all(
    question: FleetQuestion, members: Sequence[Member], without: Mapping[str, str], limit: TimeLimit = UNLIMITED
) -> FleetFit:
    """Try the members one after the other until the time is up."""
    search = FleetSearch(question, without)
    for member in members:
        search.weigh(member)
    for member in search.members():
        if limit.is_over():
            search.leave_out(member.name, TIME_IS_UP)
            search.leave_out_rest(TIME_IS_UP)
            limit.is_noticed = True
            break
        search.note(member, fit(member.cluster, question.workload, member.waiting, member.admission))
    return search.answer()


def waiting_pods(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pending pods among these, the oldest first."""
    pending = (pod for pod in pods if not pod.node_name and not pod.is_terminating)
    return sorted(pending, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.key))


def _by_load(cluster: FittingCluster) -> tuple[float, str]:
    return cluster.load, cluster.cluster


def _by_price(cluster: FittingCluster) -> tuple[float, float, str]:
    # A placement of unknown price may cost anything, so it comes last.
    return math.inf if cluster.price is None else cluster.price, cluster.load, cluster.cluster

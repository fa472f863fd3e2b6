"""The cheapest purchase for a case of `gang_cases`, by trying all of them; it shares no code with podium.

The rules, as documented: kube-scheduler takes the pods by priority, then in order; a gang is one entry, of which no
pods are placed unless as many are as it needs. A pod goes to a node with enough cores and devices, the emptiest with
it, and of equal ones the first; nodes are looked at zone by zone in turn. A gang that must lie in one zone is tried
in each, and goes where most of its pods fit and the nodes are fullest with them. What did not fit is tried again once
others were placed. Memory goes with the cores here, so it never decides.

The best purchase places most pods, those of higher priority first, and costs least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

from tests.provisioned.gang_cases import SLOTS, Case, Kind, Unit

NODES_MAX = 6


@dataclass
class Place:
    """A node with what is left of it.

    Attributes:
        cpu, gpus: What it has: millicores, and devices.
        pods: The names of those on it.
    """

    name: str
    zone: str
    cpu: int
    gpus: int
    used_cpu: int = 0
    used_gpus: int = 0
    pods: list[str] = field(default_factory=list)

    def fits(self, unit: Unit) -> bool:
        """Return True if a pod of the unit fits."""
        return (
            self.used_cpu + unit.cpu <= self.cpu and self.used_gpus + unit.gpus <= self.gpus and len(self.pods) < SLOTS
        )

    def score(self, unit: Unit) -> int:
        """Return how empty the node would be with the pod, in percent."""
        return (self.cpu - self.used_cpu - unit.cpu) * 100 // self.cpu

    def put(self, unit: Unit, pod: str) -> None:
        """Place a pod of the unit."""
        self.used_cpu += unit.cpu
        self.used_gpus += unit.gpus
        self.pods.append(pod)

    def drop(self, unit: Unit, pod: str) -> None:
        """Take it back."""
        self.used_cpu -= unit.cpu
        self.used_gpus -= unit.gpus
        self.pods.remove(pod)


@dataclass(frozen=True)
class Outcome:
    """What a purchase comes to.

    Attributes:
        bound_names: The names of the pods that have a node.
        counts: How many of each priority or a higher one, the highest first.
    """

    kinds: tuple[Kind, ...]
    bound_names: frozenset[str]
    counts: tuple[int, ...]
    idle: int

    @property
    def price(self) -> float:
        """The price per hour."""
        return sum(kind.price for kind in self.kinds)


def best_purchase(case: Case) -> Outcome:
    """Return the best of all purchases of at most six nodes."""
    outcomes = (outcome_of(case, kinds) for kinds in _purchases(case))
    return min(outcomes, key=lambda outcome: ([-count for count in outcome.counts], round(outcome.price, 9)))


def outcome_of(case: Case, kinds: tuple[Kind, ...]) -> Outcome:
    """Return what kube-scheduler binds with these nodes."""
    places = [Place(name, zone, 1000 * cpu, 0) for name, (zone, cpu) in sorted(case.old_nodes.items())]
    new = [Place(f"pool-new-{index:04d}", kind.zone, 1000 * kind.cpu, kind.gpus) for index, kind in enumerate(kinds)]
    places = _in_turn([*places, *new])
    waiting = {unit.name: list(unit.pods) for unit in case.units}
    units = sorted(case.units, key=lambda unit: (-unit.priority, unit.name))
    is_changed = True
    while is_changed:
        is_changed = False
        for unit in units:
            pods = waiting[unit.name]
            placed_pods = _place_unit(places, unit, pods, unit.min_count - (unit.count - len(pods))) if pods else []
            waiting[unit.name] = [pod for pod in pods if pod not in placed_pods]
            is_changed |= bool(placed_pods)
    bound_names = frozenset(pod for place in places for pod in place.pods)
    return Outcome(kinds, bound_names, _counts(case, bound_names), sum(not place.pods for place in new))


def _purchases(case: Case) -> Iterator[tuple[Kind, ...]]:
    for size in range(NODES_MAX + 1):
        for kinds in combinations_with_replacement(case.kinds, size):
            cpu = sum(kind.cpu for kind in kinds)
            if size <= case.limits.get("nodes", NODES_MAX) and cpu <= case.limits.get("cpu", cpu):
                yield kinds


def _counts(case: Case, bound_names: frozenset[str]) -> tuple[int, ...]:
    priorities = sorted({unit.priority for unit in case.units}, reverse=True)
    return tuple(
        sum(pod in bound_names for unit in case.units if unit.priority >= priority for pod in unit.pods)
        for priority in priorities
    )


def _in_turn(places: Sequence[Place]) -> list[Place]:
    """Return the nodes, one of each zone in turn, the zones in the order of their first nodes."""
    zones: dict[str, list[Place]] = {}
    for place in places:
        zones.setdefault(place.zone, []).append(place)
    places_in_order: list[Place] = []
    while any(zones.values()):
        places_in_order += [of_zone.pop(0) for of_zone in zones.values() if of_zone]
    return places_in_order


def _place_unit(places: Sequence[Place], unit: Unit, pods: Sequence[str], min_count: int) -> list[str]:
    """Place the pods of a unit that wait, or none of them if fewer would have a node than are needed."""
    at = {pod: place for place in places for pod in place.pods}
    zones = {at[pod].zone for pod in unit.pods if pod in at} if unit.tied else set()
    if not unit.tied:
        domains = [list(places)]
    else:
        names = list(dict.fromkeys(place.zone for place in places if not zones or place.zone in zones))
        domains = [[place for place in places if place.zone == zone] for zone in names]
    best: list[Place] | None = None
    best_score = -1
    trials = [(domain, _try(domain, unit, pods)) for domain in domains]
    count_max = max((len(placed_pods) for _, placed_pods in trials), default=0)
    for domain, placed_pods in trials:
        if not placed_pods or len(placed_pods) < min_count:
            continue
        used_cpu = sum(place.used_cpu for place in domain) + unit.cpu * len(placed_pods)
        score = len(placed_pods) * 100 // count_max + used_cpu * 100 // sum(place.cpu for place in domain)
        if score > best_score:
            best, best_score = domain, score
    return [] if best is None else _put(best, unit, pods)


def _try(domain: Sequence[Place], unit: Unit, pods: Sequence[str]) -> list[str]:
    placed_pods = _put(domain, unit, pods)
    for pod in placed_pods:
        next(place for place in domain if pod in place.pods).drop(unit, pod)
    return placed_pods


def _put(domain: Sequence[Place], unit: Unit, pods: Sequence[str]) -> list[str]:
    placed_pods: list[str] = []
    for pod in pods:
        fitting = [place for place in domain if place.fits(unit)]
        if fitting:
            max(fitting, key=lambda place: place.score(unit)).put(unit, pod)
            placed_pods.append(pod)
    return placed_pods

"""Finds out why a node has no devices for the claims of a pod: what each request lacks by itself, or what they lack
together.

Decides nothing: it is asked about nodes that were refused. Each request is looked at alone, with all selectors of all
devices. If each could be met alone, parts of the claims are searched for, to find the request or constraint that is too
much.

Cost: a look at every device of the node for each request, once for nodes that share their pools; up to three searches
for each request, of a limited number of steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from podium.cel import CompileError, EvaluationError
from podium.config.release_rules import DeviceRules
from podium.devices.allocated import AllocatedDevices
from podium.devices.capacity import consumption, has_capacity
from podium.devices.choices import Choices, is_borne
from podium.devices.constraints import new_constraint
from podium.devices.counters import AvailableCounters, ConsumedCounters
from podium.devices.errors import AllocationError, CapacityError, StepsExceededError
from podium.devices.field_texts import amount_text, counts_text, field_text
from podium.devices.interruptible import Interruptible, T, run_uninterrupted
from podium.devices.inventory import DeviceID, Inventory, SliceDevice
from podium.devices.pools import NodePools, pools_of_node
from podium.devices.refusals import Holder, Mismatch, NodeRefusal, UnmetRequest
from podium.devices.requests import Candidate, ClaimData, GetClass, RequestData, RequestReader, expression_of
from podium.devices.search import Search
from podium.devices.selectors import compile_selector
from podium.devices.step_budget import StepBudget
from podium.objects.claims import DeviceConstraint, ResourceClaim
from podium.objects.quantity import canonical_text, parse
from podium.objects.tolerations import taint_text

HoldersOf = Callable[[DeviceID], Sequence[tuple[str, tuple[str, ...]]]]
"""The claims that have a device, each with the pods that use it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the work to explain all nodes.

    Attributes:
        looks: how many devices are looked at, once for each request.
        searches: how many searches are made, each of `steps` steps.
        is_hurried: whether to give up where a selector would take more than a few milliseconds.
    """

    looks: int = 500_000
    searches: int = 200
    steps: int = 20_000
    is_hurried: bool = False


HURRIED: Final = Limits(looks=1000, searches=10, steps=500, is_hurried=True)
"""For callers that hold up others: some milliseconds in all."""


@dataclass(slots=True, eq=False)
class _Look:
    """The devices of a node from one request's point of view.

    Attributes:
        matching: the devices that the selectors select.
        mismatches: the others, by the index of the first selector that refuses them.
        errors: the first error of each selector.
        lacks: the devices that are neither taken nor free, by the reason.
        holders: the devices in use that keep others from the request.
    """

    data: RequestData
    selectors: Sequence[tuple[str, str]]
    devices: int = 0
    matching: list[SliceDevice] = field(default_factory=list)
    taken_count: int = 0
    free: list[SliceDevice] = field(default_factory=list)
    mismatches: dict[int, list[SliceDevice]] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    lacks: Counter[str] = field(default_factory=Counter)
    holders: dict[DeviceID, None] = field(default_factory=dict)

    @property
    def count(self) -> int | None:
        """The number of requested devices; None for all."""
        return None if self.data.devices is not None else self.data.count

    @property
    def is_met(self) -> bool:
        """The request could be met if it were the only one."""
        if self.count is None:
            return 0 < len(self.matching) == len(self.free)
        return len(self.free) >= self.count


@dataclass(frozen=True, slots=True)
class _Finding:
    """A request that is not met, without holders, and which of the node's devices others hold."""

    unmet: UnmetRequest
    held_indexes: Sequence[int]


class Shortages:
    """Explains refusals of the nodes of one attempt.

    Args:
        allocated: the devices that claims hold; `holders_of` returns the claims.
    """

    def __init__(
        self,
        inventory: Inventory,
        class_of: GetClass,
        allocated: AllocatedDevices,
        holders_of: HoldersOf,
        limits: Limits = Limits(),
    ) -> None:
        self._inventory = inventory
        self._class_of = class_of
        self._allocated = allocated
        self._available = AvailableCounters(allocated)
        self._holders_of = holders_of
        self.limits = limits
        self._searches_left, self._looks_left = limits.searches, limits.looks
        self._answers: dict[int, tuple[NodePools, Sequence[ResourceClaim], NodeRefusal]] = {}
        self.answers_by_shape: dict[Hashable, tuple[Sequence[ResourceClaim], Sequence[_Finding]]] = {}

    def on_node(self, node_name: str, labels: Mapping[str, str], claims: Sequence[ResourceClaim]) -> NodeRefusal:
        """Return why the claims, none of which is allocated, cannot all get devices on the node."""
        pools = pools_of_node(self._inventory, node_name, labels)
        # By identity: nodes with the same pools share one object, and thousands of nodes have few of them.
        answer = self._answers.get(id(pools))
        if answer is not None and answer[1] == claims:
            return answer[2]
        refusal = _NodeShortages(self, pools, node_name, labels).refusal(claims)
        if pools.is_repeatable:
            self._answers[id(pools)] = pools, claims, refusal
        return refusal

    def may_search(self) -> bool:
        """Return True if one more search is allowed."""
        self._searches_left -= 1
        return self._searches_left >= 0

    def may_look(self, count: int) -> bool:
        """Return True if this many devices may be examined."""
        self._looks_left -= count
        return self._looks_left >= 0

    def holders(self, devices: Sequence[DeviceID]) -> tuple[Holder, ...]:
        """Return the claims, with their pods, that hold these devices."""
        by_holder: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for device in devices:
            for holder in self._holders_of(device) or [("", ())]:
                by_holder.setdefault(holder, []).append(str(device))
        return tuple(Holder(claim, pods, tuple(names)) for (claim, pods), names in by_holder.items())


class _NodeShortages:
    """Explains the refusal of one node."""

    def __init__(self, shortages: Shortages, pools: NodePools, node_name: str, labels: Mapping[str, str]) -> None:
        self._shortages = shortages
        self._pools = pools
        self._node_name = node_name
        self._labels = labels
        self._rules = shortages._inventory.rules
        self._allocated = shortages._allocated
        self._available = shortages._available
        self._budget = StepBudget(shortages.limits.steps)
        self._devices = [device for pool in pools.pools for device in chain(pool.devices, pool.unreachable_devices)]

    def refusal(self, claims: Sequence[ResourceClaim]) -> NodeRefusal:
        """Explain as `Shortages.on_node`."""
        problems = tuple(f"pool {pool}: {pool.problem}" for pool in self._pools.pools if pool.problem)
        # What a broken pool lacks is in no device, so such a node is not like another.
        shape = None if problems else self._shape()
        answer = None if shape is None else self._shortages.answers_by_shape.get(shape)
        if answer is not None and answer[0] is claims:
            return self._with_holders(answer[1], problems)
        try:
            findings = self._findings(claims)
        except (AllocationError, StepsExceededError) as error:
            return NodeRefusal(broken_pools=problems, error=str(error) or _TOO_LONG)
        if shape is not None:
            self._shortages.answers_by_shape[shape] = claims, findings
        return self._with_holders(findings, problems)

    def _shape(self) -> Hashable | None:
        """Return a key, equal for nodes on which the same requests are not met; None for a node like no other."""
        if not self._pools.is_repeatable:
            return None
        is_dedicated = self._allocated.is_dedicated
        parts: list[Hashable] = []
        for device in self._devices:
            # Counters and own node selections are of one pool and node, so no key can stand for them.
            if device.look is None or device.has_policies:
                return None
            parts.append((id(device.look), is_dedicated(device.id), device.device.taints or None))
        return tuple(parts)

    def _with_holders(self, findings: Sequence[_Finding], problems: tuple[str, ...]) -> NodeRefusal:
        holders = self._shortages.holders
        unmet = (
            replace(finding.unmet, holders=holders([self._devices[index].id for index in finding.held_indexes]))
            for finding in findings
        )
        return NodeRefusal(tuple(unmet), broken_pools=problems)

    def _findings(self, claims: Sequence[ResourceClaim]) -> Sequence[_Finding]:
        """Return the requests that are not met. Raises: AllocationError, StepsExceededError."""
        claim_data = self._run(self._reader().read(claims))
        requests = [data for claim in claim_data for alternatives in claim.requests for data in alternatives]
        # Each look may evaluate an expression, and a cluster may have a hundred thousand devices.
        if not self._shortages.may_look(len(requests) * len(self._devices)):
            raise StepsExceededError
        looks = {id(data): self._look(data) for data in requests}
        unmet = [
            looks[id(data)]
            for claim in claim_data
            for alternatives in claim.requests
            if not any(looks[id(data)].is_met for data in alternatives)
            for data in alternatives
        ]
        if unmet:
            return [self._unmet(look) for look in unmet]
        index, number, reason = self._too_much_together(claim_data)
        return [self._unmet(looks[id(data)], reason) for data in claim_data[index].requests[number]]

    def _run(self, steps: Interruptible[T]) -> T:
        """Return the result. Raises: StepsExceededError: it takes too long for callers that hold up others."""
        if not self._shortages.limits.is_hurried:
            return run_uninterrupted(steps)
        try:
            while next(steps) is None:
                pass
        except StopIteration as end:
            result: T = end.value
            return result
        raise StepsExceededError

    def _reader(self) -> RequestReader:
        self._budget.start_search()
        shortages, pools = self._shortages, self._pools.pools
        return RequestReader(
            self._node_name, self._labels, pools, self._allocated, shortages._class_of, self._budget, self._rules
        )

    # ------------------------------------------------------------ one request alone

    def _look(self, data: RequestData) -> _Look:
        selectors = [
            (f"class {data.device_class.key}", expression_of(selector)) for selector in data.device_class.spec.selectors
        ]
        selectors += [("the request", expression_of(selector)) for selector in data.request.selectors]
        look = _Look(data, selectors)
        for pool in self._pools.pools:
            for device in pool.devices:
                if device.selection is None or device.selection.matches(self._node_name, self._labels):
                    self._judge(look, Candidate(device, pool))
        return look

    def _judge(self, look: _Look, candidate: Candidate) -> None:
        """Count the device for what keeps it from the request, or as free."""
        device, data = candidate.device, look.data
        look.devices += 1
        refusing = self._refusing_selector(look, device)
        if refusing is not None:
            look.mismatches.setdefault(refusing, []).append(device)
            return
        look.matching.append(device)
        if not data.has_admin_access and self._allocated.is_dedicated(device.id):
            look.taken_count += 1
            look.holders[device.id] = None
        elif lack := self._lack(look, candidate):
            look.lacks[lack] += 1
        else:
            look.free.append(device)

    def _refusing_selector(self, look: _Look, device: SliceDevice) -> int | None:
        """Return the index of the first selector that does not select the device."""
        for index, (_, expression) in enumerate(look.selectors):
            try:
                matches = device.matches_soon(expression, self._budget)
                if matches is None:
                    matches = self._run(device.matches_interruptibly(expression, self._budget))
                if not matches:
                    return index
            except (CompileError, EvaluationError) as error:
                look.errors.setdefault(index, str(error))
                return index
        return None

    def _lack(self, look: _Look, candidate: Candidate) -> str:
        """Return why the request cannot get a free device; "" if it can."""
        device, data = candidate.device, look.data
        capacities, usage = device.device.capacity or {}, self._allocated.consumed.of(device.id)
        try:
            if not has_capacity(data.capacities, capacities, self._rules, usage):
                if usage:
                    look.holders[device.id] = None
                return _capacity_lack(data, device, usage, self._rules)
        except CapacityError as error:
            return str(error)
        taint = next((taint for taint in device.device.taints if not is_borne(data, taint)), None)
        if taint is not None:
            return f"tainted {taint_text(taint)}"
        is_paid_for = device.id in self._allocated.consumed or self._allocated.has_shares(device.id)
        if device.consumes and not (device.is_shared and is_paid_for):
            return self._counter_lack(look, candidate)
        return ""

    def _values(self, devices: Sequence[SliceDevice], look: _Look, index: int) -> tuple[str, ...]:
        """Describe the devices' values of the fields that the selector reads, or the selector's error."""
        if index in look.errors:
            return (f"fails: {look.errors[index]}",)
        texts = []
        for kind, name in compile_selector(look.selectors[index][1], self._rules.selectors).reads():
            counts = Counter(field_text(device, kind, name) for device in devices)
            texts.append(f"{name.rpartition('/')[2] or kind}: {counts_text(counts)}")
        return tuple(texts)

    # Which counter is short only matters once the charge as a whole fails.
    def _counter_lack(self, look: _Look, candidate: Candidate) -> str:
        device, pool = candidate
        if ConsumedCounters(self._available).charge(device, pool):
            return ""
        remaining = self._available.of(pool)
        for counter_set, counter, amount in device.consumes:
            if amount > remaining[counter_set][counter]:
                for neighbour in (*pool.devices, *pool.unreachable_devices):
                    if self._allocated.is_allocated(neighbour.id) and any(
                        consumption[0] == counter_set for consumption in neighbour.consumes
                    ):
                        look.holders[neighbour.id] = None
                free = amount_text(remaining[counter_set][counter])
                needs = f"{amount_text(amount)} of counter {counter_set}/{counter}, {free} left"
                return f"in need of {needs}"
        return "in need of counters that are used up"

    def _unmet(self, look: _Look, reason: str = "") -> _Finding:
        data = look.data
        mismatches: tuple[Mismatch, ...] = ()
        if len(look.matching) < (look.count or 1):
            mismatches = tuple(
                Mismatch(*look.selectors[index], len(devices), self._values(devices, look, index))
                for index, devices in sorted(look.mismatches.items())
            )
        unmet = UnmetRequest(
            data.claim.key,
            data.full_name,
            data.device_class.key,
            look.count,
            look.devices,
            len(look.matching),
            look.taken_count,
            len(look.free),
            mismatches,
            (),
            tuple(f"{count} {lack}" for lack, count in look.lacks.most_common()),
            reason,
        )
        indexes = (
            [index for index, device in enumerate(self._devices) if device.id in look.holders] if look.holders else []
        )
        return _Finding(unmet, indexes)

    # ------------------------------------------------------------ all requests together

    def _too_much_together(self, claim_data: Sequence[ClaimData]) -> tuple[int, int, str]:
        """Return the first request that exceeds what the earlier ones leave, by claim and request index, and why."""
        places = [(index, number) for index, claim in enumerate(claim_data) for number in range(len(claim.requests))]
        try:
            # First without constraints: without enough devices, constraints are not to blame.
            for index, number in places:
                if not self._finds(claim_data[: index + 1], number + 1, None):
                    is_first = (index, number) == places[0]
                    return index, number, _TOO_MANY_AT_ONCE if is_first else _TOO_MANY_BESIDE
            for index, number in places:
                if not self._finds(claim_data[: index + 1], number + 1):
                    return index, number, self._constraint_reason(claim_data, index, number)
        except (StepsExceededError, AllocationError):
            return (*places[-1], _TOO_LONG)
        return (*places[-1], _ALLOCATABLE)

    def _finds(
        self, claim_data: Sequence[ClaimData], count: int, constraints: Sequence[DeviceConstraint] | None = ()
    ) -> bool:
        """Return True if there are devices for these claims, counting only so many requests of the last one.

        Args:
            constraints: those of the last claim; () for all of them, None for no constraints of any claim.

        Raises: AllocationError, StepsExceededError.
        """
        if not self._shortages.may_search():
            raise StepsExceededError
        parts = []
        for claim in claim_data:
            is_last = claim is claim_data[-1]
            constraints_of_claim = claim.claim.spec.devices.constraints if constraints is not None else ()
            constraints_here = constraints if is_last and constraints else constraints_of_claim
            fresh = tuple(
                constraint_state
                for constraint in constraints_here
                if (constraint_state := new_constraint(constraint, self._rules)) is not None
            )
            parts.append(ClaimData(claim.claim, claim.requests[:count] if is_last else claim.requests, fresh))
        choices = Choices(parts, self._allocated, self._available, self._rules, undoes_all=True)
        return self._run(Search(parts, self._pools.pools, self._reader(), choices).run())

    def _constraint_reason(self, claim_data: Sequence[ClaimData], index: int, number: int) -> str:
        """Return the claim's constraint that refuses the request, with the attribute's values on the free devices."""
        constraints = claim_data[index].claim.spec.devices.constraints
        if len(constraints) == 1:
            return self._attribute_reason(constraints[0], claim_data[index].requests[number])
        for refusing in constraints:
            rivals = [constraint for constraint in constraints if constraint is not refusing]
            if self._finds(claim_data[: index + 1], number + 1, rivals):
                return self._attribute_reason(refusing, claim_data[index].requests[number])
        names = ", ".join(_constraint_text(constraint) for constraint in constraints)
        return f"the constraints refuse them together: {names}"

    def _attribute_reason(self, constraint: DeviceConstraint, alternatives: Sequence[RequestData]) -> str:
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        free = [device for data in alternatives for device in self._look(data).free]
        counts = Counter(field_text(device, "attributes", name) for device in free)
        return f"{_constraint_text(constraint)} refuses them (of the free ones: {counts_text(counts)})"


_TOO_LONG: Final = "finding out why takes too long"
_ALLOCATABLE: Final = "all requests can be met now"
_TOO_MANY_AT_ONCE: Final = "each is free by itself, but not so many at once: they share counters"
_TOO_MANY_BESIDE: Final = "too few of them are left beside the requests before it"


def _constraint_text(constraint: DeviceConstraint) -> str:
    if constraint.match_attribute is not None:
        return f"constraint matchAttribute {constraint.match_attribute}"
    return f"constraint distinctAttribute {constraint.distinct_attribute}"


def _capacity_lack(
    data: RequestData, device: SliceDevice, consumed_amounts: Mapping[str, int], rules: DeviceRules
) -> str:
    """Return the capacity that the device lacks for the request."""
    capacities = device.device.capacity or {}
    for name in data.capacities:
        if name not in capacities:
            return f"without capacity {name}"
    for name, amount in consumption(data.capacities, capacities, rules).items():
        remaining = parse(capacities[name].value).nano_value - consumed_amounts.get(name, 0)
        if amount.nano > remaining:
            has = (
                f"{amount_text(remaining)} left"
                if consumed_amounts.get(name)
                else f"has {canonical_text(capacities[name].value)}"
            )
            return f"short of {name} (asks for {amount.text}, {has})"
    return "whose policy allows no such amount"

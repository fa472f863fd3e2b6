"""Checks and completes the requests of a pod's claims before the search for devices begins.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, v0.36.2 and
v0.37.2.
Differs: a request for all devices does not fail for a broken pool of a driver that its selectors exclude.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from podium.cel import CompileError, EvaluationError
from podium.config.release_rules import DeviceRules
from podium.devices.allocated import AllocatedDevices
from podium.devices.answers import SHORT_MAX
from podium.devices.capacity import has_capacity
from podium.devices.constraints import Constraint, new_constraint
from podium.devices.errors import AllocationError, BrokenPoolError, CapacityError
from podium.devices.interruptible import Interruptible
from podium.devices.inventory import SliceDevice
from podium.devices.pools import Pool
from podium.devices.selectors import compile_selector, with_hint
from podium.devices.step_budget import StepBudget
from podium.objects.claims import DeviceRequest, ExactDeviceRequest, ResourceClaim
from podium.objects.devices import DeviceClass, DeviceSelector
from podium.objects.meta import RawQuantity
from podium.objects.quantity import QuantityError, parse

RESULTS_MAX: Final = 32
"""The most devices that a claim can hold."""

_ALL: Final = "All"
_EXACT_COUNT: Final = "ExactCount"

T = TypeVar("T")

GetClass = Callable[[str], DeviceClass | None]


class Candidate(NamedTuple):
    """A device that the node can reach, with its pool."""

    device: SliceDevice
    pool: Pool


@dataclass(frozen=True, eq=False, slots=True)
class RequestData:
    """A request, or one of the alternatives of a request.

    Attributes:
        parent: the name of the request whose alternative this is; "" if it is no alternative.
        count: how many devices it needs.
        devices: the devices that it needs, if it asks for all.
    """

    claim: ResourceClaim
    request: ExactDeviceRequest
    name: str
    parent: str
    device_class: DeviceClass
    count: int = 0
    devices: tuple[Candidate, ...] | None = None

    @property
    def full_name(self) -> str:
        """`<request>`, or `<request>/<subrequest>`."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def base_and_subrequest(self) -> tuple[str, str]:
        """The names of the request and of the subrequest, or ""."""
        return (self.parent, self.name) if self.parent else (self.name, "")

    @property
    def has_admin_access(self) -> bool:
        """It may have devices that are in use."""
        return bool(self.request.admin_access)

    @property
    def capacities(self) -> Mapping[str, RawQuantity]:
        """The capacities that it names."""
        return {} if self.request.capacity is None else self.request.capacity.requests


@dataclass(frozen=True, eq=False, slots=True)
class ClaimData:
    """A claim that is to be allocated.

    Attributes:
        requests: the alternatives of each request; an exact one has one.
    """

    claim: ResourceClaim
    requests: tuple[tuple[RequestData, ...], ...]
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, eq=False, slots=True)
class RequestReader:
    """Reads the claims of a pod for one node."""

    node_name: str
    labels: Mapping[str, str]
    pools: Sequence[Pool]
    allocated: AllocatedDevices
    class_of: GetClass
    budget: StepBudget
    rules: DeviceRules

    def read(self, claims: Sequence[ResourceClaim]) -> Interruptible[tuple[ClaimData, ...]]:
        """Return the claims as the search needs them. Yields where it can be interrupted.

        Raises:
            AllocationError: a claim cannot be allocated on any account.
            StepsExceededError.
        """
        return (yield from _in_turn(self._claim(claim) for claim in claims))

    def is_selectable_soon(self, data: RequestData, device: SliceDevice) -> bool | None:
        """Test as `is_selectable`; None if that would raise an error, or take longer than a few milliseconds."""
        for selectors in (data.device_class.spec.selectors, data.request.selectors):
            for selector in selectors:
                matches = device.matches_soon(expression_of(selector), self.budget)
                if not matches:
                    return matches
        return self._is_within_reach(device)

    def is_selectable(self, data: RequestData, device: SliceDevice) -> Interruptible[bool]:
        """Return True if the class, the request and the device's own node selection allow the device.

        Yields where it can be interrupted.

        Raises:
            AllocationError: a selector has no answer.
        """
        of_class, of_claim = f"class {data.device_class.key}", f"claim {data.claim.key}"
        for owner, selectors in ((of_class, data.device_class.spec.selectors), (of_claim, data.request.selectors)):
            for index, selector in enumerate(selectors):
                try:
                    if not (yield from device.matches_interruptibly(expression_of(selector), self.budget)):
                        return False
                except CompileError as error:
                    raise AllocationError(f"{owner}: selector #{index}: CEL compile error: {error}") from None
                except EvaluationError as error:
                    place, text = f"selector #{index}", str(error)
                    if self.rules.name_failing_device:
                        place, text = f"{place} on device {device.id}", with_hint(text)
                    raise AllocationError(f"{owner}: {place}: CEL runtime error: {text}") from None
        return self._is_within_reach(device)

    def _is_within_reach(self, device: SliceDevice) -> bool:
        return device.selection is None or device.selection.matches(self.node_name, self.labels)

    def _claim(self, claim: ResourceClaim) -> Interruptible[ClaimData]:
        requests = []
        count = 0
        # The smallest alternatives count, as the largest may never be tried.
        for request in claim.spec.devices.requests:
            alternatives = yield from self._alternatives(claim, request)
            least = min(alternative.count for alternative in alternatives)
            if self.rules.limit_each_request and least > RESULTS_MAX - count:
                limit = f"the claim limit of {RESULTS_MAX}, with {count} already accounted for"
                raise AllocationError(
                    f"claim {claim.key}, request {request.name}: adding {least} devices exceeds {limit}"
                )
            requests.append(alternatives)
            count += least
        if count > RESULTS_MAX:
            raise AllocationError(
                f"claim {claim.key}: number of requested devices {count} exceeds the claim limit of {RESULTS_MAX}"
            )
        constraints = []
        for index, device_constraint in enumerate(claim.spec.devices.constraints):
            constraint = new_constraint(device_constraint, self.rules)
            if constraint is None:
                reason = "empty constraint (unsupported constraint type?)"
                raise AllocationError(f"claim {claim.key}, constraint #{index}: {reason}")
            constraints.append(constraint)
        return ClaimData(claim, tuple(requests), tuple(constraints))

    def _alternatives(self, claim: ResourceClaim, request: DeviceRequest) -> Interruptible[tuple[RequestData, ...]]:
        if request.first_available:
            parts = (
                self._request(claim, alternative, alternative.name, request.name)
                for alternative in request.first_available
            )
            return (yield from _in_turn(parts))
        return ((yield from self._request(claim, request.exactly or ExactDeviceRequest(), request.name, "")),)

    def _request(
        self, claim: ResourceClaim, request: ExactDeviceRequest, name: str, parent: str
    ) -> Interruptible[RequestData]:
        request_path = f"claim {claim.key}, request {name}"
        # Of every request, before any device is looked at: upstream reports a broken request on every node.
        if request.derived_attributes and self.rules.refuse_alpha_fields:
            raise AllocationError(
                f"{request_path}: cannot handle request with derived attributes, the feature is disabled"
            )
        _demand_readable(request, request_path)
        class_name = request.device_class_name
        if not class_name:
            raise AllocationError(f"{request_path}: missing device class name (unsupported request type?)")
        device_class = self.class_of(class_name)
        if device_class is None:
            reason = f'deviceclass.resource.k8s.io "{class_name}" not found'
            raise AllocationError(f"{request_path}: could not retrieve device class {class_name}: {reason}")
        mode = request.allocation_mode or _EXACT_COUNT
        if mode == _EXACT_COUNT:
            return RequestData(claim, request, name, parent, device_class, request.count or 1)
        if mode != _ALL:
            raise AllocationError(f"{request_path}: unsupported count mode {mode}")
        devices = yield from self._all_devices(RequestData(claim, request, name, parent, device_class), request_path)
        return RequestData(claim, request, name, parent, device_class, len(devices), devices)

    def _all_devices(self, data: RequestData, request_path: str) -> Interruptible[tuple[Candidate, ...]]:
        """Return every device that is selectable and has the capacity, in use or not.

        If devices whose capacity is used up count, one of them fails the request.
        """
        candidates = []
        for pool in self.pools:
            # "All" of a pool that is being updated is not known.
            if pool.is_incomplete or pool.is_invalid:
                if _excludes(data, pool.driver, self.rules):
                    continue
                state = "being updated" if pool.is_incomplete else "invalid"
                text = f"{request_path}: asks for all devices, but resource pool {pool} is currently {state}"
                # A pool that is only incomplete heals with the next slice; one that contradicts itself never does.
                raise BrokenPoolError(text) if pool.contradicts_itself else AllocationError(text)
            for device in pool.devices:
                if self.budget.take():
                    yield None
                is_selectable = self.is_selectable_soon(data, device)
                if is_selectable is None:
                    is_selectable = yield from self.is_selectable(data, device)
                # Taken devices count: "all" must fail while one of them is in use, not shrink.
                if is_selectable and self._has_capacity(data, device, request_path):
                    candidates.append(Candidate(device, pool))
        return tuple(candidates)

    def _has_capacity(self, data: RequestData, device: SliceDevice, where: str) -> bool:
        usage = {} if self.rules.list_full_devices else self.allocated.consumed.of(device.id)
        try:
            return has_capacity(data.capacities, device.device.capacity or {}, self.rules, usage)
        except CapacityError as error:
            text = f"{where}: checking capacity for device {device.id.device}: {error}"
            raise AllocationError(text) from None


def _excludes(data: RequestData, driver: str, rules: DeviceRules) -> bool:
    """Return True if a selector names another driver, so that it matches no device of this driver."""
    for selector in (*data.device_class.spec.selectors, *data.request.selectors):
        expression = expression_of(selector)
        # Compiling a long expression would take longer than the check saves.
        if len(expression) > SHORT_MAX:
            continue
        try:
            only_driver = compile_selector(expression, rules.selectors).driver
        except CompileError:
            continue
        if only_driver is not None and only_driver != driver:
            return True
    return False


def _demand_readable(request: ExactDeviceRequest, request_path: str) -> None:
    for index, selector in enumerate(request.selectors):
        if selector.cel is None:
            raise AllocationError(
                f"{request_path}, selector #{index}: CEL expression empty (unsupported selector type?)"
            )
    for name, amount in ({} if request.capacity is None else request.capacity.requests).items():
        try:
            parse(amount)
        except QuantityError as error:
            raise AllocationError(f"{request_path}, capacity {name}: {error}") from None


def _in_turn(parts: Iterable[Interruptible[T]]) -> Interruptible[tuple[T, ...]]:
    results: list[T] = []
    for part in parts:
        result = yield from part
        results.append(result)
    return tuple(results)


def expression_of(selector: DeviceSelector) -> str:
    """Return the expression of a selector; "" if it is of an unknown kind."""
    return "" if selector.cel is None else selector.cel.expression

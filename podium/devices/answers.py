"""Caches the answers of selectors, once for all devices that look alike to them.

Owns the answers, and what is done where an evaluation is too long to be done between two turns of the event loop.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from podium.cel import BoundDevice, CompileError, EvaluationError, SelectorRules, parse_version
from podium.config.releases import NEWEST
from podium.devices.interruptible import Interruptible
from podium.devices.selectors import bind_device, compile_selector
from podium.devices.step_budget import StepBudget
from podium.objects.devices import Device, DeviceCapacity
from podium.objects.meta import RawQuantity
from podium.objects.quantity import QuantityError, parse

_ANSWERS_MAX: Final = 256
_LOOKS_MAX: Final = 16_384
_SHARED_MAX: Final = 16_384
_NAMES_MAX, _TEXT_MAX = 100, 128
"""More than the API allows. Devices with more are not plain."""
_VERSIONS_MAX: Final = 1024
_TEXTS_MAX: Final = 1024
SHORT_MAX: Final = 500
"""A selector of this length is compiled in a few milliseconds, and in 15 ms at most."""
_COST_PER_STEP: Final = 50
"""The cost of an evaluation that takes as long as one step of the search."""

_Outcome: TypeAlias = bool | CompileError | EvaluationError


class Answers:
    """The answers of selectors for all devices that look alike to them.

    Args:
        long_expressions: the long selectors that have been compiled.
    """

    __slots__ = ("_by_expression", "_compiled", "_device", "_rules")

    def __init__(self, device: BoundDevice, long_expressions: set[str], rules: SelectorRules) -> None:
        self._device = device
        self._rules = rules
        self._compiled = long_expressions
        self._by_expression: dict[str, _Outcome] = {}

    def soon(self, expression: str, budget: StepBudget) -> bool | None:
        """Return the answer; None if it is an error, takes more than a few milliseconds, or the turn is over."""
        outcome: _Outcome | None = self._by_expression.get(expression)
        if outcome is None:
            if budget.is_turn_over or (len(expression) > SHORT_MAX and expression not in self._compiled):
                return None
            cost = 0
            try:
                outcome, cost = compile_selector(expression, self._rules).answer_soon(self._device)
            except (CompileError, EvaluationError) as error:
                outcome = error
            budget.charge(cost // _COST_PER_STEP)
            if outcome is not None:
                self._keep(expression, outcome)
        return outcome if outcome is True or outcome is False else None

    def find(self, expression: str, budget: StepBudget) -> Interruptible[bool]:
        """Return the answer, and yield the work to find it. Raises: CompileError, EvaluationError."""
        if budget.is_turn_over:
            yield None
            budget.start_turn()
        if (answer := self.soon(expression, budget)) is not None:
            return answer
        outcome = self._by_expression.get(expression)
        if outcome is None:
            evaluation = _Evaluation(expression, self._device, self._rules)
            yield evaluation
            outcome, cost = evaluation.result()
            budget.charge(cost // _COST_PER_STEP)
            self._keep(expression, outcome)
            if len(self._compiled) >= _TEXTS_MAX:
                self._compiled.clear()
            self._compiled.add(expression)
        if isinstance(outcome, Exception):
            raise type(outcome)(str(outcome))
        return outcome

    def _keep(self, expression: str, outcome: _Outcome) -> None:
        if len(self._by_expression) >= _ANSWERS_MAX:
            self._by_expression.clear()
        self._by_expression[expression] = outcome


class _Evaluation:
    """Work that evaluates a selector for a device."""

    __slots__ = ("_device", "_expression", "_result", "_rules")

    def __init__(self, expression: str, device: BoundDevice, rules: SelectorRules) -> None:
        self._expression = expression
        self._rules = rules
        self._device = device
        self._result: tuple[_Outcome, int] | None = None

    def __call__(self) -> None:
        try:
            self._result = compile_selector(self._expression, self._rules).answer(self._device)
        except (CompileError, EvaluationError) as error:
            self._result = error, 0

    def result(self) -> tuple[_Outcome, int]:
        """Return the answer and its cost."""
        if self._result is None:
            self()
            assert self._result is not None
        return self._result


class _Field(NamedTuple):
    """An attribute or a capacity by its full name, and by that within its domain."""

    is_capacity: bool
    name: str
    domain: str
    identifier: str


class Looks:
    """The answers that devices of an inventory share: those that look alike, and those that do so to a selector.

    The devices of a fleet differ at least in their UUIDs, so that hardly any two look alike. But most selectors read a
    few fields, and have one answer for all devices with the same values there.

    Args:
        rules: the environment of the selectors.

    Invariant: the answers depend only on the questions asked about these devices. A search is interrupted where an
    answer is not known, and a replay has to be interrupted there, too.
    """

    def __init__(self, rules: SelectorRules = NEWEST.devices.selectors) -> None:
        self._rules = rules
        self._answers: dict[tuple[object, ...], Answers] = {}
        self._compiled: set[str] = set()
        self._fields: dict[str, tuple[_Field, ...] | None] = {}
        self._shared: dict[Hashable, bool] = {}

    def key(self, expression: str, driver: str, device: Device) -> Hashable | None:
        """Return what the answer of a selector for a plain device depends on; None if that may be all of the device."""
        try:
            fields = self._fields[expression]
        except KeyError:
            if len(self._fields) >= _TEXTS_MAX:
                self._fields.clear()
            fields = self._fields[expression] = _fields_of(expression, self._rules)
        if fields is None:
            return None
        key: list[object] = [expression, driver, device.allow_multiple_allocations]
        attributes, capacity = device.attributes or {}, device.capacity or {}
        for is_capacity, name, domain, identifier in fields:
            values = capacity if is_capacity else attributes
            value = values.get(name)
            if domain == driver and (own := values.get(identifier)) is not None:
                if value is not None:
                    return None  # The last one counts.
                value = own
            key.append(str(value.value) if isinstance(value, DeviceCapacity) else value)
        return tuple(key)

    def answer_for(self, key: Hashable) -> bool | None:
        """Return the answer that has been shared under the key."""
        return self._shared.get(key)

    def share(self, key: Hashable, answer: bool) -> None:
        """Share an answer with all devices that have the same key."""
        if len(self._shared) >= _SHARED_MAX:
            self._shared.clear()
        self._shared[key] = answer

    def of(self, driver: str, device: Device) -> Answers:
        """Return the answers that devices of a driver with equal attributes and capacities share.

        Raises: EvaluationError: an attribute or a capacity cannot be read.
        """
        attributes, capacity = device.attributes or {}, device.capacity or {}
        amounts = ((name, str(amount.value)) for name, amount in capacity.items())
        look = (driver, device.allow_multiple_allocations, tuple(attributes.items()), *amounts)
        answers = self._answers.get(look)
        if answers is None:
            if len(self._answers) >= _LOOKS_MAX:
                self._answers.clear()
            bound_device = bind_device(driver, device, self._rules)
            answers = self._answers[look] = Answers(bound_device, self._compiled, self._rules)
        return answers


def _fields_of(expression: str, rules: SelectorRules) -> tuple[_Field, ...] | None:
    """Return the attributes and capacities on which a short selector's answer depends, beside the driver."""
    if len(expression) > SHORT_MAX:
        return None
    try:
        fields = compile_selector(expression, rules).fields()
    except CompileError:
        return None
    if fields is None:
        return None
    parts = ((kind, name, name.partition("/")) for kind, name in fields if kind != "driver")
    return tuple(_Field(kind == "capacity", name, domain, identifier) for kind, name, (domain, _, identifier) in parts)


def is_plain(device: Device) -> bool:
    """Return whether all of the device is readable and small, as nearly every device is.

    Otherwise selectors fail, or cost more, for what they need not even read.
    """
    attributes, capacity = device.attributes or {}, device.capacity or {}
    texts = [*attributes, *capacity]
    for attribute in attributes.values():
        # Without a generator: this runs for every attribute of every device.
        if (
            attribute.ints is not None
            or attribute.bools is not None
            or attribute.strings is not None
            or attribute.versions is not None
        ):
            return False
        if attribute.int_value is not None or attribute.bool_value is not None:
            continue
        if attribute.string is not None:
            texts.append(attribute.string)
        elif attribute.version is None or not _is_version(attribute.version):
            return False
    return (
        len(texts) <= _NAMES_MAX
        and max(map(len, texts), default=0) <= _TEXT_MAX
        and all(_is_quantity(amount.value) for amount in capacity.values())
    )


@lru_cache(_VERSIONS_MAX)
def _is_version(text: str) -> bool:
    try:
        parse_version(text)
    except EvaluationError:
        return False
    return True


def _is_quantity(raw: RawQuantity) -> bool:
    try:
        parse(str(raw))
    except QuantityError:
        return False
    return True

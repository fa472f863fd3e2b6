"""Device selectors: compile an expression once, and evaluate it for devices.

Differs: several threads may compile the same expression at once; upstream lets them wait for one another. The size of
a value is limited by `values.SIZE_MAX`, and the work on nested values by `values.WALK_MAX`; upstream has no limit.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from podium.cel.checker import Checker
from podium.cel.devices import BoundDevice
from podium.cel.environment import attribute_type, functions_with
from podium.cel.errors import CompileError, CostLimitError, EvaluationError, PanicError
from podium.cel.folding import fold
from podium.cel.frame import COST_SLOT, Run, new_frame
from podium.cel.functions import Function
from podium.cel.libraries.quantities import ParseQuantity
from podium.cel.literal_checks import check_literals
from podium.cel.panics import tracked_argument
from podium.cel.parser import parse
from podium.cel.planner import Planner
from podium.cel.regex.matching import NO_LIMIT, limit_steps, steps_left
from podium.cel.rules import SelectorRules
from podium.cel.syntax import UNUSED, Call, Comprehension, Expr, Ident, Literal, Select, children, walk
from podium.cel.types import BOOL, DOUBLE, INT, UINT, is_optional
from podium.cel.values import start_walk, type_name

COST_LIMIT = 1_000_000
_SOON_COST_MAX: Final = 4_000
_SOON_STEPS_MAX: Final = 20_000
"""An evaluation of this cost, or with regular expressions of this many steps, takes a few milliseconds."""
_STEPS_PER_COST: Final = 10
_CHARACTERS_PER_COST: Final = 10
"""The length of an expression that is evaluated for about a cost of 1, where costs are not counted."""
_CACHED_MAX = 1024
_WEIGHT_MAX, _TEXT_WEIGHT = 200, 64
_GROWING = frozenset({"replace", "join", "format", "strings.quote", "lists.range", "flatten"})
_NUMBERS = frozenset({INT, UINT, DOUBLE})
_LOOK_UPS = frozenset({"_[_]", "_[?_]", "_?._"})


class Selector:
    """A compiled expression. Safe to use from any number of threads.

    Args:
        text: the expression.
        parse_quantity: the parser of quantities in the expression.
        rules: those of the environment.

    Attributes:
        driver: the only driver whose devices it can select, if a comparison says so; else None.

    Raises: CompileError.
    """

    __slots__ = ("_functions", "_is_expensive", "_plans", "_rules", "_tree", "driver", "text")

    def __init__(self, text: str, parse_quantity: ParseQuantity, rules: SelectorRules) -> None:
        self.text = text
        self._rules = rules
        self._functions = functions_with(parse_quantity, rules)
        self._tree = _compile(text, self._functions, rules)
        self._is_expensive = _may_be_expensive(self._tree)
        self.driver = _only_driver(self._tree)
        self._plans: dict[bool, tuple[Run, int]] = {}
        try:
            # At once, so that an expression that nests too deeply is refused on creation, not for some device.
            self._plan(counts_costs=self._is_expensive)
        except RecursionError:
            raise CompileError("the expression nests too deeply") from None

    def _plan(self, *, counts_costs: bool) -> tuple[Run, int]:
        """Compile the expression to a closure, with or without costs. Also returns the size of its frames."""
        plan = self._plans.get(counts_costs)
        if plan is None:
            distrusts = any(map(_may_lie, walk(self._tree)))
            planner = Planner(
                self._functions,
                counts_costs=counts_costs,
                distrusts=distrusts,
                may_panic=any(tracked_argument(node) is not None for node in walk(self._tree)),
                keeps_optionals=self._rules.keeps_optionals,
            )
            plan = self._plans[counts_costs] = planner.plan(self._tree), planner.slots
        return plan

    def reads(self) -> tuple[tuple[str, str], ...]:
        """Return the fields that it reads, in order: `attributes` or `capacity` with the full name, or `driver`."""
        return tuple(dict.fromkeys(field for node in walk(self._tree) if (field := _field(node)) is not None))

    def fields(self) -> tuple[tuple[str, str], ...] | None:
        """Return the fields of `reads` if its answer depends on nothing else; None if it may look at all fields."""
        fields: dict[tuple[str, str], None] = {}
        nodes = [self._tree]
        while nodes:
            node = nodes.pop()
            if (field := _field(node)) is not None:
                fields[field] = None
            elif isinstance(node, Ident) and node.name == "device":
                return None
            else:
                nodes += children(node)
        return tuple(fields)

    def matches(self, device: BoundDevice) -> bool:
        """Tell whether the selector selects a device.

        Raises: EvaluationError: the expression fails, gives a value other than a bool, or exceeds the cost limit.
        """
        return self.answer(device)[0]

    def answer(self, device: BoundDevice) -> tuple[bool, int]:
        """Tell whether the selector selects a device, and estimate the work, which costs alone do not cover."""
        try:
            return self._answer(device, COST_LIMIT, NO_LIMIT)
        except CostLimitError as error:
            raise EvaluationError(str(error)) from None

    def answer_soon(self, device: BoundDevice) -> tuple[bool | None, int]:
        """Answer as `answer` does; None if that takes longer than a few milliseconds."""
        try:
            return self._answer(device, _SOON_COST_MAX, _SOON_STEPS_MAX)
        except CostLimitError:
            return None, _SOON_COST_MAX

    def _answer(self, device: BoundDevice, cost_limit: int, steps_max: int) -> tuple[bool, int]:
        # The costs of CEL charge a search by the length of its text alone, whatever the pattern does with it.
        limit_steps(steps_max)
        answer, cost = self._run(device, cost_limit, counts_costs=self._is_expensive or not device.is_small)
        steps = steps_max - steps_left()
        return answer, cost + steps // _STEPS_PER_COST + len(self.text) // _CHARACTERS_PER_COST

    def evaluate(self, device: BoundDevice, cost_limit: int = COST_LIMIT) -> tuple[bool, int]:
        """Tell whether the selector selects a device, and the cost of the evaluation. Raises: EvaluationError."""
        limit_steps(NO_LIMIT)
        try:
            return self._run(device, cost_limit, counts_costs=True)
        except CostLimitError as error:
            raise EvaluationError(str(error)) from None

    def _run(self, device: BoundDevice, cost_limit: int, *, counts_costs: bool) -> tuple[bool, int]:
        try:
            run, slots = self._plan(counts_costs=counts_costs)
            # Comparing nested values has no cost upstream; this counts their elements.
            start_walk()
            frame = new_frame(device.variables, cost_limit, slots)
            value = run(frame)
        except RecursionError:
            raise EvaluationError("the expression nests too deeply") from None
        except PanicError as error:
            raise EvaluationError(f"internal error: {error}") from None
        if value is True or value is False:
            return bool(value), frame[COST_SLOT]
        raise EvaluationError(f"CEL result of type {type_name(value)} could not be converted to bool")


@functools.lru_cache(maxsize=_CACHED_MAX)
def compile_selector(text: str, parse_quantity: ParseQuantity, rules: SelectorRules) -> Selector:
    """Compile a selector. Results are cached. Raises: CompileError: errors are not cached."""
    return Selector(text, parse_quantity, rules)


def _compile(text: str, functions: Mapping[str, Function], rules: SelectorRules) -> Expr:
    if not text.isascii():
        # Upstream's JSON decoder replaces lone surrogates by the replacement character.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    try:
        tree = parse(text, has_quoted_fields=rules.has_quoted_fields)
        checker = Checker(text, functions, rules)
        checker.check(tree)
        check_literals(tree, checker, text)
        result = checker.resolve(tree)
        for node in walk(tree):
            node.type = checker.resolve(node)
        if result not in (BOOL, attribute_type(rules)):
            raise CompileError(f"must evaluate to bool or the unknown type, not {result}")
        return fold(tree)
    except RecursionError:
        raise CompileError("the expression nests too deeply") from None


def _may_lie(node: Expr) -> bool:
    """Tell whether the value may have another type than the checker determined.

    `dyn(1).orValue("a")` is 1, and an optional of an optional loses one level when it is read from a variable.
    """
    if is_optional(node.type) and is_optional(node.type.parameters[0]):
        return True
    if not isinstance(node, Call) or node.function not in ("or", "orValue") or node.target is None:
        return False
    return not is_optional(node.target.type) or (node.function == "or" and not is_optional(node.arguments[0].type))


def _only_driver(tree: Expr) -> str | None:
    """Return the driver that a conjunct compares `device.driver` with."""
    match tree:
        case Call(function="_&&_"):
            return next((driver for part in tree.arguments if (driver := _only_driver(part)) is not None), None)
        case Call(function="_==_", arguments=[lhs, rhs]):
            for variable, literal in ((lhs, rhs), (rhs, lhs)):
                match variable, literal:
                    case Select(operand=Ident(name="device"), name="driver"), Literal(value=str() as driver):
                        return driver
    return None


def _field(node: Expr) -> tuple[str, str] | None:
    """Return the field of the device that a node reads, in the form of `Selector.reads`."""
    member = _member(node)
    if member is None:
        return None
    owner, name = member
    if isinstance(owner, Ident):
        return ("driver", "") if (owner.name, name) == ("device", "driver") else None
    domain = _member(owner)
    kind = None if domain is None else _member(domain[0])
    if domain is None or kind is None or not isinstance(kind[0], Ident) or kind[0].name != "device":
        return None
    return (kind[1], f"{domain[1]}/{name}") if kind[1] in ("attributes", "capacity") else None


def _member(node: Expr) -> tuple[Expr, str] | None:
    """Return the operand and the constant name of a lookup."""
    match node:
        case Select():
            return node.operand, node.name
        case Call(arguments=[owner, Literal(value=str() as name)]) if node.function in _LOOK_UPS:
            return owner, name
    return None


def _may_be_expensive(tree: Expr) -> bool:
    """Tell whether an evaluation may reach the cost limit with a device of the size that the API allows."""
    nodes = walk(tree)
    # Devices are small by the API's limits, so only loops and growing values can reach a cost of a million.
    return sum(map(_weight, nodes)) > _WEIGHT_MAX or any(map(_repeats_or_grows, nodes))


def _weight(node: Expr) -> int:
    """Return the weight of a node in the cost estimate: 1, and more for large constants."""
    if not isinstance(node, Literal):
        return 1
    return 1 + (len(node.value) // _TEXT_WEIGHT if isinstance(node.value, (str, bytes)) else _content_count(node.value))


def _content_count(value: object) -> int:
    """Count the values in a constant list or map, at all depths."""
    content = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    return sum(1 + _content_count(part) for part in content)


def _repeats_or_grows(node: Expr) -> bool:
    match node:
        case Comprehension():
            return node.variable != UNUSED
        case Call(function="_+_"):
            # Sums of texts and lists grow; those of numbers do not.
            return node.type not in _NUMBERS
        case Call():
            return node.function in _GROWING
    return False

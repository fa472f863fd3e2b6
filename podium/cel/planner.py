"""Compile a checked syntax tree to closures.

A planner either tracks costs or does not. Without tracking, an expression runs about twice as fast.
Source: the costs are those of cel-go's cost tracker, 0.26.0 and 0.29.2, as Kubernetes configures it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.cel import comprehensions, operators, panics
from podium.cel.access import as_read, is_present, select, select_optional
from podium.cel.errors import EvaluationError, no_such_overload
from podium.cel.frame import DEVICE_SLOT, FIRST_SLOT, Frame, Run, charge
from podium.cel.functions import Function
from podium.cel.libraries import regexes
from podium.cel.syntax import (
    TARGET,
    UNUSED,
    Call,
    Comprehension,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
)  # fmt: skip
from podium.cel.types import Type, is_optional
from podium.cel.unification import is_dynamic
from podium.cel.values import Optional

_LIST_COST, _MAP_COST = 10, 30
_CONSTRUCTORS = frozenset({"quantity", "semver", "ip", "cidr", "url"})
_ATTRIBUTES = frozenset({"_[_]", "_[?_]", "_?._", "_?_:_"})
_DYNAMIC = frozenset({"dyn", "any", "parameter", "error"})
_DEVICE_PATH_MAX = 3


class Planner:
    """Compiles one expression.

    Args:
        functions: the functions of the environment, by name.
        counts_costs: the closures count costs.
        distrusts: values may have other types than the checker determined.
        may_panic: the expression has a call at which upstream may panic.
        keeps_optionals: see `SelectorRules`.
    """

    def __init__(
        self,
        functions: Mapping[str, Function],
        *,
        counts_costs: bool,
        distrusts: bool,
        may_panic: bool,
        keeps_optionals: bool,
    ) -> None:
        self._functions = functions
        self._keeps_optionals = keeps_optionals
        self._counts_costs = counts_costs
        self._distrusts = distrusts
        self._may_panic = may_panic
        self._scope: dict[str, Run] = {"device": _DEVICE}
        self._next_slot = FIRST_SLOT
        self.slots = FIRST_SLOT

    def plan(self, node: Expr) -> Run:
        """Compile the expression to a closure."""
        match node:
            case Literal(value=value):
                return lambda _frame: value
            case Ident():
                # The target of `optMap` is the planner's own name, for which upstream charges nothing.
                return self._with_cost(self._name(node), 0 if node.name == TARGET else 1)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                elements = [self.plan(element) for element in node.elements]
                return self._with_cost(operators.list_literal(elements, node.optional), _LIST_COST)
            case MapLiteral():
                entries = [(self.plan(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries]
                return self._with_cost(operators.map_literal(entries), _MAP_COST)
            case Comprehension():
                return self._comprehension(node)
        raise AssertionError(node)

    def _name(self, node: Ident) -> Run:
        # Only the variable of the expression is read with a leading dot.
        run = _DEVICE if node.name == ".device" else self._scope[node.name]
        if self._keeps_optionals or node.name == TARGET or not (is_optional(node.type) or is_dynamic(node.type)):
            return run
        # Upstream converts an optional value when it reads a variable, which changes some of its types.
        return lambda frame: as_read(run(frame))

    def _with_cost(self, run: Run, cost: int) -> Run:
        if not self._counts_costs or not cost:
            return run

        def run_and_charge(frame: Frame) -> Any:
            value = run(frame)
            charge(frame, cost)
            return value

        return run_and_charge

    def _select(self, node: Select) -> Run:
        # Costs are charged for each step of a path, which one lookup would leave out.
        path = None if self._counts_costs else _device_path(node, self._scope)
        if path is not None:
            return _device_value(*path)
        operand, field = self.plan(node.operand), node.name
        # As upstream: a chain of selections is one attribute, and charged once.
        relative = 0 if _is_attribute(node.operand) else 1
        if node.test_only:
            return self._with_cost(lambda frame: is_present(operand(frame), field), relative)
        run = self._with_cost(_selection(operand, field), relative)
        return self._with_cost_if_present(run, node.type)

    def _call(self, node: Call) -> Run:
        special = self._special(node) or self._constant(node) or self._search(node)
        if special is not None:
            return special
        values = ([] if node.target is None else [node.target]) + node.arguments
        arguments = [self.plan(value) for value in values]
        index = panics.tracked_argument(node)
        if index is not None:
            arguments[index] = panics.guard(node.function, arguments[index])
        if len(arguments) == 2:
            arguments = self._both(*arguments)
        # A list of constants as a set: selectors often compare a model with a long list.
        if node.overloads == ["in_list"] and isinstance(values[1], Literal):
            member = operators.is_member(arguments[0], values[1].value)
            if member is not None:
                return member
        # Tests of the type are left out only where the checker cannot be wrong.
        type_is_certain = [not self._distrusts and _is_known(value.type) for value in values]
        return operators.call(
            self._functions[node.function], node.overloads, arguments, type_is_certain, counts_costs=self._counts_costs
        )

    def _both(self, first: Run, second: Run) -> list[Run]:
        return [panics.evaluate_both(first, second) if self._may_panic else first, second]

    def _constant(self, node: Call) -> Run | None:
        """Evaluate a constant call such as `quantity("1Gi")` once, at compile time. A failing call stays in place."""
        # With costs the call must be charged each time.
        if self._counts_costs or node.function not in _CONSTRUCTORS or node.target is not None:
            return None
        values = tuple(argument.value for argument in node.arguments if isinstance(argument, Literal))
        if len(values) < len(node.arguments):
            return None
        try:
            value = self._functions[node.function].for_values(values).run(*values)
        except EvaluationError:
            # The error belongs to the evaluation, where `||` may absorb it.
            return None
        return lambda _frame: value

    def _search(self, node: Call) -> Run | None:
        """Compile `text.matches("pattern")`, with the pattern compiled once."""
        if self._counts_costs or node.function != "matches" or node.target is None:
            return None
        (pattern,) = node.arguments
        if not isinstance(pattern, Literal) or type(pattern.value) is not str:
            return None
        text, search = self.plan(node.target), regexes.pattern(pattern.value).search

        def run(frame: Frame) -> bool:
            value = text(frame)
            if type(value) is str:
                return search(value)
            raise no_such_overload("matches")

        return run

    def _special(self, node: Call) -> Run | None:
        """Compile calls that do not evaluate all of their arguments, or evaluate them in a special way."""
        name = node.function
        if name in ("_&&_", "_||_"):
            return operators.logical([self.plan(term) for term in node.arguments], name == "_||_")
        if name == "_?_:_":
            condition, *branches = node.arguments
            runs = [self._branch(branch) for branch in branches]
            return operators.conditional(self.plan(condition), *runs, keeps_optionals=self._keeps_optionals)
        if name in ("_==_", "_!=_"):
            return self._equality(node)
        if name in ("_[_]", "_[?_]", "_?._"):
            return self._index(node)
        if name in ("or", "orValue") and node.target is not None:
            optional, alternative = self.plan(node.target), self.plan(node.arguments[0])
            unwrap, is_strict = name == "orValue", self._keeps_optionals
            return self._with_cost(operators.optional_or(optional, alternative, unwrap=unwrap, is_strict=is_strict), 0)
        return None

    def _branch(self, node: Expr) -> Run:
        """Compile a branch of a conditional. Reading a name there has no cost."""
        run = self.plan(node)
        # Upstream merges a branch that is a name into the attribute of the conditional, so that it costs nothing.
        return self._with_cost(run, -1) if _is_attribute(node) and not _is_choice(node) else run

    def _equality(self, node: Call) -> Run:
        lhs, rhs = self._both(*(self.plan(side) for side in node.arguments))
        if node.function == "_!=_":
            return operators.not_equal(lhs, rhs, counts_costs=self._counts_costs)
        second = node.arguments[1]
        constant = second.value if isinstance(second, Literal) else None
        return operators.equal(lhs, rhs, constant, counts_costs=self._counts_costs)

    def _index(self, node: Call) -> Run:
        path = None if self._counts_costs else _device_path(node, self._scope)
        if path is not None:
            return _device_value(*path)
        operand, key = node.arguments
        cost = 0 if _is_attribute(operand) else 1
        cost -= 1 if _is_attribute(key) else 0
        container = self.plan(operand)
        place = self.plan(key)
        run: Run
        if isinstance(key, Literal) and type(key.value) is str and node.function == "_[_]":
            run = _selection(container, key.value)
        elif node.function == "_[_]":
            run = lambda frame: select(container(frame), place(frame))  # noqa: E731
        else:
            run = lambda frame: select_optional(container(frame), place(frame))  # noqa: E731
        return self._with_cost_if_present(self._with_cost(run, cost), node.type)

    def _with_cost_if_present(self, run: Run, of_type: Type) -> Run:
        """Charge for a selection, unless it is optional and the value is absent."""
        if not self._counts_costs or not is_optional(of_type):
            return self._with_cost(run, 1)

        def run_and_charge(frame: Frame) -> Any:
            value = run(frame)
            if type(value) is not Optional or value.present:
                charge(frame, 1)
            return value

        return run_and_charge

    def _slot(self) -> int:
        slot = self._next_slot
        self._next_slot += 1
        self.slots = max(self.slots, self._next_slot)
        return slot

    def _comprehension(self, node: Comprehension) -> Run:
        outer, first_slot = self._scope, self._next_slot
        try:
            # Bindings are loops over an empty list, as in cel-go's tree.
            if node.variable == UNUSED:
                return self._binding(node)
            iterated = self.plan(node.iterated)
            self._scope = dict(outer)
            first = self._slot()
            self._scope[node.variable] = _variable(first)
            second = None
            if node.second_variable is not None:
                second = self._slot()
                self._scope[node.second_variable] = _variable(second)
            return self._loop(node, comprehensions.Loop(iterated, first, second, counts_costs=self._counts_costs))
        finally:
            # Slots are used again by the next loop, which keeps frames small.
            self._scope, self._next_slot = outer, first_slot

    def _binding(self, node: Comprehension) -> Run:
        value = self.plan(node.initial)
        slot = self._slot()
        read_name = comprehensions.repeated_name if node.accumulator == TARGET else comprehensions.bound_name
        self._scope = {**self._scope, node.accumulator: read_name(slot, value)}
        return comprehensions.bind(slot, self.plan(node.result))

    def _loop(self, node: Comprehension, loop: comprehensions.Loop) -> Run:
        """Compile the loop of a macro, recognized by its accumulator step."""
        step = node.step
        assert isinstance(step, Call)
        if step.function in ("_&&_", "_||_"):
            return comprehensions.quantifier(loop, self.plan(step.arguments[1]), step.function == "_||_")
        predicate: Expr | None = None
        if step.function == "_?_:_":
            predicate, insertion, _ = step.arguments
            assert isinstance(insertion, Call)
            step = insertion
        test = self.plan(predicate) if predicate is not None else None
        if step.function == "cel.@mapInsert":
            arguments = [self.plan(argument) for argument in step.arguments[1:]]
            if len(arguments) == 1:
                return self._with_cost(comprehensions.insert_maps(loop, test, *arguments), 1)
            return self._with_cost(comprehensions.insert_entries(loop, test, *arguments), 1)
        if isinstance(node.result, Call):
            assert test is not None
            return self._with_cost(comprehensions.exactly_one(loop, test), 2)
        element, cost = self._element(step.arguments[1])
        return self._with_cost(comprehensions.collect(loop, test, element, cost), 1)

    def _element(self, appended: Expr) -> tuple[Run, int]:
        """Return the value that an iteration appends to a list, and the cost of appending it."""
        if isinstance(appended, ListLiteral):
            return self.plan(appended.elements[0]), _LIST_COST + 2
        assert isinstance(appended, Literal)
        (value,) = appended.value
        return (lambda _frame: value), 2


def _variable(slot: int) -> Run:
    return lambda frame: frame[slot]


def _selection(operand: Run, field: str) -> Run:
    def run(frame: Frame) -> Any:
        container = operand(frame)
        try:
            return container[field]
        except (KeyError, TypeError, IndexError):
            # The general lookup only after a failure: most selections are of a key that exists, in a dict.
            return select(container, field)

    return run


def _is_attribute(node: Expr) -> bool:
    """Tell whether the expression is a name or a selection. A chain of these is charged once."""
    match node:
        case Ident():
            return True
        case Select():
            return not node.test_only
        case Call():
            return node.function in _ATTRIBUTES
    return False


def _is_choice(node: Expr) -> bool:
    return isinstance(node, Call) and node.function == "_?_:_"


def _is_known(static_type: Type) -> bool:
    """Tell whether every value of this static type has exactly this type at run time."""
    return static_type.kind not in _DYNAMIC and all(map(_is_known, static_type.parameters))


def _device_path(node: Expr, scope: dict[str, Run]) -> tuple[str, ...] | None:
    """Return the keys of `device.attributes["domain"].name`; None for anything else."""
    keys: list[str] = []
    while len(keys) <= _DEVICE_PATH_MAX:
        match node:
            case Select(test_only=False):
                keys.append(node.name)
                node = node.operand
            case Call(function="_[_]", arguments=[operand, Literal(value=str() as key)]):
                keys.append(key)
                node = operand
            case Ident(name=".device") if keys:
                return tuple(reversed(keys))
            case Ident(name="device") if scope["device"] is _DEVICE and keys:
                return tuple(reversed(keys))
            case _:
                return None
    return None


def _device_value(*keys: str) -> Run:
    match keys:
        case (field,):
            return lambda frame: frame[DEVICE_SLOT][field]
        case (field, domain):
            return lambda frame: frame[DEVICE_SLOT][field][domain]
        case field, domain, name:

            def run(frame: Frame) -> Any:
                try:
                    return frame[DEVICE_SLOT][field][domain][name]
                except KeyError:
                    # Only the last step can fail: an unknown domain is an empty map.
                    raise EvaluationError(f"no such key: {name}") from None

            return run
    raise AssertionError(keys)


_DEVICE = _variable(DEVICE_SLOT)

"""Label selectors and node selectors, compiled.

Owns what a selector means and which selectors are invalid. Compiled forms are immutable and hashable, and their parts
are public, so that an evaluator over columns can use the same requirements. Never looks at whole pods or nodes.

Source: apimachinery pkg/labels and component-helpers scheduling/corev1/nodeaffinity, v0.36.2.
Differs: `compile_node_selector` and `compile_preferred_terms` report every invalid requirement with its field path.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from podium.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from podium.objects.errors import FieldError
from podium.objects.meta import LabelSelector, LabelSelectorRequirement

_INTEGER = re.compile(r"[+-]?[0-9]{1,400}")
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_LENGTH_MAX: Final = 253

NODE_NAME_FIELD: Final = "metadata.name"

REQUIREMENTS_MAX: Final = 10_000
"""The largest number of requirements in a label selector. The limit exists because any user may create an object with
one."""


class Operator(enum.Enum):
    """The ways in which a requirement compares its values with a label."""

    __hash__ = object.__hash__  # members are singletons, and an enum's own hash runs Python code

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


LABEL_OPERATORS: Final = {
    operator.value: operator for operator in (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)
}
NODE_OPERATORS: Final = {operator.value: operator for operator in Operator}
FIELD_OPERATORS: Final = {operator.value: operator for operator in (Operator.IN, Operator.NOT_IN)}


def parse_int64(text: str) -> int | None:
    """Return the base-10 int64 that the text is, sign allowed, or None."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def is_qualified_name(name: str) -> bool:
    """Return True for a valid label key: an optional DNS subdomain and `/`, then a name of at most 63 characters."""
    prefix, slash, local_name = name.rpartition("/")
    if slash and (len(prefix) > _SUBDOMAIN_LENGTH_MAX or _SUBDOMAIN.fullmatch(prefix) is None):
        return False
    return _NAME.fullmatch(local_name) is not None


def is_label_value(text: str) -> bool:
    """Return True for a valid label value: empty, or a name of at most 63 characters."""
    return not text or _NAME.fullmatch(text) is not None


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """One condition on a label or field.

    `values` are those of In and NotIn, `bound` is the number of Gt and Lt; for other operators they are empty and 0.
    """

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()
    bound: int = 0

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return True if the labels match. NotIn and DoesNotExist match if the key is absent."""
        return self.matches_value(labels.get(self.key))

    def matches_value(self, value: str | None) -> bool:
        """Return True if the label's value matches; None stands for an absent label."""
        operator = self.operator
        if operator is Operator.IN:
            return value in self.values
        if operator is Operator.NOT_IN:
            return value not in self.values
        if operator is Operator.EXISTS:
            return value is not None
        if operator is Operator.DOES_NOT_EXIST:
            return value is None
        number = parse_int64(value) if value is not None else None
        if number is None:
            return False
        return number > self.bound if operator is Operator.GT else number < self.bound


def _requirement(
    expression: LabelSelectorRequirement | NodeSelectorRequirement, operators: Mapping[str, Operator], path: str
) -> Requirement:
    """Check one expression as upstream does: operator, key, number of values, their spelling."""
    operator = operators.get(expression.operator)
    if operator is None:
        operator_names = ", ".join(operators)
        raise FieldError(f"{path}.operator", f'unknown operator "{expression.operator}", supported: {operator_names}')
    if not is_qualified_name(expression.key):
        raise FieldError(f"{path}.key", f'"{expression.key}" is not a valid label key')
    values = expression.values
    limit = 0
    if operator in (Operator.IN, Operator.NOT_IN):
        if not values:
            raise FieldError(f"{path}.values", f"{operator.value} needs at least one value")
    elif operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
        if values:
            raise FieldError(f"{path}.values", f"{operator.value} takes no values")
    else:
        limit = _limit_of(values, operator, path)
    for index, value in enumerate(values):
        if not is_label_value(value):
            raise FieldError(f"{path}.values[{index}]", f'"{value}" is not a valid label value')
    value_set = frozenset(values) if operator in (Operator.IN, Operator.NOT_IN) else frozenset()
    return Requirement(expression.key, operator, value_set, limit)


def _limit_of(values: tuple[str, ...], operator: Operator, path: str) -> int:
    if len(values) != 1:
        raise FieldError(f"{path}.values", f"{operator.value} needs exactly one value")
    limit = parse_int64(values[0])
    if limit is None:
        raise FieldError(f"{path}.values[0]", f'{operator.value} needs an integer, not "{values[0]}"')
    return limit


def _sort(requirements: Sequence[Requirement]) -> tuple[Requirement, ...]:
    """Remove duplicates and sort, so that the order depends on the content only."""
    if len(requirements) < 2:
        return tuple(requirements)
    return tuple(sorted(set(requirements), key=_order))


def _order(requirement: Requirement) -> tuple[Any, ...]:
    return requirement.key, requirement.operator.value, sorted(requirement.values), requirement.bound


# ---------------------------------------------------------------- label selectors


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled label selector: every requirement must hold.

    Invariant: requirements are sorted and unique, so selectors with the same requirements in another order are equal.
    `nothing` marks an absent selector, which matches no labels at all.
    """

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the hash once, because every attempt looks selectors up."""
        object.__setattr__(self, "_hash", hash((self.requirements, self.nothing)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def everything(self) -> bool:
        """The selector matches all labels."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return True if the labels satisfy every requirement."""
        if self.nothing:
            return False
        for requirement in self.requirements:  # noqa: SIM110 - a generator would cost twice the time
            if not requirement.matches_value(labels.get(requirement.key)):
                return False
        return True

    def narrow(self, labels: Mapping[str, str]) -> Selector:
        """Return this selector with these labels required too, as for `matchLabelKeys`."""
        if self.nothing or not labels:
            return self
        return Selector(_sort((*self.requirements, *_equalities(labels))))


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(nothing=True)


def join_selectors(selectors: Sequence[Selector]) -> Selector:
    """Return the selector that matches what all of them match."""
    if any(selector.nothing for selector in selectors):
        return NOTHING
    return Selector(_sort([requirement for selector in selectors for requirement in selector.requirements]))


def _equalities(labels: Mapping[str, str]) -> list[Requirement]:
    return [Requirement(key, Operator.IN, frozenset((value,))) for key, value in labels.items()]


def compile_selector(selector: LabelSelector | None) -> Selector:
    """Compile a label selector; an absent one matches nothing, an empty one everything.

    Raises:
        FieldError: an invalid part, with its path inside the selector (`matchExpressions[0].operator`).
    """
    if selector is None:
        return NOTHING
    count = len(selector.match_labels) + len(selector.match_expressions)
    if not count:
        return EVERYTHING
    if count > REQUIREMENTS_MAX:
        raise FieldError("matchExpressions", f"{count} requirements, at most {REQUIREMENTS_MAX} are read")
    for key, value in selector.match_labels.items():
        if not is_qualified_name(key):
            raise FieldError(f"matchLabels[{key}]", f'"{key}" is not a valid label key')
        if not is_label_value(value):
            raise FieldError(f"matchLabels[{key}]", f'"{value}" is not a valid label value')
    requirements = _equalities(selector.match_labels)
    for index, expression in enumerate(selector.match_expressions):
        requirements.append(_requirement(expression, LABEL_OPERATORS, f"matchExpressions[{index}]"))
    return Selector(_sort(requirements))


def selector_of_labels(labels: Mapping[str, str]) -> Selector:
    """Return the selector that requires these labels, unvalidated, as `spec.nodeSelector`.

    Without labels it matches everything.
    """
    return Selector(_sort(_equalities(labels))) if labels else EVERYTHING


# ---------------------------------------------------------------- node selectors


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A compiled node selector term: every requirement on labels and on `metadata.name` must hold.

    A term with `errors` matches no node.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    errors: tuple[FieldError, ...] = field(default=(), compare=False)
    broken: bool = False

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        """Return True if a node with this name and these labels satisfies the term."""
        if self.broken:
            return False
        for requirement in self.expressions:
            if not requirement.matches_value(labels.get(requirement.key)):
                return False
        # A node without a name has no fields, and upstream then skips the requirements on fields.
        return not node_name or all(self._field_matches(requirement, node_name) for requirement in self.fields)

    @staticmethod
    def _field_matches(requirement: Requirement, node_name: str) -> bool:
        # A field that nodes do not have reads as the empty string.
        return requirement.matches_value(node_name if requirement.key == NODE_NAME_FIELD else "")


@dataclass(frozen=True, slots=True)
class NodeMatcher:
    """A compiled node selector: one of its terms must match. Without terms it matches no node."""

    terms: tuple[NodeTerm, ...] = ()

    @property
    def errors(self) -> tuple[FieldError, ...]:
        """The errors in the selector's terms."""
        return tuple(error for term in self.terms for error in term.errors)

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        """Return True if any term matches a node with this name and these labels."""
        return any(term.matches(labels, node_name) for term in self.terms)


@dataclass(frozen=True, slots=True)
class PreferredTerm:
    """A compiled preferred scheduling term."""

    weight: int
    term: NodeTerm


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _compile_term(term: NodeSelectorTerm, path: str) -> NodeTerm:
    errors: list[FieldError] = []
    expressions = _compile_all(
        term.match_expressions,
        functools.partial(_requirement, operators=NODE_OPERATORS),
        f"{path}.matchExpressions",
        errors,
    )
    fields = _compile_all(term.match_fields, _field_requirement, f"{path}.matchFields", errors)
    return NodeTerm(expressions, fields, tuple(errors), broken=bool(errors))


def _compile_all(
    expressions: tuple[NodeSelectorRequirement, ...],
    compile_one: Callable[..., Requirement],
    path: str,
    errors: list[FieldError],
) -> tuple[Requirement, ...]:
    """Compile each expression; the errors of invalid ones go to `errors`."""
    requirements: list[Requirement] = []
    for index, expression in enumerate(expressions):
        try:
            requirements.append(compile_one(expression, path=f"{path}[{index}]"))
        except FieldError as error:
            errors.append(error)
    return _sort(requirements)


def _field_requirement(expression: NodeSelectorRequirement, path: str) -> Requirement:
    operator = FIELD_OPERATORS.get(expression.operator)
    if operator is None:
        operator_names = ", ".join(FIELD_OPERATORS)
        raise FieldError(f"{path}.operator", f'unknown operator "{expression.operator}", supported: {operator_names}')
    if len(expression.values) != 1:
        raise FieldError(f"{path}.values", f"{operator.value} on a field needs exactly one value")
    return Requirement(expression.key, operator, frozenset(expression.values))


def compile_node_selector(selector: NodeSelector, path: str = "nodeSelectorTerms") -> NodeMatcher:
    """Compile a node selector. Empty terms are dropped; an invalid term never matches and keeps its errors."""
    return NodeMatcher(
        tuple(
            _compile_term(term, f"{path}[{index}]")
            for index, term in enumerate(selector.node_selector_terms)
            if not _is_empty(term)
        )
    )


def compile_preferred_terms(
    terms: Iterable[PreferredSchedulingTerm], path: str = "preferredDuringSchedulingIgnoredDuringExecution"
) -> tuple[PreferredTerm, ...]:
    """Compile preferred terms; those without weight or requirements have no effect and are dropped without validation.

    Raises:
        FieldError: the first invalid requirement; `__notes__` name the others.
    """
    preferred_terms = tuple(
        PreferredTerm(term.weight, _compile_term(term.preference, f"{path}[{index}].preference"))
        for index, term in enumerate(terms)
        if term.weight != 0 and not _is_empty(term.preference)
    )
    errors = [error for preferred_term in preferred_terms for error in preferred_term.term.errors]
    if errors:
        first, *further_errors = errors
        for further_error in further_errors:
            first.add_note(str(further_error))
        raise first
    return preferred_terms


def node_names(selector: NodeSelector | None) -> frozenset[str] | None:
    """Return the only nodes that a required node selector can match, or None if names do not restrict it.

    Within a term the names of its `metadata.name In` requirements are intersected; the results of all terms are united.
    If one term names no node, names do not restrict the selector. Terms count here even if another part of them is
    invalid. An empty set means that no node can match.
    """
    if selector is None or not selector.node_selector_terms:
        return None
    names_of_terms: frozenset[str] = frozenset()
    for term in selector.node_selector_terms:
        names: frozenset[str] | None = None
        for requirement in term.match_fields:
            if requirement.key == NODE_NAME_FIELD and requirement.operator == Operator.IN.value:
                value_names = frozenset(requirement.values)
                names = value_names if names is None else names & value_names
        if names is None:
            return None
        names_of_terms |= names
    return names_of_terms

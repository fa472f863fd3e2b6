"""Label selectors, and the whole selection of a list or a watch: predicates over objects, parsed from a query.

Source: apimachinery pkg/labels (v0.36).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium.sandbox.errors import ApiError, bad_request
from podium.sandbox.field_selectors import FieldRequirement, parse_field_selector
from podium.sandbox.resources import ResourceType

Json = dict[str, Any]

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_TOKEN = re.compile(r"\s*(==|!=|=|>|<|!|,|\(|\)|[^\s=!<>,()]+)")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a label: operator is in, notin, exists, absent, gt or lt."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels satisfy this condition. A missing label satisfies notin and absent."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        try:
            value_on_node, right = int(value or ""), int(next(iter(self.values)))
        except ValueError:
            return False
        return value_on_node > right if self.operator == "gt" else value_on_node < right


def parse_label_selector(text: str) -> tuple[Requirement, ...]:
    """Parse `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>1`.

    Raises:
        ApiError: 400, the text is not a label selector.
    """
    tokens = _tokens(text)
    requirements: list[Requirement] = []
    position = 0
    while position < len(tokens):
        requirement, position = _requirement(tokens, position, text)
        requirements.append(requirement)
        if position == len(tokens):
            break
        if tokens[position] != "," or position + 1 == len(tokens):
            raise _unparsable(text, f"found '{tokens[position]}', expected: ',' or 'end of string'")
        position += 1
    return tuple(requirements)


def match_label_selector(selector: Json, labels: Mapping[str, str]) -> bool:
    """Return whether labels match a `LabelSelector` object; an empty selector matches everything."""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    operators = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}
    return all(
        Requirement(
            expression.get("key", ""),
            operators.get(expression.get("operator", ""), "in"),
            frozenset(expression.get("values") or ()),
        ).matches(labels)
        for expression in selector.get("matchExpressions") or ()
    )


def label_selector_text(selector: Json) -> str:
    """Format a `LabelSelector` object as a query parameter."""
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or ():
        key, values = expression.get("key", ""), ",".join(sorted(expression.get("values") or ()))
        operator = str(expression.get("operator", ""))
        terms.append({"Exists": key, "DoesNotExist": f"!{key}"}.get(operator, f"{key} {operator.lower()} ({values})"))
    return ",".join(terms)


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    text = text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:  # pragma: no cover - the last alternative takes every other character
            raise _unparsable(text, f"unexpected character at {position}")
        tokens.append(match[1])
        position = match.end()
    return tokens


def _requirement(tokens: list[str], position: int, text: str) -> tuple[Requirement, int]:
    token = tokens[position]
    if token == "!":
        key = _word(tokens, position + 1, text)
        return Requirement(_checked_key(key, text), "absent"), position + 2
    key = _checked_key(_word(tokens, position, text), text)
    position += 1
    operator = tokens[position] if position < len(tokens) else ","
    if operator == ",":
        return Requirement(key, "exists"), position
    if operator in ("in", "notin"):
        values, position = _value_set(tokens, position + 1, text)
        return Requirement(key, operator, values), position
    name = {"=": "in", "==": "in", "!=": "notin", ">": "gt", "<": "lt"}.get(operator)
    if name is None:
        raise _unparsable(text, f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
    following = tokens[position + 1] if position + 1 < len(tokens) else ","
    if following == ",":
        return Requirement(key, name, frozenset({""})), position + 1
    return Requirement(key, name, frozenset({_word(tokens, position + 1, text)})), position + 2


def _value_set(tokens: list[str], position: int, text: str) -> tuple[frozenset[str], int]:
    if position >= len(tokens) or tokens[position] != "(":
        raise _unparsable(text, "expected: '('")
    values: set[str] = set()
    pending = ""
    for index in range(position + 1, len(tokens)):
        token = tokens[index]
        if token in (",", ")"):
            values.add(pending)
            pending = ""
            if token == ")":
                return frozenset(values), index + 1
        else:
            pending = _word(tokens, index, text)
    raise _unparsable(text, "expected: ',' or ')'")


def _word(tokens: list[str], position: int, text: str) -> str:
    if position >= len(tokens) or not re.match(r"[^=!<>,()]", tokens[position]):
        token = tokens[position] if position < len(tokens) else ""
        raise _unparsable(text, f"found '{token}', expected: identifier")
    return tokens[position]


def _checked_key(key: str, text: str) -> str:
    prefix, _, name = key.rpartition("/")
    if not _NAME.fullmatch(name) or len(name) > 63 or len(prefix) > 253:
        raise _unparsable(text, f"invalid label key {key!r}")
    return key


def _unparsable(text: str, reason: str) -> ApiError:
    return bad_request(f"unable to parse requirement: {reason} (selector {text!r})")


@dataclass(frozen=True, slots=True)
class Selection:
    """The restriction of a list or a watch: namespace, labels and fields."""

    namespace: str | None = None
    labels: tuple[Requirement, ...] = ()
    fields: tuple[FieldRequirement, ...] = ()

    @property
    def selective(self) -> bool:
        """Return whether objects can move in and out of the selection."""
        return bool(self.labels or self.fields)

    def matches(self, obj: Json) -> bool:
        """Return whether the object is in the selection."""
        metadata = obj["metadata"]
        if self.namespace is not None and metadata.get("namespace") != self.namespace:
            return False
        if self.labels:
            labels = metadata.get("labels") or {}
            if not all(requirement.matches(labels) for requirement in self.labels):
                return False
        return all(requirement.matches(obj) for requirement in self.fields)


def selection(
    resource: ResourceType, namespace: str | None, label_selector: str = "", field_selector: str = ""
) -> Selection:
    """Build a selection from the parameters of a request.

    Raises:
        ApiError: 400, one of the selectors is invalid.
    """
    return Selection(
        namespace or None,
        parse_label_selector(label_selector),
        parse_field_selector(field_selector, resource),
    )

"""The syntax tree of an expression. The type checker fills in `type`, `overloads` and resolved names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from podium.cel.types import ERROR, Type

ACCUMULATOR = "@result"
UNUSED = "#unused"
"""The iteration variable of a loop that only binds its accumulator."""
TARGET = "@target"
"""The target of `optMap`. No expression can contain any of these names."""


@dataclass(slots=True)
class Node:
    """The base of all nodes. `position` counts code points from the start of the text."""

    position: int
    type: Type = field(default=ERROR, init=False)


@dataclass(slots=True)
class Literal(Node):
    """A constant: None, bool, int, UInt, float, str or bytes; after constant folding also a list or a map."""

    value: Any


@dataclass(slots=True)
class Ident(Node):
    """A name. The checker sets `constant` if the name denotes a type."""

    name: str
    constant: Any = field(default=None, init=False)


@dataclass(slots=True)
class Select(Node):
    """`operand.name`, or `has(operand.name)` if it only tests for presence."""

    operand: Expr
    name: str
    test_only: bool = False
    constant: Any = field(default=None, init=False)


@dataclass(slots=True)
class Call(Node):
    """A function call; operators are functions. `overloads` are the ids of the possible overloads."""

    function: str
    target: Expr | None
    arguments: list[Expr]
    overloads: list[str] = field(default_factory=list, init=False)


@dataclass(slots=True)
class ListLiteral(Node):
    """`[a, ?b]`."""

    elements: list[Expr]
    optional: frozenset[int]


@dataclass(slots=True)
class Entry:
    """`key: value` or `?key: value` of a map."""

    key: Expr
    value: Expr
    optional: bool


@dataclass(slots=True)
class MapLiteral(Node):
    """`{key: value, ?key: value}`."""

    entries: list[Entry]


@dataclass(slots=True)
class MessageLiteral(Node):
    """`Name{field: value}`."""

    name: str


@dataclass(slots=True)
class Comprehension(Node):
    """A loop, the expansion of the macros `all`, `exists`, `map`, `filter` and others.

    While `condition` holds, `step` computes the next value of the accumulator. At the end `result` reads it.
    """

    iterated: Expr
    variable: str
    second_variable: str | None
    accumulator: str
    initial: Expr
    condition: Expr
    step: Expr
    result: Expr


Expr: TypeAlias = Literal | Ident | Select | Call | ListLiteral | MapLiteral | MessageLiteral | Comprehension


def children(node: Expr) -> list[Expr]:
    """Return the expressions right below a node, in order of evaluation."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return [*([node.target] if node.target is not None else ()), *node.arguments]
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return [part for entry in node.entries for part in (entry.key, entry.value)]
        case Comprehension():
            return [node.iterated, node.initial, node.condition, node.step, node.result]
        case _:
            return []


def walk(root: Expr) -> list[Expr]:
    """Return the node and everything below it, parents first."""
    nodes, pending = [], [root]
    while pending:
        node = pending.pop()
        nodes.append(node)
        pending.extend(reversed(children(node)))
    return nodes

"""Prints the reasons why nodes have no devices for a pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from rich.console import RenderableType
from rich.text import Text

from podium.cli.plain_text import plain

_GROUPS_MAX: Final = 10
_NODES_MAX: Final = 3
_DETAILS_MAX: Final = 8


class Refusal(Protocol):
    """The reasons of a single node."""

    @property
    def details(self) -> Sequence[str]:
        """The users of the node's devices, and its broken pools."""


class Group(Protocol):
    """Nodes that have no devices for equal reasons."""

    @property
    def reasons(self) -> Sequence[str]:
        """The shared reasons."""

    @property
    def count(self) -> int:
        """The number of nodes."""

    @property
    def examples(self) -> Sequence[str]:
        """The names of some of the nodes."""

    @property
    def nodes(self) -> Mapping[str, Refusal]:
        """The reasons of each single node, by name."""


def devices_missing(groups: Sequence[Group], asked_node: str, headline: str = "devices:") -> list[RenderableType]:
    """List the nodes by missing devices, with the users of the devices on some of them.

    Args:
        asked_node: a node that is shown in any case; "" for none.
    """
    parts: list[RenderableType] = [Text(headline)] if groups else []
    for group in groups[:_GROUPS_MAX]:
        names = ", ".join(group.examples)
        suffix = f" and {group.count - len(group.examples)} more" if group.count > len(group.examples) else ""
        parts += [plain(f"  {names}{suffix}:", "bold"), *(plain(f"    {reason}") for reason in group.reasons)]
        detailed_nodes = [*group.nodes][:_NODES_MAX]
        if asked_node in group.nodes and asked_node not in detailed_nodes:
            detailed_nodes.append(asked_node)
        for name in detailed_nodes:
            details = group.nodes[name].details
            parts += [plain(f"      {name}: {detail}", "dim") for detail in details[:_DETAILS_MAX]]
            if len(details) > _DETAILS_MAX:
                parts.append(plain(f"      {name}: and {len(details) - _DETAILS_MAX} more", "dim"))
    if len(groups) > _GROUPS_MAX:
        parts.append(plain(f"  and {len(groups) - _GROUPS_MAX} more reasons: -o json has them all"))
    return parts

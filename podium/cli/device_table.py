"""Why nodes have no devices for a pod, as text for people."""

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
    """What is one node's only."""

    @property
    def details(self) -> Sequence[str]:
        """Who has which devices, and which pools are broken."""


class Group(Protocol):
    """Nodes that have no devices for equal reasons."""

    @property
    def reasons(self) -> Sequence[str]:
        """The reasons."""

    @property
    def count(self) -> int:
        """How many nodes there are."""

    @property
    def examples(self) -> Sequence[str]:
        """Some of them."""

    @property
    def nodes(self) -> Mapping[str, Refusal]:
        """What is each node's only."""


def devices_missing(groups: Sequence[Group], asked: str, headline: str = "devices:") -> list[RenderableType]:
    """The nodes by what the requests lack there, with who has the devices on some of them.

    Args:
        asked: a node that is shown whatever its place; "" for none.
    """
    parts: list[RenderableType] = [Text(headline)] if groups else []
    for group in groups[:_GROUPS_MAX]:
        names = ", ".join(group.examples)
        more = f" and {group.count - len(group.examples)} more" if group.count > len(group.examples) else ""
        parts += [plain(f"  {names}{more}:", "bold"), *(plain(f"    {reason}") for reason in group.reasons)]
        shown = [*group.nodes][:_NODES_MAX]
        if asked in group.nodes and asked not in shown:
            shown.append(asked)
        for name in shown:
            details = group.nodes[name].details
            parts += [plain(f"      {name}: {detail}", "dim") for detail in details[:_DETAILS_MAX]]
            if len(details) > _DETAILS_MAX:
                parts.append(plain(f"      {name}: and {len(details) - _DETAILS_MAX} more", "dim"))
    if len(groups) > _GROUPS_MAX:
        parts.append(plain(f"  and {len(groups) - _GROUPS_MAX} more reasons: -o json has them all"))
    return parts

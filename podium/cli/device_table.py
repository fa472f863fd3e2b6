"""Why nodes have no devices for a pod, as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType
from rich.text import Text

from podium.cli.plain_text import plain

if TYPE_CHECKING:
    from podium.engine.device_refusals import DeviceGroup

_GROUPS_MAX: Final = 10
_NODES_MAX: Final = 3
_DETAILS_MAX: Final = 8


def devices_missing(groups: Sequence[DeviceGroup], asked: str) -> list[RenderableType]:
    """The nodes by what the requests lack there, with who has the devices on some of them.

    Args:
        asked: a node that is shown whatever its place; "" for none.
    """
    parts: list[RenderableType] = [Text("devices:")] if groups else []
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

"""The page docs/library-reference.md: `podium.Cluster`, `podium.Clusters` and their answers, from their docstrings.

`python -m tests.library_page` writes it; a test fails where the page says something else.
"""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from podium.devices.refusals import Holder, Mismatch, NodeRefusal, UnmetRequest
from podium.engine import Evaluation, Placement
from podium.estimator.division.explanation import ClusterShare
from podium.fleets.answers import FittingCluster, FleetFit, RejectedCluster
from podium.insight import (
    Blocker,
    Capacity,
    DeviceGroup,
    Edit,
    EditKind,
    Fix,
    Fixes,
    GangCapacity,
    GangEdit,
    GangFix,
    GangStory,
    Group,
    Headroom,
    NodeCapacity,
    NodeScore,
    Why,
)
from podium.insight.outlook import Outlook, PodOutlook
from podium.insight.pod_ends import PodEnd
from podium.insight.room.drain_order import DrainBatch, DrainBlocker, DrainMove, DrainOrder
from podium.insight.room.plan import Immovable, RoomAnswer, RoomCost, RoomMove, RoomPlan
from podium.insight.trial import Blocked, Preemption, Refused
from podium.insight.what_if import Move, Outcome, Pending, Spread, Usage
from podium.library import Cluster, Clusters, Division
from podium.library.new_nodes import NewNode, NewNodeCapacity
from podium.provisioner.reports.plan import PlanReport
from tests.page_command import run_as_command

PAGE = Path(__file__).parents[1] / "docs" / "library-reference.md"

SECTIONS = {
    "Making one": ("load", "fork", "commit", "discard"),
    "What is in it": ("nodes", "pods", "manifest_of"),
    "Changing it": ("add", "replace", "patch", "remove", "drain"),
    "Placing pods": ("place", "place_all", "undo"),
    "Asking": (
        *("schedule", "evaluate", "scores", "scores_frame", "why", "fixes"),
        *(
            "capacity",
            "capacity_together",
            "new_nodes",
            "headroom",
            "utilisation",
            "what_if",
            "outlook",
            "make_room",
            "drain_order",
        ),
        "plan",
    ),
}
NOT_FOR_USERS = {
    *("engine", "engine_to_ask", "profiles", "put_pending", "put", "drop", "store", "framework_for", "read_pod"),
    *("configuration", "release", "copy", "copy_whole", "of_state"),
    *("gates_of", "in_queue_order", "nominate", "place_without_preemption", "place_with_its_claims", "put_workload_of"),
    *("admission", "admit_by", "asked", "create", "create_claims", "claims_of", "read", "with_workload_of"),
}
"""What podium's own packages use, and what shows typed objects of podium."""

VALUES = (
    *(Placement, Evaluation, Why, Blocker, Group, NodeScore),
    *(DeviceGroup, NodeRefusal, UnmetRequest, Mismatch, Holder, GangStory),
    *(Fixes, Fix, Edit, EditKind, GangFix, GangEdit),
    *(Capacity, NodeCapacity, GangCapacity, Headroom, NewNodeCapacity, NewNode),
    *(RoomAnswer, RoomPlan, RoomMove, RoomCost, Immovable),
    *(DrainOrder, DrainBatch, DrainMove, DrainBlocker),
    *(FleetFit, FittingCluster, RejectedCluster),
    *(Outlook, PodOutlook, PodEnd),
    *(Division, ClusterShare),
    *(Usage, Outcome, Move, Pending, Preemption, Blocked, Refused, Spread, PlanReport),
)
_HEAD = """\
# Python library reference

`podium.Cluster`, `podium.Clusters`, and the values that their methods return. [library.md](library.md) is an
introduction with examples. `python -m tests.library_page` makes this page from the docstrings.

## podium.Cluster

"""
_HEADING = re.compile(r"(Args|Raises|Attributes|Args and Raises):(.*)")


def page() -> str:
    """The whole page."""
    parts = [_HEAD, text(inspect.getdoc(Cluster) or ""), "\n"]
    for title, names in SECTIONS.items():
        parts += [f"\n### {title}\n", *(_member(name) for name in names)]
    parts += ["\n## podium.Clusters\n\n", text(inspect.getdoc(Clusters) or ""), "\n"]
    parts += [_member(name, Clusters) for name in ("load", "fit", "divide")]
    parts += ["\n## Answers\n", *(_value(value_type) for value_type in VALUES)]
    return "".join(parts)


def _member(name: str, kind: type = Cluster) -> str:
    member = inspect.getattr_static(kind, name)
    if isinstance(member, property):
        return f"\n#### `{name}`\n\n{text(inspect.getdoc(member) or '')}\n"
    function = getattr(kind, name)
    return f"\n#### `{name}{signature(function)}`\n\n{text(inspect.getdoc(function) or '')}\n"


def signature(function: object) -> str:
    """The signature without `self`."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    parameters = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    return str(signature.replace(parameters=parameters)).replace("'", "")


def _value(kind: type) -> str:
    section = f"\n### `{kind.__name__}`\n\n{text(inspect.getdoc(kind) or '')}\n"
    if issubclass(kind, enum.Enum):
        return section + "\nOne of " + ", ".join(f"`{value.value}`" for value in kind) + ".\n"
    fields = ", ".join(f"`{name}`" for name in inspect.get_annotations(kind) if not name.startswith("_"))
    return section + (f"\nFields: {fields}.\n" if fields else "")


def text(doc: str) -> str:
    """The docstring, with its lists of arguments and exceptions as lists."""
    return "\n".join(_lines(doc))


def _lines(doc: str) -> Iterator[str]:
    within = False
    for line in doc.splitlines():
        if heading := _HEADING.fullmatch(line):
            within = not heading[2].strip()
            yield f"{heading[1]}:{heading[2]}"
            if within:
                yield ""
        elif within and (item := re.fullmatch(r"    (\S[^:]*): (.*)", line)):
            yield f"- `{item[1]}`: {item[2]}"
        elif within and line.startswith("    "):
            yield f"  {line.strip()}"
        else:
            within = within and not line
            yield line


if __name__ == "__main__":
    run_as_command(lambda: PAGE.write_text(page()), __doc__)

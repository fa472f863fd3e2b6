"""Gangs that lose pods which they need while nodes go.

Owns when a removal breaks a gang. Karpenter does it and is warned about; by podium's own rules the nodes stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from podium.engine.gangs import Gang
from podium.objects.core import Pod
from podium.provisioner.provisioning.plan_basis import PlanBasis


@dataclass(frozen=True, slots=True)
class BrokenGang:
    """A gang that has as many running members as it needs, and would not while others move.

    Attributes:
        staying_count: how many of the members that run stay where they are.
        moving_pods: the others.
    """

    gang: Gang
    staying_count: int
    moving_pods: tuple[Pod, ...]

    @property
    def text(self) -> str:
        """The sentence about it, without a full stop."""
        return (
            f"the gang {self.gang.key} needs {self.gang.min_count} of its pods, and {self.staying_count} would be left "
            "while others move"
        )


def broken_gangs(basis: PlanBasis, node_names: Collection[str]) -> Iterator[BrokenGang]:
    """Yield the gangs that break if these nodes go, beside those that are leaving already.

    Args:
        node_names: the names of Node objects.
    """
    leaving = {state.node.metadata.name for state in basis.nodes if state.is_leaving and state.node}
    for gang in basis.gangs:
        running = gang.placed_members
        staying_count = sum(pod.node_name not in leaving and pod.node_name not in node_names for pod in running)
        moving_pods = tuple(pod for pod in running if pod.node_name in node_names)
        # A gang that is below its minimum already is broken whatever goes.
        if moving_pods and staying_count < gang.min_count <= len(running):
            yield BrokenGang(gang, staying_count, moving_pods)


def broken_gang_warnings(basis: PlanBasis, node_names: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each gang that breaks if these nodes go."""
    for broken_gang in broken_gangs(basis, node_names):
        nodes = sorted({pod.node_name for pod in broken_gang.moving_pods})
        verb = "goes" if len(nodes) == 1 else "go"
        yield f"{broken_gang.text}, since {', '.join(nodes)} {verb} (--rules podium does not break it)"

"""A question before it is put to a real control plane: what to create, in which order, and the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.parity.workloads.naming import Json


@dataclass(frozen=True, slots=True)
class PodPlan:
    """One pod of a workload before the step.

    Attributes:
        node: where it runs; "" leaves that to the scheduler.
        ready_minutes: for how long it has been ready; None if it is not.
        deletion_cost: of the annotation; None if there is none.
        has_succeeded: it has ended well.
    """

    node: str = ""
    ready_minutes: int | None = 1
    deletion_cost: int | None = None
    has_succeeded: bool = False


@dataclass(slots=True)
class Plan:
    """A cluster and a step.

    Attributes:
        settings: what is created first: namespaces, classes, volumes, limits.
        workloads: what is created while there are no nodes, with a plan for each of their pods, by `namespace/name`.
        nodes: Nodes and what describes them.
        daemons: what is created once there are nodes.
        late: settings that are created after all pods, and workloads that are changed then.
        provisioned: the storage classes whose provisioner acts.
    """

    id: str
    category: str
    step: Json = field(default_factory=dict)
    settings: list[Json] = field(default_factory=list)
    workloads: list[Json] = field(default_factory=list)
    pods: dict[str, Sequence[PodPlan]] = field(default_factory=dict)
    nodes: list[Json] = field(default_factory=list)
    daemons: list[Json] = field(default_factory=list)
    late: list[Json] = field(default_factory=list)
    provisioned: list[str] = field(default_factory=list)

    @property
    def zones(self) -> Mapping[str, str]:
        """The zone of each node."""
        return {
            item["metadata"]["name"]: item["metadata"]["labels"]["topology.kubernetes.io/zone"]
            for item in self.nodes
            if item["kind"] == "Node"
        }

    @property
    def drivers(self) -> Mapping[str, str]:
        """The driver of each storage class whose provisioner acts."""
        return {
            item["metadata"]["name"]: item["provisioner"]
            for item in self.settings
            if item["kind"] == "StorageClass" and item["metadata"]["name"] in self.provisioned
        }

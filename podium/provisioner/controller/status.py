"""Reports on the provisioner: Events about pods, metrics, and a ConfigMap with its last plans.

Owns the form of the ConfigMap. A ConfigMap that cannot be written is reported, and tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final, Protocol

import msgspec
import orjson

from podium.binder.events.event import Event
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError, NotFound
from podium.objects.meta import NamespacedObject, ObjectMeta
from podium.objects.resource_types import ObjectT, ResourceType
from podium.provisioner.controller import events
from podium.provisioner.controller.metrics import ProvisionerMetrics
from podium.provisioner.planners.planner import Removal
from podium.provisioner.provisioning.plan import NodePlan, Plan
from podium.provisioner.reports.plan import sum_if_known, warnings_json
from podium.server.wakeup import WakeUp

log = get_logger("provisioner")

SHOWN_MAX: Final = 100
"""How many nodes and pods the ConfigMap names of each kind."""

_AGAIN_S: Final = 10.0

_NO_REMOVAL: Final[Mapping[str, Any]] = {"plan": "", "reason": "", "nodes": []}


class ConfigMap(NamespacedObject, frozen=True):
    """Texts by name."""

    data: dict[str, str] = msgspec.field(default_factory=dict)


CONFIG_MAPS: Final = ResourceType("ConfigMap", "/api/v1/configmaps", ConfigMap)


class ObjectClient(Protocol):
    """Reads and writes objects: `podium.binder.ApiClient`, as far as it is used here."""

    async def read(self, resource: ResourceType[ObjectT], item: ObjectT) -> ObjectT:
        """Return the object as it is now."""
        ...

    async def create(self, resource: ResourceType[ObjectT], item: ObjectT, manifest: Mapping[str, Any]) -> ObjectT:
        """Create the object."""
        ...

    async def patch(
        self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any], subresource: str = ""
    ) -> ObjectT:
        """Change the object."""
        ...


class Status:
    """Implements `podium.provisioner.controller.provisioning.Report`.

    Args:
        namespace, name: those of the ConfigMap.
        is_real: whether nodes are bought, so that pods may expect them.
        in_own_words: whether Events have podium's words, since its rules judge where pods fit.
    """

    def __init__(
        self,
        client: ObjectClient,
        namespace: str,
        name: str,
        record: Callable[[Event], None],
        metrics: ProvisionerMetrics,
        *,
        is_real: bool,
        in_own_words: bool = False,
    ) -> None:
        self._client = client
        self._item = ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace))
        self._record = record
        self._metrics = metrics
        self._is_real = is_real
        self._in_own_words = in_own_words
        self._data: dict[str, str] = {}
        self._written: dict[str, str] = {}
        self._wake_up = WakeUp()

    def record_plan(self, plan: Plan, bought: tuple[NodePlan, ...], refused_nodes: tuple[NodePlan, ...] = ()) -> None:
        """Record a plan, and which of its nodes were bought, and which refused."""
        self._metrics.record_plan(plan, bought, refused_nodes)
        for node in bought:
            for pod in node.pods:
                self._record(events.nomination(pod, node.name, plan.id, in_own_words=self._in_own_words))
        # A plan that buys nothing places no pod, and must not say that it did.
        if self._is_real:
            for name, pods in plan.existing.items():
                for pod in pods:
                    self._record(events.nomination(pod, name, plan.id, in_own_words=self._in_own_words))
        for stay in plan.unschedulable.values():
            self._record(
                events.failed_scheduling(stay.pod, stay.explained_reason(), plan.id, in_own_words=self._in_own_words)
            )
        self._set("purchases", _plan_json(plan))

    def record_removal(self, removal: Removal | None) -> None:
        """Record the nodes that are being removed, or None if none can go now."""
        if removal is not None:
            self._metrics.record_removal(removal)
        self._set("removal", _NO_REMOVAL if removal is None else _removal_json(removal))

    async def run(self) -> None:
        """Write the ConfigMap whenever it has changed, until cancelled."""
        while True:
            # A change that could not be written is tried again, though no other follows.
            await self._wake_up.wait(None if self._data == self._written else _AGAIN_S)
            # Copied: the loops may set another plan while the request is under way.
            data = dict(self._data)
            if data == self._written:
                continue
            try:
                await self._write(data)
            except ApiError as error:
                log.warning("Status cannot be written", config_map=self._item.key, error=str(error))
            else:
                self._written = data

    async def _write(self, data: Mapping[str, str]) -> None:
        # Read first, since a patch has the resourceVersion as its precondition.
        try:
            config_map = await self._client.read(CONFIG_MAPS, self._item)
        except NotFound:
            metadata = {"name": self._item.metadata.name, "namespace": self._item.metadata.namespace}
            manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            await self._client.create(CONFIG_MAPS, self._item, manifest)
            return
        await self._client.patch(CONFIG_MAPS, config_map, {"data": data})

    def _set(self, name: str, document: Mapping[str, Any]) -> None:
        self._data[name] = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
        self._wake_up.set()


def _plan_json(plan: Plan) -> Mapping[str, Any]:
    nodes = [
        {
            "name": node.name,
            "nodePool": node.pool,
            "instanceType": node.node.instance_type.name,
            "zone": node.node.offering.zone,
            "capacityType": node.node.offering.capacity_type,
            "price": node.node.shown_price,
            "pods": len(node.pods),
        }
        for node in plan.nodes
    ]
    stay = [
        {"pod": key, "reason": pod.explained_reason()} for key, pod in islice(plan.unschedulable.items(), SHOWN_MAX)
    ]
    ignored_pods = [{"pod": pod, "reason": reason} for pod, reason in sorted(plan.ignored.items())]
    return {
        "plan": plan.id,
        "nodes": len(nodes),
        "pricePerHour": sum_if_known(node.node.shown_price for node in plan.nodes),
        "podsOnExistingNodes": sum(map(len, plan.existing.values())),
        "podsThatStay": len(plan.unschedulable),
        "newNodes": nodes[:SHOWN_MAX],
        "unschedulable": stay,
        "ignored": ignored_pods[:SHOWN_MAX],
        **warnings_json(plan.warnings[:SHOWN_MAX]),
    }


def _removal_json(removal: Removal) -> Mapping[str, Any]:
    return {
        "plan": removal.id,
        "reason": removal.reason,
        "nodes": list(removal.nodes),
        "replacedBy": [replacement.text for replacement in removal.replacements],
        "savingsPerHour": removal.savings,
        **warnings_json(removal.warnings[:SHOWN_MAX]),
    }

"""What a control plane lacks to be a cluster: kubelets and provisioners, as far as a question needs them.

Pods run and are ready as soon as they have a node, and end as soon as they are deleted, or take their time for that.
Claims that have a node get a volume of its zone. Pods that the plan gives a node are bound to it, as if the scheduler
had done so long ago.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Coroutine
from typing import Any

from tests.control_plane.client import ApiError, Client
from tests.parity.workloads.mirror import CLAIMS, PODS, Mirror
from tests.parity.workloads.naming import Json, controller_of, key_of
from tests.parity.workloads.plan import Plan, PodPlan

SELECTED_NODE = "volume.kubernetes.io/selected-node"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_UNPLANNED = PodPlan(ready_minutes=0)


class StandIns:
    """Acts on what the mirror shows.

    Attributes:
        is_idle: nothing is being done, and nothing is left to do as far as the mirror shows.
        are_ends_slow: pods that are deleted end only when `end_pods` is called.
    """

    def __init__(self, client: Client, mirror: Mirror) -> None:
        self._client, self._mirror = client, mirror
        self._plan = Plan("", "")
        self.are_ends_slow = False
        self._begin()
        self.is_idle = True

    def _begin(self) -> None:
        self._done: set[tuple[str, str]] = set()
        self._pod_plans: dict[str, PodPlan] = {}
        self._used: dict[str, int] = {}
        self._claim_nodes: dict[str, str] = {}

    def follow(self, plan: Plan) -> None:
        """Act for this plan from now on, in an empty cluster."""
        self._plan = plan
        self._begin()

    async def end_pods(self) -> bool:
        """Let the pods end that have been deleted; returns whether there are any."""
        ending = [pod for pod in self._mirror.items(PODS) if "deletionTimestamp" in pod["metadata"]]
        actions = [action for pod in ending for action in self._once(pod, "end", self._end)]
        await asyncio.gather(*actions)
        return bool(actions)

    @property
    def planned_count(self) -> int:
        """The number of pods that the plan gives a node."""
        return sum(bool(pod.node) for pods in self._plan.pods.values() for pod in pods)

    def place_no_more(self) -> None:
        """Leave new pods to the scheduler."""
        self._used = {name: len(pods) for name, pods in self._plan.pods.items()}

    async def run(self) -> None:
        """Act on every change until cancelled."""
        while True:
            await self._mirror.wait_changed()
            self.is_idle = False
            actions = [*self._pod_actions(), *self._claim_actions()]
            await asyncio.gather(*actions)
            self.is_idle = True

    # ------------------------------------------------------------ pods

    def _pod_actions(self) -> list[Coroutine[Any, Any, None]]:
        actions = []
        for pod in self._mirror.items(PODS):
            has_node = bool(pod["spec"].get("nodeName"))
            if "deletionTimestamp" in pod["metadata"]:
                actions += [] if self.are_ends_slow else self._once(pod, "end", self._end)
            elif has_node and pod["status"]["phase"] == "Pending":
                actions += self._once(pod, "run", self._run_pod)
            elif not has_node:
                actions += self._once(pod, "bind", self._bind) if self._plan_of(pod).node else ()
        return actions

    def _once(
        self, item: Json, name: str, action: Callable[[Json], Coroutine[Any, Any, None]]
    ) -> list[Coroutine[Any, Any, None]]:
        """The action, unless it was done to the object before."""
        mark = item["metadata"]["uid"], name
        if mark in self._done:
            return []
        self._done.add(mark)
        return [self._tolerant(action(item))]

    async def _tolerant(self, action: Coroutine[Any, Any, None]) -> None:
        try:
            await action
        except ApiError as problem:
            # What is gone or has changed meanwhile is looked at again when the watch reports it.
            if problem.status not in (404, 409):
                raise

    def _plan_of(self, pod: Json) -> PodPlan:
        """The plan for the pod: by ordinal for a StatefulSet, otherwise the next one of its workload."""
        uid = pod["metadata"]["uid"]
        if uid not in self._pod_plans:
            self._pod_plans[uid] = self._next_plan(pod)
        return self._pod_plans[uid]

    def _next_plan(self, pod: Json) -> PodPlan:
        namespace, name = key_of(pod).split("/")
        controller = controller_of(pod)
        owner = controller["name"] if controller is not None else name
        if controller is not None and "pod-template-hash" in pod["metadata"].get("labels", {}):
            owner = owner.rpartition("-")[0]
        key = f"{namespace}/{owner}"
        plans = self._plan.pods.get(key, ())
        number = self._used.get(key, 0)
        if controller is not None and controller["kind"] == "StatefulSet" and number < len(plans):
            number = int(name.rpartition("-")[2])
        else:
            self._used[key] = number + 1
        return plans[number] if number < len(plans) else _UNPLANNED

    async def _end(self, pod: Json) -> None:
        await self._client.delete(_path(pod))

    async def _bind(self, pod: Json) -> None:
        namespace, name = key_of(pod).split("/")
        node = self._plan_of(pod).node
        for volume in pod["spec"].get("volumes", ()):
            if "persistentVolumeClaim" in volume:
                self._claim_nodes[f"{namespace}/{volume['persistentVolumeClaim']['claimName']}"] = node
            elif "ephemeral" in volume:
                self._claim_nodes[f"{namespace}/{name}-{volume['name']}"] = node
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._client.create(f"{_path(pod)}/binding", binding)

    async def _run_pod(self, pod: Json) -> None:
        plan = self._plan_of(pod)
        if plan.deletion_cost is not None:
            cost = {"metadata": {"annotations": {DELETION_COST: str(plan.deletion_cost)}}}
            await self._client.patch(_path(pod), cost)
        ready = "True" if plan.ready_minutes is not None and not plan.has_succeeded else "False"
        since = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=plan.ready_minutes or 0)
        time = since.strftime("%Y-%m-%dT%H:%M:%SZ")
        values = {"Initialized": "True", "ContainersReady": ready, "Ready": ready}
        status = {
            "phase": "Succeeded" if plan.has_succeeded else "Running",
            "startTime": time,
            "conditions": [
                {"type": kind, "status": value, "lastTransitionTime": time} for kind, value in values.items()
            ],
        }
        await self._client.patch(f"{_path(pod)}/status", {"status": status}, "strategic")

    # ------------------------------------------------------------ claims

    def _claim_actions(self) -> list[Coroutine[Any, Any, None]]:
        actions = []
        for claim in self._mirror.items(CLAIMS):
            driver = self._plan.drivers.get(claim["spec"].get("storageClassName", ""))
            if driver is None or claim["spec"].get("volumeName"):
                continue
            if SELECTED_NODE in claim["metadata"].get("annotations", {}):
                actions += self._once(claim, "provision", self._provision)
            elif key_of(claim) in self._claim_nodes:
                actions += self._once(claim, "select", self._select_node)
        return actions

    async def _select_node(self, claim: Json) -> None:
        node_patch = {"metadata": {"annotations": {SELECTED_NODE: self._claim_nodes[key_of(claim)]}}}
        await self._client.patch(_path(claim), node_patch)

    async def _provision(self, claim: Json) -> None:
        meta, spec = claim["metadata"], claim["spec"]
        name = f"pvc-{meta['uid']}"
        zone = {
            "key": "topology.kubernetes.io/zone",
            "operator": "In",
            "values": [self._plan.zones[meta["annotations"][SELECTED_NODE]]],
        }
        claim_ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": meta["uid"]}
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "csi": {"driver": self._plan.drivers[spec["storageClassName"]], "volumeHandle": name},
                "accessModes": spec["accessModes"],
                "claimRef": {**claim_ref, "namespace": meta["namespace"], "name": meta["name"]},
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": spec["storageClassName"],
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
            },
        }
        await self._client.create("/api/v1/persistentvolumes", volume)


def _path(item: Json) -> str:
    """The path of a pod or claim."""
    plural = {"Pod": "pods", "PersistentVolumeClaim": "persistentvolumeclaims"}.get(item.get("kind", ""))
    if plural is None:
        # Items of lists have no kind of their own.
        plural = "pods" if "containers" in item["spec"] else "persistentvolumeclaims"
    return f"/api/v1/namespaces/{item['metadata']['namespace']}/{plural}/{item['metadata']['name']}"

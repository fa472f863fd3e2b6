"""Devices in the simulation: drivers whose slices change, pods with claims, bad luck with claims, and the checkers.

It has a random source of its own: what else happens with a seed does not depend on it. etcd is not restored then: a
claim that is free as of a later state may be allocated in an earlier one, and nothing tells podium before it allocates.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.sandbox.embedded import Sandbox
from tests.simulation import random_objects
from tests.simulation.actors import PODS_MAX
from tests.simulation.checkers import Violation, stored_objects
from tests.simulation.observed import ObservedApp

Json = dict[str, Any]

DRIVER: Final = "gpu.example.com"
RESOURCE: Final = "example.com/gpu"
_API_VERSION: Final = "resource.k8s.io/v1"
_MODELS: Final = ("large", "small")
_DEVICES_MAX: Final = 4
_SHARED: Final = ("shared-0", "shared-1")
TEMPLATES: Final = ("one", "large", "pair", "best")
_CLAIM_WRITES: Final = {"verb": "patch", "resource": "resourceclaims"}
_CLAIM_READS: Final = {"verb": "get", "resource": "resourceclaims"}
_RESOURCES: Final = ("deviceclasses", "resourceslices", "resourceclaims", "resourceclaimtemplates")
_FINISHED: Final = ("Succeeded", "Failed")


class DeviceActors:
    """Drivers, users with claims, and what goes wrong with claims."""

    def __init__(self, sandbox: Sandbox, seed: int) -> None:
        self.pods_made = 0
        self._store, self._faults, self._random = sandbox.store, sandbox.faults, Random(f"devices-{seed}")
        self._actions: dict[Callable[[], str | None], int] = {
            self.create_pod: 14,
            self.share_claim: 3,
            self.request_resource: 3,
            self.change_slice: 3,
            self.fail_claims: 2,
            self.lose_claims: 3,
            self.slow_claims_down: 2,
            self.conflict_on_claims: 2,
            self.rest: 8,
        }

    def furnish(self) -> None:
        """The class, templates and shared claims that are there at the start."""
        expression = f'device.driver == "{DRIVER}"'
        selectors = [{"cel": {"expression": expression}}]
        self._create("DeviceClass", "gpu", {"selectors": selectors, "extendedResourceName": RESOURCE})
        for name in TEMPLATES:
            self._create("ResourceClaimTemplate", name, {"spec": {"devices": _devices(name)}}, namespaces=True)
        for name in _SHARED:
            self._create("ResourceClaim", name, {"devices": _devices("one")}, namespaces=True)

    def act(self) -> str | None:
        """The drivers see to their nodes; then one action by chance."""
        self.publish()
        return self._random.choices(list(self._actions), list(self._actions.values()))[0]()

    def rest(self) -> None:
        return None

    def create_pod(self) -> str | None:
        return self._pod({"resourceClaimTemplateName": self._random.choice(TEMPLATES)})

    def share_claim(self) -> str | None:
        return self._pod({"resourceClaimName": self._random.choice(_SHARED)})

    def request_resource(self) -> str | None:
        """A pod without claims requests devices as an extended resource: podium makes the claim."""
        return self._pod({RESOURCE: self._random.choice("12")})

    def change_slice(self) -> str | None:
        """A device comes, goes or is tainted."""
        slices = self._store.list("resourceslices")
        if not slices:
            return None
        item = self._random.choice(slices)
        count = self._random.randrange(1, _DEVICES_MAX + 1)
        item["spec"]["devices"] = [self._device(index) for index in range(count)]
        item["spec"]["pool"]["generation"] += 1
        self._store.update(item)
        return f"give {item['spec']['nodeName']} {count} devices"

    def fail_claims(self) -> str:
        times, code = self._random.choice((1, 3)), self._random.choice((500, 503, 504))
        self._faults.server_error(times, code=code, **self._random.choice((_CLAIM_WRITES, _CLAIM_READS)))
        return f"answer {times} of claims with {code}"

    def conflict_on_claims(self) -> str:
        times = self._random.choice((1, 6))
        self._faults.server_error(times, code=409, **_CLAIM_WRITES)
        return f"refuse {times} changes of claims as conflicts"

    def lose_claims(self) -> str:
        times = self._random.choice((1, 2, 5))
        self._faults.lose_response(times, **_CLAIM_WRITES)
        return f"lose {times} answers about claims"

    def slow_claims_down(self) -> str:
        delay_s = self._random.choice((0.5, 12.0, 45.0))
        self._faults.latency(delay_s, self._random.choice((1, 4)), **_CLAIM_WRITES)
        return f"slow claims down by {delay_s} s"

    # ------------------------------------------------------------ means

    def publish(self) -> None:
        """Have each node's driver publish its devices; those of nodes that are gone go, too."""
        nodes = {node["metadata"]["name"] for node in self._store.list("nodes")}
        slice_by_node = {
            item["spec"]["nodeName"]: item["metadata"]["name"] for item in self._store.list("resourceslices")
        }
        for name in sorted(slice_by_node.keys() - nodes):
            self._store.delete("resourceslices", slice_by_node[name])
        for name in sorted(nodes - slice_by_node.keys()):
            devices = [self._device(index) for index in range(self._random.randrange(_DEVICES_MAX + 1))]
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
            self._create("ResourceSlice", f"{name}-gpus", spec)

    def _device(self, index: int) -> Json:
        attributes = {"model": {"string": self._random.choice(_MODELS)}, "root": {"int": index // 2}}
        taints = [{"key": "simulation/hot", "effect": "NoSchedule"}] if self._random.random() < 0.1 else []
        return {"name": f"gpu-{index}", "attributes": attributes, "taints": taints}

    def _pod(self, entry: Json) -> str | None:
        if len(self._store.list("pods")) >= PODS_MAX:
            return None
        self.pods_made += 1
        pod = random_objects.random_pod(f"claimant-{self.pods_made}", self._random)
        if RESOURCE in entry:
            resources = pod["spec"]["containers"][0]["resources"]
            resources["requests"] |= entry
            resources["limits"] = entry
        else:
            random_objects.add_claim(pod, entry)
        self._store.create(pod)
        return f"create {pod['metadata']['name']} with {' '.join(entry.values())}"

    def _create(self, kind: str, name: str, spec: Json, *, namespaces: bool = False) -> None:
        for namespace in random_objects.NAMESPACES if namespaces else (None,):
            metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
            self._store.create({"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": spec})


def _devices(name: str) -> Json:
    large = {"cel": {"expression": f'device.attributes["{DRIVER}"].model == "large"'}}
    exactly: Json = {"deviceClassName": "gpu"}
    if name == "best":
        alternatives = [{"name": "large", **exactly, "selectors": [large]}, {"name": "any", **exactly}]
        return {"requests": [{"name": "gpu", "firstAvailable": alternatives}]}
    if name == "large":
        exactly["selectors"] = [large]
    if name != "pair":
        return {"requests": [{"name": "gpu", "exactly": exactly}]}
    constraint = {"requests": ["gpu"], "matchAttribute": f"{DRIVER}/root"}
    return {"requests": [{"name": "gpu", "exactly": exactly | {"count": 2}}], "constraints": [constraint]}


def objects(sandbox: Sandbox) -> list[Json]:
    """All that is to know of devices."""
    return [item for name in _RESOURCES for item in sandbox.store.list(name)]


# ---------------------------------------------------------------- checkers


def check_devices(sandbox: Sandbox) -> None:
    """No device is given twice, and a pod that podium has bound has the devices of all its claims, on its node."""
    claims = {(claim["metadata"]["namespace"], claim["metadata"]["name"]): claim for claim in _claims(sandbox)}
    holders: dict[tuple[str, str], str] = {}
    for (_, name), claim in claims.items():
        for device in _results(claim):
            if device in holders:
                raise Violation("device twice", f"{holders[device]} and {name} both hold {'/'.join(device)}")
            holders[device] = name
    for pod in stored_objects(sandbox, "pods"):
        metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
        if not spec.get("nodeName") or spec["schedulerName"] != random_objects.OURS:
            continue
        if status.get("phase") in _FINISHED or "deletionTimestamp" in metadata:
            continue
        generated = {
            claim_status["name"]: claim_status["resourceClaimName"]
            for claim_status in status.get("resourceClaimStatuses", ())
        }
        entries = spec.get("resourceClaims", ())
        names = [entry.get("resourceClaimName") or generated[entry["name"]] for entry in entries]
        if RESOURCE in random_objects.requests_of(pod):
            names.append(status.get("extendedResourceClaimStatus", {}).get("resourceClaimName", RESOURCE))
        for name in names:
            claim_object = claims.get((metadata["namespace"], name), {})
            users = claim_object.get("status", {}).get("reservedFor", ())
            if metadata["uid"] not in {user["uid"] for user in users}:
                raise Violation("bound without", f"{metadata['name']} is bound, and {name} is not reserved for it")
            if {pool for pool, _ in _results(claim_object)} != {spec["nodeName"]}:
                raise Violation("bound without", f"{metadata['name']} is on {spec['nodeName']}, {name} is not")


def check_no_claim_held(app: ObservedApp, sandbox: Sandbox) -> None:
    """After a calm, no claim is reserved for a pod that is gone, and no allocation is about to be written."""
    assert app.parts is not None
    uids = {pod["metadata"]["uid"] for pod in stored_objects(sandbox, "pods")}
    for claim in _claims(sandbox):
        for user in claim.get("status", {}).get("reservedFor", ()):
            if user["uid"] not in uids:
                raise Violation("reserved for ever", f"{claim['metadata']['name']} for {user['name']}, which is gone")
    plugin = app.parts.frameworks[random_objects.OURS].plugins["DynamicResources"]
    assert isinstance(plugin, DynamicResources)
    for claim in _claims(sandbox):
        if plugin.devices.is_in_flight(claim["metadata"]["uid"]):
            raise Violation("in flight for ever", claim["metadata"]["name"])


def _claims(sandbox: Sandbox) -> list[Json]:
    return stored_objects(sandbox, "resourceclaims")


def _results(claim: Json) -> list[tuple[str, str]]:
    results = (claim.get("status", {}).get("allocation") or {}).get("devices", {}).get("results", ())
    return [(result["pool"], result["device"]) for result in results]

"""The objects of a simulated cluster, and sums over them that are made by other code than podium's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from tests import manifests
from tests.manifests import HOSTNAME, ZONE, Json

OURS, FOREIGN = "podium", "someone-else"
NAMESPACES = ("default", "team")
ZONES = ("east", "west")
APPS = ("web", "db", "batch")
HESITANT = "simulation/hesitant"
NODE_CPU_MILLI = 4000
NODE_MEMORY_MIB = 8192
NODE_PODS = 12

ANOTHER_KINDS_LIST = (
    200,
    '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"REVISION"},"items":[]}',
)
SENSELESS = (
    (200, "{}"),
    (200, ""),
    (200, "<html>Log in</html>"),
    (200, '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":500}'),
    ANOTHER_KINDS_LIST,
    (200, '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"REVISION"}}'),
    (201, '{"kind":"Status","apiVersion":"v1","status":"Failure","code":409}'),
    (202, "[]"),
    (207, ""),
    (302, ""),
)
"""What proxies and portals answer; REVISION stands for the present one.

None of it is what an API server says that has done what it was asked for: such a lie cannot be found out.
"""


def random_node(name: str, random: Random) -> Json:
    return manifests.node(name, labels={ZONE: random.choice(ZONES)}, **allocatable(NODE_CPU_MILLI))


def allocatable(cpu_milli: int) -> Json:
    return {"cpu": f"{cpu_milli}m", "memory": f"{NODE_MEMORY_MIB}Mi", "pods": str(NODE_PODS)}


def random_pod(name: str, random: Random) -> Json:
    """A pod of a kind drawn by chance: most plain, some with each of what schedulers find hard."""
    app = random.choice(APPS)
    requests = {
        "cpu": f"{random.choice((100, 250, 500, 900, 1500, 2500))}m",
        "memory": f"{random.choice((64, 512, 2048))}Mi",
    }
    spec: Json = {"terminationGracePeriodSeconds": random.choice((0, 1, 5))}
    host_port = None
    labels = {"app": app}
    kind = random.random()
    if kind < 0.10:
        spec["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(app, HOSTNAME)]}
        }
    elif kind < 0.17:
        spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(app, ZONE)]}}
    elif kind < 0.25:
        spec["topologySpreadConstraints"] = [_spread(app, ZONE, random.choice(("DoNotSchedule", "ScheduleAnyway")))]
    elif kind < 0.32:
        spec["nodeSelector"] = {ZONE: random.choice(ZONES)}
    elif kind < 0.37:
        host_port = random.choice((8080, 8081))
    elif kind < 0.45:
        spec["schedulingGates"] = [{"name": "simulation/wait"}]
    elif kind < 0.52:
        spec["tolerations"] = [{"key": "simulation/taint", "operator": "Exists"}]
    elif kind < 0.60:
        labels[HESITANT] = "true"
    if random.random() < 0.3:
        spec["priority"] = random.choice((-10, 10, 1000))
    if random.random() < 0.05:
        spec["preemptionPolicy"] = "Never"
    manifest = manifests.pod(name, labels=labels, host_port=host_port, **requests, **spec)
    manifest["metadata"]["namespace"] = random.choice(NAMESPACES)
    return manifest


def budget(app: str) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
    }


def _term(app: str, key: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def _spread(app: str, key: str, when: str) -> Json:
    return {"maxSkew": 2, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": {"matchLabels": {"app": app}}}


# ---------------------------------------------------------------- sums


def room(status: Mapping[str, Any]) -> tuple[int, int, int]:
    """What a node offers: cpu (milli), memory (MiB), pods."""
    allocatable = status["allocatable"]
    return _number(allocatable["cpu"], "m"), _number(allocatable["memory"], "Mi"), int(allocatable["pods"])


def total_amounts(requests: Iterable[Mapping[str, Any]]) -> tuple[int, int, int]:
    """What pods take, each of one container with these requests."""
    cpu_milli = memory_mib = count = 0
    for request in requests:
        cpu_milli += _number(request["cpu"], "m")
        memory_mib += _number(request["memory"], "Mi")
        count += 1
    return cpu_milli, memory_mib, count


def requests_of(pod: Json) -> Mapping[str, Any]:
    return pod["spec"]["containers"][0]["resources"]["requests"]  # type: ignore[no-any-return]


def _number(quantity: str, unit: str) -> int:
    assert quantity.endswith(unit), quantity
    return int(quantity.removesuffix(unit))


def add_claim(pod: Json, entry: Json) -> None:
    """Have the pod's container use devices of a claim, or of a template, that the entry names."""
    pod["spec"]["resourceClaims"] = [{"name": "gpu", **entry}]
    pod["spec"]["containers"][0]["resources"] |= {"claims": [{"name": "gpu"}]}

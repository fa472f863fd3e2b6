"""Random clusters in which pods wait: for room, for pods that end at a time that is known or not, or for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests import manifests
from tests.manifests import HOSTNAME, ZONE, Json
from tests.outlook.extras import extras
from tests.outlook.times import GRACES_S, LAST_END_S, time_text

NAMESPACE: Final = "default"
_APPS: Final = ("web", "db", "batch")
_ZONES: Final = ("zone-a", "zone-b")
_CONTROLLER: Final = "batch.kubernetes.io/controller-uid"
_TRACKING: Final = "batch.kubernetes.io/job-tracking"


@dataclass(slots=True)
class WaitingCluster:
    """A cluster, and pods that come to it after the question.

    Attributes:
        objects: what an API server has, pods that wait included.
        comer: a Deployment or pod that the question is about, which the cluster does not have; None in most.
        config: the KubeSchedulerConfiguration; None for the default.
    """

    objects: list[Json] = field(default_factory=list)
    comer: Json | None = None
    config: Json | None = None
    end_times_s: list[int] = field(default_factory=list)
    """Times at which pods may end: no two at once, since in what order a scheduler would hear of them is open."""
    graces_s: list[int] = field(default_factory=list)
    """How long pods take to end once they are deleted, for the same reason."""

    @property
    def waiting(self) -> Sequence[str]:
        """The names of the pods that wait."""
        return [
            manifest["metadata"]["name"]
            for manifest in self.objects
            if manifest["kind"] == "Pod" and "nodeName" not in manifest["spec"]
        ]


def waiting_cluster(seed: int) -> WaitingCluster:
    """A cluster of two to five nodes, most of them full, with two to seven pods that wait."""
    chance = Random(seed)
    cluster = WaitingCluster(
        end_times_s=chance.sample(range(max(GRACES_S) + 1, LAST_END_S), 20),
        # In some clusters all take as long, as most pods do.
        graces_s=[chance.choice(GRACES_S)] * 40
        if chance.random() < 0.2
        else chance.sample(GRACES_S, len(GRACES_S)) * 2,
    )
    for index in range(chance.randint(2, 5)):
        name = f"node-{index}"
        cpu = chance.choice((2, 4))
        labels = {ZONE: chance.choice(_ZONES)}
        cluster.objects.append(
            manifests.node(
                name, str(cpu), memory="16Gi", pods="20", labels=labels, unschedulable=chance.random() < 0.06
            )
        )
        _fill(cluster, name, 1000 * cpu, chance)
    for index in range(chance.randint(2, 7)):
        cluster.objects.append(_waiting_pod(f"wait-{index}", index, cluster.graces_s.pop(), chance))
    if chance.random() < 0.35:
        cluster.comer = _comer(cluster.graces_s.pop(), chance)
    additions, cluster.config = extras(seed, cluster.objects)
    cluster.objects += additions
    return cluster


def _fill(cluster: WaitingCluster, node: str, free: int, chance: Random) -> None:
    for index in range(chance.randint(1, 4)):
        # Few nodes have room to spare: otherwise nothing waits.
        cpu = min(chance.choice((300, 700, 1000, 1500, 2500)), free - chance.choice((0, 100)))
        if cpu < 100:
            return
        free -= cpu
        cluster.objects += _running(cluster, f"{node}-{index}", node, cpu, chance)


def _running(cluster: WaitingCluster, name: str, node: str, cpu: int, chance: Random) -> list[Json]:
    labels = {"app": chance.choice(_APPS)}
    start_s = -chance.randint(60, 600)
    grace_s = cluster.graces_s.pop()
    spec: Json = {"terminationGracePeriodSeconds": grace_s, "priority": chance.choice((-100, 0, 0, 0, 100))}
    if chance.random() < 0.08:
        spec["affinity"] = {"podAntiAffinity": _required_terms(chance.choice(_APPS), chance.choice((HOSTNAME, ZONE)))}
    kind = chance.choice(("service", "service", "ending", "deadline", "deadline", "once", "job", "job-deadline"))
    metadata: Json = {"creationTimestamp": time_text(start_s)}
    extra: list[Json] = []
    has_ending = any("deletionTimestamp" in manifest["metadata"] for manifest in cluster.objects)
    if kind == "ending" and not has_ending:
        # It was deleted just now.
        metadata |= {"deletionTimestamp": time_text(grace_s), "deletionGracePeriodSeconds": grace_s}
    elif kind == "deadline":
        spec["activeDeadlineSeconds"] = cluster.end_times_s.pop() - grace_s - start_s
        spec["restartPolicy"] = chance.choice(("Always", "Never"))
    elif kind == "once":
        spec["restartPolicy"] = chance.choice(("Never", "OnFailure"))
    elif kind in ("job", "job-deadline"):
        spec["restartPolicy"] = "Never"
        job = _job(f"job-{name}", labels, spec, cpu, start_s)
        if kind == "job-deadline":
            job["spec"]["activeDeadlineSeconds"] = cluster.end_times_s.pop() - grace_s - start_s
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{name}", "uid": f"uid-job-{name}"}
        metadata |= {"ownerReferences": [owner | {"controller": True}], "finalizers": [_TRACKING]}
        labels = {**labels, _CONTROLLER: f"uid-job-{name}", "batch.kubernetes.io/job-name": f"job-{name}"}
        extra.append(job)
    pod = manifests.pod(
        name,
        f"{cpu}m",
        labels=labels,
        node=node,
        scheduler=None,
        status={"phase": "Running", "startTime": time_text(start_s)},
        **spec,
    )
    pod["metadata"] |= metadata | {"uid": f"uid-{name}"}
    return [*extra, pod]


def _job(name: str, labels: Json, spec: Json, cpu: int, start_s: float) -> Json:
    template_spec = spec | {"containers": manifests.pod("any", f"{cpu}m")["spec"]["containers"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-{name}",
            "creationTimestamp": time_text(start_s),
        },
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 6,
            "selector": {"matchLabels": {_CONTROLLER: f"uid-{name}"}},
            "template": {"metadata": {"labels": labels}, "spec": template_spec},
        },
        "status": {"startTime": time_text(start_s), "active": 1},
    }


def _waiting_pod(name: str, index: int, grace_s: int, chance: Random) -> Json:
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": grace_s}
    affinity: Json = {}
    if chance.random() < 0.12:
        spec["nodeSelector"] = chance.choice(({ZONE: chance.choice(_ZONES)}, {"no": "such"}, {HOSTNAME: "node-0"}))
    if chance.random() < 0.12:
        affinity["podAntiAffinity"] = _required_terms(chance.choice(_APPS), chance.choice((HOSTNAME, HOSTNAME, ZONE)))
    elif chance.random() < 0.1:
        affinity["podAffinity"] = _required_terms(chance.choice(_APPS), ZONE)
    if affinity:
        spec["affinity"] = affinity
    if chance.random() < 0.1:
        spec["schedulingGates"] = [{"name": "example.com/quota"}]
    if chance.random() < 0.4:
        spec["priority"] = chance.choice((-200, 10, 50, 1000))
        spec["preemptionPolicy"] = chance.choice(("PreemptLowerPriority", "PreemptLowerPriority", "Never"))
    cpu = chance.choice((200, 500, 900, 1400, 1900, 3500, 5000))
    port = 8080 if chance.random() < 0.08 else None
    pod = manifests.pod(name, f"{cpu}m", labels={"app": chance.choice(_APPS)}, scheduler=None, host_port=port, **spec)
    pod["metadata"] |= {"creationTimestamp": time_text(-40 + index), "uid": f"uid-{name}"}
    return pod


def _comer(grace_s: int, chance: Random) -> Json:
    pod = _waiting_pod("comer", 40, grace_s, chance)
    del pod["metadata"]["creationTimestamp"], pod["metadata"]["uid"]
    if chance.random() < 0.5:
        return pod
    labels = {"app": "comer"}
    template = {"metadata": {"labels": labels}, "spec": {key: pod["spec"][key] for key in pod["spec"]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "comer", "namespace": NAMESPACE},
        "spec": {"replicas": chance.randint(2, 4), "selector": {"matchLabels": labels}, "template": template},
    }


def _required_terms(app: str, key: str) -> Json:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}

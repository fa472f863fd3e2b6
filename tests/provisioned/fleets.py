"""Random clusters whose nodes may go, each from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from tests.manifests import HOSTNAME, Json
from tests.provisioned.clusters import DAEMON_CPU_MAX, daemon_pod, daemon_set
from tests.unit.provisioner.clusters import CAPACITY_TYPE, pod, pod_affinity, requirement, spread
from tests.unit.provisioner.fleets import NODE_POOL, machine, node_pool
from tests.unit.provisioner.random_fleets import PRICES

_APPS: Final = ("web", "db", "batch")
_STAYS: Final = {"nodeSelector": {"gpu": "yes"}}
_RUNNING: Final = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@dataclass(frozen=True, slots=True)
class Fleet:
    """A cluster that Karpenter manages.

    Attributes:
        objects: What an API server without Karpenter's types has.
        managed: NodeClaims and NodePools.
        nodes_at_once: By NodePool, its only budget.
        available_min: By app, how many of its pods have to be there.
    """

    objects: tuple[Json, ...]
    managed: tuple[Json, ...]
    nodes_at_once: dict[str, str]
    available_min: dict[str, int]

    @property
    def running(self) -> frozenset[str]:
        """The names of the pods on nodes, but for those of DaemonSets."""
        return frozenset(
            manifest["metadata"]["name"]
            for manifest in self.objects
            if manifest["kind"] == "Pod" and manifest["spec"].get("nodeName") and not is_of_daemon_set(manifest)
        )

    @property
    def daemon_sets(self) -> tuple[Json, ...]:
        """The DaemonSets, all of which run on every node."""
        return tuple(manifest for manifest in self.objects if manifest["kind"] == "DaemonSet")

    def pool_of(self, node: str) -> str:
        """The NodePool of one of its nodes."""
        nodes_of_name = (
            manifest for manifest in self.objects if manifest["kind"] == "Node" and manifest["metadata"]["name"] == node
        )
        return str(next(nodes_of_name)["metadata"]["labels"][NODE_POOL])


def any_fleet(seed: int) -> Fleet:
    """Some nodes of all sizes with pods on them, of which some cannot move; some wait, and budgets differ."""
    chance = Random(seed)
    # Their own chance, so that a seed's cluster is otherwise the same with and without them.
    agents = Random(f"agents {seed}")
    cluster_objects: list[Json] = [daemon_set(agents)] if agents.random() < 0.5 else []
    daemons = tuple(cluster_objects)
    apps = dict.fromkeys(_APPS, 0)
    for index in range(chance.randint(2, 7)):
        size = chance.choice(tuple(PRICES))
        name = f"n{index}"
        cluster_objects += machine(
            name,
            size,
            pool=chance.choice(("one", "two")),
            zone=chance.choice(("zone-1", "zone-2")),
            capacity_type=chance.choice(("on-demand", "on-demand", "spot")),
        )
        cluster_objects += [daemon_pod(daemon, name) for daemon in daemons]
        free = size * 1000 - DAEMON_CPU_MAX
        for number in range(chance.randint(0, 4)):
            cpu = chance.choice((50, 300, 700, 1500, 3000))
            if cpu > free:
                continue
            free -= cpu
            app = chance.choice(_APPS)
            apps[app] += 1
            cluster_objects.append(_running(f"{name}-{number}", name, cpu, app, chance))
    if chance.random() < 0.3:
        cluster_objects.append(pod("waits", cpu="500m", memory="10Mi"))
    available_min = {app: count - 1 for app, count in apps.items() if count > 1 and chance.random() < 0.3}
    cluster_objects += [_budget(app, least, apps[app]) for app, least in available_min.items()]
    at_once = {"one": chance.choice(("100%", "50%", "1")), "two": chance.choice(("100%", "50%", "2"))}
    cluster_objects += [
        node_pool(
            name, nodes=nodes, requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")] if name == "one" else []
        )
        for name, nodes in at_once.items()
    ]
    documents = [{"apiVersion": _API_VERSIONS.get(document["kind"], "v1"), **document} for document in cluster_objects]
    managed = tuple(document for document in documents if document["kind"] in _KARPENTERS)
    return Fleet(
        tuple(document for document in documents if document["kind"] not in _KARPENTERS),
        managed,
        at_once,
        available_min,
    )


def is_of_daemon_set(pod: Json) -> bool:
    """Whether the pod stays with its node."""
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", ()))


_KARPENTERS: Final = ("NodeClaim", "NodePool")
_API_VERSIONS: Final = {**dict.fromkeys(_KARPENTERS, "karpenter.sh/v1"), "PodDisruptionBudget": "policy/v1"}


def _running(name: str, node: str, cpu: int, app: str, chance: Random) -> Json:
    fields: Json = {}
    kind = chance.random()
    if kind < 0.08:
        fields = dict(_STAYS)
    elif kind < 0.16:
        fields = {"affinity": pod_affinity(app, HOSTNAME, anti=True)}
    elif kind < 0.24:
        fields = {"topologySpreadConstraints": [spread(HOSTNAME, skew=3, app=app)]}
    elif kind < 0.3:
        fields = {"priority": chance.choice((-10, 10))}
    return pod(name, node=node, cpu=f"{cpu}m", memory="10Mi", labels={"app": app}, status=_RUNNING, **fields)


def _budget(app: str, least: int, count: int) -> Json:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": app}}},
        "status": {
            "disruptionsAllowed": count - least,
            "currentHealthy": count,
            "desiredHealthy": least,
            "expectedPods": count,
        },
    }

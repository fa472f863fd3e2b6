"""Differences, each planted in a known place: which pod's decision differs first, and what came before it.

A plant is a life and another one that differs from it in one thing. The pods around the one that the thing matters to,
which is called `target`, are indifferent to it: most fit on a single node, so that no score is compared. How many they
are is left to chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from tests.manifests import HOSTNAME, ZONE, node, pod
from tests.planted.lives import Json, Step, changing, creating, deleting

TARGET: Final = "target"
_DISK: Final = "disk"
_FILLERS_MAX: Final = 5

_PLUGIN: Final = """
from podium.framework import Code, FilterPlugin, ScorePlugin, Status


class Picky(FilterPlugin):
    def filter(self, state, pod, node_info):
        if "fragile" in pod.metadata.labels and node_info.name == "n1":
            return Status(Code.UNSCHEDULABLE, ("too rough",))
        return None


class Fond(ScorePlugin):
    def score(self, state, pod, node_info):
        return 77 if "fragile" in pod.metadata.labels else 0
"""


@dataclass(frozen=True, slots=True)
class Side:
    """What is known of one of the two decisions: the pod that it is about, and the object that changed before it."""

    pod: str
    event: str


@dataclass(frozen=True, slots=True)
class Plant:
    """Two lives that differ in one thing.

    Attributes:
        first, second: the decisions that differ first; None if that life has no more.
        profile, settings: what the other configuration says in its profile, and beside it.
        plugins: names of custom plugins that the other configuration enables, by their source.
    """

    name: str
    objects: Sequence[Json]
    steps: Sequence[Step]
    first: Side | None
    second: Side | None
    profile: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()
    source: str = _PLUGIN
    other_objects: Sequence[Json] | None = None
    other_steps: Sequence[Step] | None = None

    @property
    def is_of_configuration(self) -> bool:
        """Whether the two lives differ in their configuration only."""
        return self.other_objects is None and self.other_steps is None


# ---------------------------------------------------------------- the cluster


def _nodes() -> list[Json]:
    """Four nodes in two zones; n1 and n2 have a fast disk."""
    nodes = [node(f"n{at}", "8", labels={ZONE: "ab"[at // 2]}) for at in range(4)]
    for item in nodes[1:3]:
        item["metadata"]["labels"][_DISK] = "fast"
    return nodes


def _with(items: Sequence[Json], name: str, change: Callable[[Json], object]) -> list[Json]:
    """The objects after the one of that name has been changed."""
    for item in items:
        if item["metadata"]["name"] == name:
            change(item)
    return list(items)


def _foreign(name: str, on: str, cpu: str = "100m", **fields: Any) -> Json:
    return pod(name, cpu, scheduler="another", node=on, **fields)


def _filler(name: str, on: str) -> Step:
    return creating(pod(name, "10m", nodeSelector={HOSTNAME: on}))


def _story(random: Random, *steps: Step, on: Sequence[str] = ("n0", "n1"), is_last: bool = False) -> list[Step]:
    """The steps with fillers before and after them; `before-0` and `after-0` are always among these."""
    earlier = [_filler(f"before-{at}", random.choice(on)) for at in range(random.randint(1, _FILLERS_MAX))]
    later = [_filler(f"after-{at}", random.choice(on)) for at in range(random.randint(1, 2))]
    return [*earlier, *steps, *([] if is_last else later)]


def _pod_event(name: str) -> str:
    return f"Pod default/{name} was added or has changed"


def _at(name: str, event: str = "") -> Side:
    return Side(f"default/{name}", event or _pod_event(name))


# ---------------------------------------------------------------- configurations


def _of_configuration(
    name: str,
    random: Random,
    target: Json | None = None,
    *steps: Step,
    objects: Sequence[Json] = (),
    nodes: Sequence[Json] = (),
    first: str = TARGET,
    on: Sequence[str] = ("n0", "n1"),
    **fields: Any,
) -> Plant:
    story = _story(random, *steps, creating(target or pod(TARGET, "2")), on=on)
    return Plant(name, [*(nodes or _nodes()), *objects], story, _at(first), _at(first), **fields)


def _score(plugin: str, weight: int) -> Json:
    """A profile with another weight for that plugin, or without it if the weight is 0."""
    off = {"disabled": [{"name": plugin}]}
    return {"plugins": {"score": off if not weight else {**off, "enabled": [{"name": plugin, "weight": weight}]}}}


def _args(plugin: str, **args: Any) -> Json:
    return {"pluginConfig": [{"name": plugin, "args": args}]}


def _without(point: str, plugin: str) -> Json:
    return {"plugins": {point: {"disabled": [{"name": plugin}]}}}


def _term(app: str, key: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def _spread(when: str) -> Json:
    selector = {"matchLabels": {"app": "web"}}
    return {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": when, "labelSelector": selector}


def _zone(zone: str) -> Json:
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}


_WEB, _DB = {"app": "web"}, {"app": "db"}


def _scored_pod(plugin: str) -> tuple[Json, list[Json], list[Json]]:
    """A pod that the plugin scores, and only that pod as far as it can be; with objects and nodes that it needs."""
    nodes, near = _nodes(), {"weight": 10, "podAffinityTerm": _term("db", HOSTNAME)}
    in_b = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "preference": _zone("b")}]}
    near_db = {"preferredDuringSchedulingIgnoredDuringExecution": [near]}
    if plugin == "ImageLocality":
        nodes[2]["status"]["images"] = [{"names": ["large:1"], "sizeBytes": 800 << 20}]
        return pod(TARGET, image="large:1"), [], nodes
    if plugin == "InterPodAffinity":
        return pod(TARGET, affinity={"podAffinity": near_db}), [_foreign("db", "n2", labels=_DB)], nodes
    if plugin == "NodeAffinity":
        return pod(TARGET, affinity={"nodeAffinity": in_b}), [], nodes
    if plugin == "PodTopologySpread":
        spread = [_spread("ScheduleAnyway")]
        return pod(TARGET, labels=_WEB, topologySpreadConstraints=spread), [_foreign("web", "n0", labels=_WEB)], nodes
    if plugin == "TaintToleration":
        nodes[3]["spec"]["taints"] = [{"key": "old", "effect": "PreferNoSchedule"}]
    return pod(TARGET), [], nodes


_WEIGHTS: Final = {
    "NodeResourcesFit": (5, 20, 0),
    "NodeResourcesBalancedAllocation": (2, 7, 0),
    "ImageLocality": (3, 50, 0),
    "InterPodAffinity": (1, 9, 0),
    "NodeAffinity": (1, 8, 0),
    "PodTopologySpread": (1, 11, 0),
    "TaintToleration": (1, 30, 0),
}


def _scores(random: Random) -> Iterator[Plant]:
    for plugin, weights in _WEIGHTS.items():
        target, objects, nodes = _scored_pod(plugin)
        for weight in weights:
            name = f"weight {weight} of {plugin}" if weight else f"no scores by {plugin}"
            # Pods that others may score as well: only the plugins that look at this pod alone may have them around.
            decoys = [creating(pod("decoy"))] if target != pod(TARGET) else []
            yield _of_configuration(
                name, random, target, *decoys, objects=objects, nodes=nodes, profile=_score(plugin, weight)
            )


def _filters(random: Random) -> Iterator[Plant]:
    plant = partial(_of_configuration, random=random)

    def without(plugin: str) -> Json:
        return {"name": f"no filter {plugin}", "profile": _without("filter", plugin)}

    cordoned = _with(_nodes(), "n3", lambda item: item["spec"].update(unschedulable=True))
    yield plant(**without("NodeUnschedulable"), nodes=cordoned)
    tainted = _with(_nodes(), "n3", lambda item: item["spec"].update(taints=[{"key": "k", "effect": "NoSchedule"}]))
    yield plant(**without("TaintToleration"), nodes=tainted)
    holder = _foreign("holder", "n2", host_port=80)
    yield plant(**without("NodePorts"), target=pod(TARGET, host_port=80), objects=[holder])
    yield plant(**without("NodeResourcesFit"), target=pod(TARGET, "6"), objects=[_foreign("large", "n2", "4")])
    yield plant(**without("NodeAffinity"), first="before-0")
    spread = pod(TARGET, labels=_WEB, topologySpreadConstraints=[_spread("DoNotSchedule")])
    yield plant(**without("PodTopologySpread"), target=spread, objects=[_foreign("web", "n0", labels=_WEB)])
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term("db", HOSTNAME)]}}
    far = pod(TARGET, affinity=apart)
    yield plant(**without("InterPodAffinity"), target=far, objects=[_foreign("db", "n2", labels=_DB)])


def _other_points(random: Random) -> Iterator[Plant]:
    full = [_foreign(f"full-{at}", f"n{at}", "7900m") for at in range(1, 4)]
    victim = creating(pod("victim", "7", nodeSelector={HOSTNAME: "n0"}))
    yield _of_configuration(
        "no preemption",
        random,
        pod(TARGET, "6", priority=100),
        victim,
        objects=full,
        on=("n0",),
        profile=_without("postFilter", "DefaultPreemption"),
    )
    gated_step = creating(pod(TARGET, schedulingGates=[{"name": "wait"}]))
    yield Plant(
        "no gates",
        _nodes(),
        _story(random, gated_step),
        _at("after-0"),
        _at(TARGET),
        profile=_without("preEnqueue", "SchedulingGates"),
    )


def _arguments(random: Random) -> Iterator[Plant]:
    plant = partial(_of_configuration, random=random)
    fit = partial(_args, "NodeResourcesFit")
    yield plant("MostAllocated", profile=fit(scoringStrategy={"type": "MostAllocated"}))
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    ratio = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
    yield plant("RequestedToCapacityRatio", profile=fit(scoringStrategy=ratio))
    cpu_only = [{"name": "cpu", "weight": 1}]
    yield plant("cpu only", profile=fit(scoringStrategy={"type": "LeastAllocated", "resources": cpu_only}))
    yield plant("balance of cpu", profile=_args("NodeResourcesBalancedAllocation", resources=cpu_only))
    greedy = pod(TARGET)
    greedy["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    greedy["spec"]["containers"][0]["resources"]["limits"] = {"example.com/gpu": "1"}
    rich = _with(_nodes(), "n2", lambda item: item["status"]["allocatable"].update({"example.com/gpu": "4"}))
    yield plant("ignored resource", target=greedy, nodes=rich, profile=fit(ignoredResources=["example.com/gpu"]))
    only_a = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_zone("a")]}}
    yield plant("added affinity", profile=_args("NodeAffinity", addedAffinity=only_a))
    to_web = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term("web", HOSTNAME)]}}
    near_web = [{"weight": 20, "podAffinityTerm": _term("web", HOSTNAME)}]
    mild = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": near_web}}
    fans = [_foreign("fan", "n2", affinity=to_web), _foreign("friend", "n1", affinity=mild)]
    weight = _args("InterPodAffinity", hardPodAffinityWeight=50)
    yield plant("weight of required affinity", target=pod(TARGET, labels=_WEB), objects=fans, profile=weight)


def _percentages(random: Random) -> Iterator[Plant]:
    nodes = [node(f"n{at}") for at in range(120)]
    for percentage in (90, 100):
        settings = {"percentageOfNodesToScore": percentage}
        yield _of_configuration(f"{percentage} % of nodes", random, nodes=nodes, settings=settings)
    yield _of_configuration("85 % of nodes, by profile", random, nodes=nodes, profile={"percentageOfNodesToScore": 85})


def _custom(random: Random) -> Iterator[Plant]:
    for plugin in ("Picky", "Fond"):
        yield _of_configuration(
            f"plugin {plugin}",
            random,
            pod(TARGET, labels={"fragile": "yes"}),
            creating(pod("decoy")),
            profile={"plugins": {"multiPoint": {"enabled": [{"name": plugin}]}}},
            plugins=(plugin,),
        )


# ---------------------------------------------------------------- clusters


def _of_cluster(
    name: str,
    random: Random,
    change: Callable[[Json], object] | None = None,
    on: str = "n2",
    target: Json | None = None,
    extra_objects: Sequence[Json] = (),
) -> Plant:
    """One node that is another one in the other life, or an object more."""
    story = _story(random, creating(target or pod(TARGET)))
    nodes = _with(_nodes(), on, change) if change else _nodes()
    return Plant(name, _nodes(), story, _at(TARGET), _at(TARGET), other_objects=[*nodes, *extra_objects])


def _changed_nodes(random: Random) -> Iterator[Plant]:
    plant = partial(_of_cluster, random=random)
    fast = pod(TARGET, nodeSelector={_DISK: "fast"})
    yield plant("a label of another value", target=fast, change=lambda item: _label(item, "slow"))
    yield plant("one label more", target=fast, on="n3", change=lambda item: _label(item, "fast"))
    taint = [{"key": "k", "effect": "NoSchedule"}]
    yield plant("a taint", change=lambda item: item["spec"].update(taints=taint))
    yield plant("a cordoned node", change=lambda item: item["spec"].update(unschedulable=True))
    yield plant(
        "a smaller node", target=pod(TARGET, "6"), change=lambda item: item["status"]["allocatable"].update(cpu="4")
    )
    yield plant("one pod more on a node", target=pod(TARGET, "6"), extra_objects=[_foreign("more", "n2", "4")])


def _label(item: Json, disk: str) -> None:
    item["metadata"]["labels"][_DISK] = disk


def _changed_steps(random: Random) -> Iterator[Plant]:
    fast = creating(pod(TARGET, nodeSelector={_DISK: "very-fast"}))

    def add_label(name: str) -> Step:
        return changing(node(name), lambda item: _label(item, "very-fast"))

    # The label that lets a waiting pod go: the decision is right after the event.
    state = random.getstate()
    story = _story(random, fast, add_label("n2"))
    random.setstate(state)
    yield Plant(
        "the label that a pod waits for is on another node",
        _nodes(),
        story,
        _at(TARGET, "Node n2 was added or has changed"),
        _at(TARGET, "Node n3 was added or has changed"),
        other_steps=_story(random, fast, add_label("n3")),
    )
    tight, holder = creating(pod(TARGET, "6")), [_foreign(f"full-{at}", f"n{at}", "7") for at in range(4)]
    state = random.getstate()
    story = _story(random, tight, deleting(holder[2]))
    random.setstate(state)
    yield Plant(
        "the pod that makes room goes elsewhere",
        [*_nodes(), *holder],
        story,
        _at(TARGET, "Pod default/full-2 was deleted"),
        _at(TARGET, "Pod default/full-3 was deleted"),
        other_steps=_story(random, tight, deleting(holder[3])),
    )
    state = random.getstate()
    story = _story(random, creating(pod(TARGET)))
    random.setstate(state)
    yield Plant("a pod less", _nodes(), story, _at(TARGET), _at("after-0"), other_steps=_story(random, creating()))
    state = random.getstate()
    story = _story(random, creating(pod(TARGET)), is_last=True)
    random.setstate(state)
    yield Plant(
        "a life that ends earlier", _nodes(), story, _at(TARGET), None, other_steps=_story(random, is_last=True)
    )


def plants() -> list[Plant]:
    """All of them; the same every time."""
    random = Random(18)
    families = (_scores, _filters, _other_points, _arguments, _percentages, _custom, _changed_nodes, _changed_steps)
    return [plant for family in families for plant in family(random)]

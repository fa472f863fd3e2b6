"""Draws questions about the plugins of scheduler-plugins: one function for each kind, chance from a seed alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from tests.parity.cross.drawing import Json, chance, copy_of
from tests.parity.policies.clusters import GPU, HUGE, NAMESPACES, NIC, budgets, nodes, pod, running
from tests.parity.policies.custom_objects import (
    WORKLOADS,
    app_group,
    metrics,
    network_topology,
    power_model,
    quota,
    topologies,
)

_CONFIG = "kubescheduler.config.k8s.io/v1"


# Upstream preempts for no pod of a queue.
_NONE: Json = {"disabled": [{"name": "*"}]}
_RANK: Json = {
    "NodeMetadata": {
        "metadataKey": "rank",
        "metadataSource": "Label",
        "metadataType": "Number",
        "scoringStrategy": "Highest",
    }
}


def drawn_questions(seed: int, count: int) -> Iterator[Json]:
    """Yield as many questions, every kind equally often."""
    for number in range(count):
        random = chance(seed, number)
        kind = list(KINDS)[number % len(KINDS)]
        yield {"id": f"{kind}-{seed}x{number}", **KINDS[kind](random)}


def _config(plugins: Json, **args: Json) -> Json:
    arguments = [
        {"name": name, "args": {"apiVersion": _CONFIG, "kind": f"{name}Args", **values}}
        for name, values in args.items()
    ]
    profile = {"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": arguments}
    return {"apiVersion": _CONFIG, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}


def _scoring(random: Random, name: str, **points: Json) -> Json:
    score: Json = {"enabled": [{"name": name, "weight": random.randint(1, 9)}]}
    if random.random() < 0.4:
        score["disabled"] = [{"name": "*"}]
    return {"score": score, **points}


def _by_rank(on: list[Json], *plugins: Json) -> Json:
    """Give each node a rank, and return a choice by it: among equal nodes upstream chooses by chance."""
    for number, node in enumerate(on):
        node["metadata"]["labels"]["rank"] = str(number)
    return {"enabled": [*plugins, {"name": "NodeMetadata"}], "disabled": [{"name": "*"}]}


def _optional(random: Random, **choices: tuple[object, ...]) -> Json:
    """Return each of the fields in half of the cases, with one of its values."""
    return {name: copy_of(random.choice(values)) for name, values in choices.items() if random.random() < 0.5}


# ------------------------------------------------------------ quotas


def quota_question(random: Random) -> Json:
    on = nodes(random, high=4)
    objects = [*on, *running(random, on, high=14), *budgets(random)]
    point = {"enabled": [{"name": "CapacityScheduling"}]}
    is_queue = random.random() < 0.3
    config = _config(
        {
            "preFilter": point,
            "reserve": point,
            "postFilter": {**({} if is_queue else point), "disabled": [{"name": "*"}]},
            **({"score": _by_rank(on)} if is_queue else {}),
        },
        **_RANK,
    )
    custom = [quota(random, namespace) for namespace in NAMESPACES[:3] if random.random() < 0.85]
    if is_queue:
        return {"objects": objects, "custom": custom, "pods": _queue(random), "config": config}
    if random.random() < 0.5:
        _fill(random, on)
    subject = pod(random, "new", random.choice(NAMESPACES))
    if random.random() < 0.2:
        subject["status"]["nominatedNodeName"] = random.choice(on)["metadata"]["name"]
    return {"objects": objects, "custom": custom, "pod": subject, "config": config}


def _fill(random: Random, on: list[Json]) -> None:
    """Make most nodes too small for another pod, so that preemption is tried."""
    for node in on:
        if random.random() < 0.8:
            node["status"]["allocatable"]["pods"] = random.choice(("1", "2", "3"))


def _queue(random: Random, **spec: object) -> list[Json]:
    return [
        pod(random, f"new-{number:02}", random.choice(NAMESPACES), **spec) for number in range(random.randint(2, 14))
    ]


# ------------------------------------------------------------ NUMA nodes


def numa_question(random: Random) -> Json:
    on = nodes(random, high=5)
    point = {"enabled": [{"name": "NodeResourceTopologyMatch"}]}
    config = _config(
        _scoring(random, "NodeResourceTopologyMatch", filter=point), NodeResourceTopologyMatch=_numa_args(random)
    )
    subject = pod(random, "new", random.choice(NAMESPACES))
    if random.random() < 0.5:
        for item in subject["spec"]["containers"]:
            item.setdefault("resources", {}).setdefault("requests", {}).setdefault("cpu", "1")
            item["resources"]["requests"].setdefault("memory", "512Mi")
            item["resources"]["limits"] = dict(item["resources"]["requests"])
        for item in subject["spec"].get("initContainers", ()):
            item["resources"] = copy_of(subject["spec"]["containers"][0]["resources"])
    objects = [*on, *running(random, on, high=5)]
    return {"objects": objects, "custom": list(topologies(random, on)), "pod": subject, "config": config}


def _numa_args(random: Random) -> Json:
    types = ("LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes")
    args: Json = {}
    if random.random() < 0.9:
        args["scoringStrategy"] = {"type": random.choice(types)}
        if random.random() < 0.5:
            args["scoringStrategy"]["resources"] = [
                {"name": name, "weight": random.randint(1, 6)}
                for name in random.sample(("cpu", "memory", GPU, NIC, HUGE), random.randint(1, 3))
            ]
    return args | _optional(random, discardReservedNodes=(True, False), preemptionMode=("Enabled", "Disabled"))


def cache_question(random: Random) -> Json:
    """A queue of pods, each of which takes resources off NUMA nodes, or closes its node, for the next ones."""
    on = nodes(random, high=4)
    point = {"enabled": [{"name": "NodeResourceTopologyMatch"}]}
    args = _numa_args(random)
    args.pop("discardReservedNodes", None)
    if random.random() < 0.3:
        args["discardReservedNodes"] = True
    else:
        args["cacheResyncPeriodSeconds"] = 1000
        args["cache"] = _optional(
            random,
            foreignPodsDetect=("All", "None", "OnlyExclusiveResources"),
            informerMode=("Dedicated", "Shared"),
            resyncMethod=("All", "Autodetect"),
        )
    score = _by_rank(on, {"name": "NodeResourceTopologyMatch", "weight": 1000})
    config = _config(
        {"filter": point, "reserve": point, "score": score, "postFilter": _NONE},
        NodeResourceTopologyMatch=args,
        **_RANK,
    )
    queue = [pod(random, f"new-{number:02}") for number in range(random.randint(3, 12))]
    for item in queue:
        # With less than two resources BalancedAllocation has no number, and upstream an error.
        if random.random() < 0.7 or args.get("scoringStrategy", {}).get("type") == "BalancedAllocation":
            item["spec"].pop("resources", None)
    return {"objects": on, "custom": list(topologies(random, on)), "pods": queue, "config": config}


# ------------------------------------------------------------ loads


def load_question(random: Random) -> Json:
    on = nodes(random, high=6)
    name = random.choice(("TargetLoadPacking", "LoadVariationRiskBalancing", "LowRiskOverCommitment", "Peaks"))
    args = {
        "TargetLoadPacking": lambda: _optional(
            random,
            targetUtilization=(0, 10, 40, 60, 99, 100),
            defaultRequests=({"cpu": "2"}, {"cpu": "150m"}, {"memory": "1Gi"}),
            defaultRequestsMultiplier=("1", "0.7", "1.8", "2.25", "0"),
        ),
        "LoadVariationRiskBalancing": lambda: _optional(
            random, safeVarianceMargin=(0, 0.5, 1, 2, 3.7, -1), safeVarianceSensitivity=(0, 0.5, 1, 2, 4, -2)
        ),
        "LowRiskOverCommitment": lambda: _optional(
            random,
            smoothingWindowSize=(0, 1, 3, 5, 20),
            riskLimitWeights=({}, {"cpu": 0.2}, {"cpu": 0, "memory": 1}, {"cpu": 1, "memory": 0.7}, {"memory": 2}),
        ),
        "Peaks": lambda: {"NodePowerModel": power_model(random, on)},
    }[name]()
    address = "WatcherAddress" if name == "Peaks" else "watcherAddress"
    pre_score = {"preScore": {"enabled": [{"name": name}]}} if name == "LowRiskOverCommitment" else {}
    question = {
        "objects": [*on, *running(random, on)],
        "pod": pod(random, "new"),
        "config": _config(_scoring(random, name, **pre_score), **{name: {address: "WATCHER", **args}}),
    }
    return question if random.random() < 0.05 else {**question, "metrics": metrics(random, on)}


# ------------------------------------------------------------ preemption


def toleration_question(random: Random) -> Json:
    on = nodes(random, high=4)
    objects = [*on, *running(random, on, high=14), *budgets(random)]
    prefix = "preemption-toleration.scheduling.x-k8s.io/"
    values = (
        ("minimum-preemptable-priority", ("6", "11", "2000", "-1", "x", "")),
        ("toleration-seconds", ("0", "-1", "60", "4000000000", "1.5", "x")),
    )
    for name in ("low", "middle", "high"):
        annotations = {prefix + key: random.choice(choices) for key, choices in values if random.random() < 0.6}
        objects.append(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name, "annotations": annotations},
                "value": random.choice((0, 5, 10)),
            }
        )
    for item in objects:
        if item["kind"] == "Pod" and random.random() < 0.8:
            item["spec"]["priorityClassName"] = random.choice(
                ("low", "middle", "high", "high", "absent") if random.random() < 0.1 else ("low", "middle", "high")
            )
    if random.random() < 0.8:
        _fill(random, on)
    config = _config(
        {"postFilter": {"enabled": [{"name": "PreemptionToleration"}], "disabled": [{"name": "*"}]}},
        PreemptionToleration={"minCandidateNodesPercentage": random.choice((10, 100))},
    )
    subject = pod(random, "new", random.choice(NAMESPACES), priority=random.choice((5, 10, 100, 1000)))
    if random.random() < 0.2:
        subject["status"]["nominatedNodeName"] = random.choice(on)["metadata"]["name"]
    return {"objects": objects, "pod": subject, "config": config}


# ------------------------------------------------------------ scores by what nodes say


def metadata_question(random: Random) -> Json:
    on = nodes(random, low=2, high=7)
    is_number = random.random() < 0.5
    numbers = (
        "1",
        "-7",
        "100",
        "1e3",
        "0x1p4",
        "3.99",
        "12abc",
        "",
        "1_000",
        "Inf",
        "nan",
        "99999",
        "+5",
        " 5",
        ".5",
        "1e400",
    )
    layout = random.choice(
        (
            None,
            None,
            "2006-01-02",
            "Jan 2 2006",
            "02/01/06 15:04",
            "2006-01-02T15:04:05.000Z07:00",
            "Monday, 2-Jan-06",
            "2006-01-02 3:04PM -0700",
            "2006-002",
        )
    )
    times = (
        "2026-01-01T00:00:00Z",
        "2025-06-01T12:00:00+02:00",
        "2024-02-30T00:00:00Z",
        "1999-12-31T23:59:59.999Z",
        "2026-01-01",
        "Jan 5 2026",
        "31/12/25 23:59",
        "2026-02-03T04:05:06.789+01:00",
        "Friday, 2-Jan-26",
        "2030-01-01T00:00:00Z",
        "2026-01-02 3:04PM -0500",
        "2026-034",
        "2026-1-1",
        "yesterday",
    )
    for node in on:
        for source in ("labels", "annotations"):
            if random.random() < 0.85:
                node["metadata"].setdefault(source, {})["example.com/rank"] = random.choice(
                    numbers if is_number else times
                )
    args: Json = {"metadataKey": "example.com/rank", "metadataSource": random.choice(("Label", "Annotation"))}
    if is_number:
        args |= {"metadataType": "Number", "scoringStrategy": random.choice(("Highest", "Lowest"))}
    else:
        args |= {"metadataType": "Timestamp", "scoringStrategy": random.choice(("Newest", "Oldest"))}
        args |= {"timestampFormat": layout} if layout else {}
    config = _config(_scoring(random, "NodeMetadata"), NodeMetadata=args)
    return {"objects": on, "pod": pod(random, "new"), "config": config}


def state_question(random: Random) -> Json:
    on = nodes(random, low=2, high=6)
    objects = [*on, *running(random, on, high=20)]
    if random.random() < 0.5:
        config = _config(_scoring(random, "PodState"))
    else:
        resources = ("cpu", "memory", "ephemeral-storage", "pods", GPU, NIC, HUGE)
        args = _optional(
            random,
            mode=("Least", "Most"),
            resources=(
                [
                    {"name": name, "weight": random.choice((1, 2, 5, 1000, 1 << 20))}
                    for name in random.sample(resources, random.randint(1, 4))
                ],
            ),
        )
        config = _config(_scoring(random, "NodeResourcesAllocatable"), NodeResourcesAllocatable=args)
    subject = pod(random, "new")
    if random.random() < 0.3:
        subject["status"]["nominatedNodeName"] = random.choice(on)["metadata"]["name"]
    return {"objects": objects, "pod": subject, "config": config}


# ------------------------------------------------------------ network and system calls

_GROUP, _WORKLOAD = "appgroup.diktyo.x-k8s.io", "appgroup.diktyo.x-k8s.io.workload"


def network_question(random: Random) -> Json:
    on = nodes(random, low=2, high=6)
    objects = [*on, *(_label_group(random, item) for item in running(random, on, high=14))]
    point = {"enabled": [{"name": "NetworkOverhead"}]}
    args = {
        "namespaces": ["default"],
        "weightsName": random.choice(("UserDefined", "UserDefined", "Other")),
        "networkTopologyName": "nt",
    }
    config = _config(_scoring(random, "NetworkOverhead", preFilter=point, filter=point), NetworkOverhead=args)
    return {
        "objects": objects,
        "custom": [network_topology(random), app_group(random)],
        "pod": _label_group(random, pod(random, "new")),
        "config": config,
    }


def _label_group(random: Random, item: Json) -> Json:
    if random.random() < 0.9:
        item["metadata"]["labels"] |= {_GROUP: "app", _WORKLOAD: random.choice((*WORKLOADS, "p9"))}
    return item


def syscall_question(random: Random) -> Json:
    on = nodes(random, low=2, high=5)
    calls = ("read", "write", "open", "close", "mmap", "clone", "futex", "socket", "bind")

    def profile(name: str) -> Json:
        return {
            "apiVersion": "security-profiles-operator.x-k8s.io/v1beta1",
            "kind": "SeccompProfile",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {
                "defaultAction": "SCMP_ACT_ERRNO",
                "syscalls": [
                    {"action": action, "names": random.sample(calls, random.randint(1, 6))}
                    for action in random.sample(
                        ("SCMP_ACT_ALLOW", "SCMP_ACT_LOG", "SCMP_ACT_KILL"), random.randint(1, 3)
                    )
                ],
            },
        }

    def confine(item: Json) -> Json:
        def seccomp() -> Json:
            path = random.choice(("operator/default/one.json", "default/two.json", "default/three.v2.json", "one.json"))
            return {"seccompProfile": {"type": "Localhost", "localhostProfile": path}}

        if random.random() < 0.5:
            item["spec"]["securityContext"] = seccomp()
        for inner in item["spec"]["containers"]:
            if random.random() < 0.4:
                inner["securityContext"] = seccomp()
        if random.random() < 0.2:
            item["metadata"]["annotations"] = {
                "seccomp.security.alpha.kubernetes.io/pod": "localhost/operator/default/two.json"
            }
        return item

    custom = [profile(name) for name in ("one", "two", "three.v2", "all-syscalls") if random.random() < 0.85]
    return {
        "objects": [*on, *(confine(item) for item in running(random, on, phases=("Running",)))],
        "custom": custom,
        "pod": confine(pod(random, "new")),
        "config": _config(
            _scoring(random, "SySched"), SySched={"defaultProfileNamespace": "default"} if random.random() < 0.5 else {}
        ),
    }


# ------------------------------------------------------------ queues, and several at a time


def queue_question(random: Random) -> Json:
    on = nodes(random, high=5)
    name = random.choice(("QOSSort", "TopologicalSort"))
    plugins: Json = {
        "queueSort": {"enabled": [{"name": name}], "disabled": [{"name": "*"}]},
        "score": _by_rank(on),
        "postFilter": _NONE,
    }
    args = {**_RANK, **({"TopologicalSort": {"namespaces": ["default"]}} if name == "TopologicalSort" else {})}
    # podium orders by priority first: see `Differs` in podium.plugins.contrib.topological_sort.
    queue = _queue(random, priority=0) if name == "TopologicalSort" else _queue(random)
    custom = []
    if name == "TopologicalSort":
        custom = [app_group(random), network_topology(random)]
        # Of two pods of one workload upstream puts each before the other.
        workloads = random.sample((*WORKLOADS, "p9"), min(len(queue), len(WORKLOADS) + 1))
        del queue[len(workloads) :]
        for item, workload in zip(queue, workloads, strict=True):
            item["metadata"]["labels"] |= {_GROUP: "app", _WORKLOAD: workload}
    return {
        "objects": [*on, *running(random, on, high=5)],
        "custom": custom,
        "pods": queue,
        "config": _config(plugins, **args),
    }


def mixed_question(random: Random) -> Json:
    """Quota, NUMA nodes, loads and metadata in one profile, over one cluster."""
    quotas, numa, loads = quota_question(random), numa_question(random), load_question(random)
    while "pods" in quotas:
        quotas = quota_question(random)
    on = [item for item in quotas["objects"] if item["kind"] == "Node"]
    profile_of_all = quotas["config"]["profiles"][0]
    for question in (numa, loads):
        profile = question["config"]["profiles"][0]
        profile_of_all["pluginConfig"] += profile["pluginConfig"]
        for point, plugin_set in profile["plugins"].items():
            profile_of_all["plugins"].setdefault(point, {}).setdefault("enabled", []).extend(plugin_set["enabled"])
    return {**quotas, "custom": [*quotas["custom"], *topologies(random, on)], "metrics": metrics(random, on)}


KINDS: dict[str, Callable[[Random], Json]] = {
    "quota": quota_question,
    "numa": numa_question,
    "cache": cache_question,
    "load": load_question,
    "toleration": toleration_question,
    "metadata": metadata_question,
    "state": state_question,
    "network": network_question,
    "syscall": syscall_question,
    "queue": queue_question,
    "mixed": mixed_question,
}

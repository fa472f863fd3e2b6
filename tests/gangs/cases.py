"""Small random gangs with claims, and whether there is a placement by trying them all.

The brute force shares no code with the search: a case is a few dicts, and its rules are written once more here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from random import Random
from typing import Any

import msgspec

from podium.cluster.pod_groups import PodGroupStates
from podium.config import PluginConfig, default_configuration, parse_feature_gates
from podium.config.args import RawArgs
from podium.engine.group_decisions import GroupDecision
from podium.engine.offline import OfflineHandle
from podium.engine.placing import Engine
from podium.engine.pod_group_cycle import PodGroupCycle
from podium.engine.store import ObjectStore
from podium.framework.contract.steps import run_unasked
from podium.framework.cycle.schedule import Suggested
from podium.framework.profile.observer import Observer
from podium.framework.profile.runtime import Framework
from podium.lib.clock import ManualClock
from podium.objects.claims import ResourceClaim
from podium.objects.core import Pod
from podium.objects.devices import DeviceClass, ResourceSlice
from podium.objects.resource_types import DEVICE_CLASSES, POD_GROUPS, RESOURCE_CLAIMS, RESOURCE_SLICES
from podium.plugins import IN_TREE
from podium.plugins.dynamic_resources.pod_devices import PodDevices
from podium.plugins.shared.cluster_devices import ClusterDevices
from podium.queues import Nominator
from podium.testing.handle import RecordedGroups
from tests.builders import cache_of, node, pod, pod_group

DRIVER = "gpu.example.com"
KINDS = ("whole", "half", "plain")


@dataclass
class Case:
    """A gang whose pods have one claim each; equal numbers in `claim_of` share one.

    Attributes:
        nodes: by node, its cpus and its devices, each a kind and a model; wholes and halves of a node share a counter.
        claims: for each claim the alternatives, in order: kind and count, and whether all must be of one model.
        pods: by pod, its cpus and its claim.
        needed: how many of them the gang needs.
    """

    nodes: list[tuple[int, list[tuple[str, str]]]]
    claims: list[tuple[list[tuple[str, int]], bool]]
    pods: list[tuple[int, int]]
    members_min: int = 0


def random_case(random: Random) -> Case:
    """A small one, in which devices are short."""
    nodes = []
    for _ in range(random.randint(1, 3)):
        devices = [(random.choice(KINDS), random.choice("ab")) for _ in range(random.randint(1, 4))]
        nodes.append((random.randint(2, 4), devices))
    pods = [(random.choice((1, 1, 1, 2)), 0) for _ in range(random.randint(2, 4))]
    claims: list[tuple[list[tuple[str, int]], bool]] = []
    for index, (cpus, _) in enumerate(pods):
        if not claims or random.random() > 0.15:
            kinds = random.sample(KINDS, random.randint(1, 3))
            claims.append(([(kind, random.choice((1, 1, 2))) for kind in kinds], random.random() < 0.3))
        pods[index] = cpus, len(claims) - 1
    members_min = len(pods) if random.random() < 0.7 else random.randint(1, len(pods))
    return Case(nodes, claims, pods, members_min)


# ---------------------------------------------------------------- brute force


def _ways(case: Case, claim: int, at: int) -> Iterator[tuple[int, ...]]:
    """The sets of devices of a node that satisfy a claim."""
    alternatives, is_uniform = case.claims[claim]
    devices = case.nodes[at][1]
    for kind, count in alternatives:
        for combination in combinations([index for index, device in enumerate(devices) if device[0] == kind], count):
            if not is_uniform or len({devices[index][1] for index in combination}) == 1:
                yield combination


def _counters_suffice(case: Case, at: int, indexes: set[int]) -> bool:
    costs = {"whole": 2, "half": 1, "plain": 0}
    return sum(costs[case.nodes[at][1][index][0]] for index in indexes) <= 2


def is_valid(case: Case, places: dict[int, int], devices: dict[int, tuple[int, tuple[int, ...]]]) -> bool:
    """Return True if these pods may be on these nodes with these devices, given by claim as node and devices."""
    if len(places) < case.members_min:
        return False
    for at, (cpus, _) in enumerate(case.nodes):
        if sum(case.pods[index][0] for index, node_index in places.items() if node_index == at) > cpus:
            return False
        sets = [set(indexes) for where, indexes in devices.values() if where == at]
        union = set().union(*sets) if sets else set()
        if len(union) != sum(map(len, sets)) or not _counters_suffice(case, at, union):
            return False
    return all(
        claim in devices
        and devices[claim][0] == node_index
        and devices[claim][1] in set(_ways(case, claim, node_index))
        for index, node_index in places.items()
        for claim in (case.pods[index][1],)
    )


def exists(case: Case) -> bool:
    """Return True if any placement is valid."""
    for combination in combinations(range(len(case.pods)), case.members_min):
        for where in product(range(len(case.nodes)), repeat=len(combination)):
            places = dict(zip(combination, where, strict=True))
            at = {case.pods[index][1]: node_index for index, node_index in places.items()}
            if any(at[case.pods[index][1]] != node_index for index, node_index in places.items()):
                continue
            options = [list(_ways(case, claim, node_index)) for claim, node_index in at.items()]
            for ways in product(*options):
                devices = {claim: (node_index, way) for (claim, node_index), way in zip(at.items(), ways, strict=True)}
                if is_valid(case, places, devices):
                    return True
    return False


# ---------------------------------------------------------------- podium


def _slices(case: Case) -> Iterator[ResourceSlice]:
    for at, (_, devices) in enumerate(case.nodes):
        pool = {"name": f"n{at}", "generation": 1, "resourceSliceCount": 2}
        counters = [{"name": "chip", "counters": {"memory": {"value": "2"}}}]
        costs = {"whole": "2", "half": "1"}
        device_list = [
            {
                "name": f"d{index}",
                "attributes": {"kind": {"string": kind}, "model": {"string": model}},
                "consumesCounters": [{"counterSet": "chip", "counters": {"memory": {"value": costs[kind]}}}]
                if kind in costs
                else [],
            }
            for index, (kind, model) in enumerate(devices)
        ]
        for name, part in (("counters", {"sharedCounters": counters}), ("devices", {"devices": device_list})):
            spec = {"driver": DRIVER, "pool": pool, "nodeName": f"n{at}", **part}
            yield msgspec.convert({"metadata": {"name": f"n{at}-{name}"}, "spec": spec}, ResourceSlice)


def _claim(index: int, alternatives: list[tuple[str, int]], *, is_uniform: bool) -> ResourceClaim:
    first = [
        {
            "name": f"s{at}",
            "deviceClassName": "gpu",
            "allocationMode": "ExactCount",
            "count": count,
            "selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].kind == "{kind}"'}}],
        }
        for at, (kind, count) in enumerate(alternatives)
    ]
    constraints = [{"matchAttribute": f"{DRIVER}/model"}] if is_uniform else []
    metadata = {"name": f"c{index}", "namespace": "default", "uid": f"c{index}", "resourceVersion": "1"}
    devices = {"requests": [{"name": "r", "firstAvailable": first}], "constraints": constraints}
    return msgspec.convert({"metadata": metadata, "spec": {"devices": devices}}, ResourceClaim)


def _pod(index: int, cpus: int, claim: int) -> Pod:
    claims = [{"name": "gpu", "resourceClaimName": f"c{claim}"}]
    return pod(f"m{index}", group="gang", cpu=str(cpus), spec={"resourceClaims": claims})


def decide(case: Case, steps: int) -> tuple[GroupDecision, ClusterDevices]:
    """Return podium's decision with that many steps, and the devices as they are afterwards."""
    gates = parse_feature_gates(["GenericWorkload=true"])
    assert gates.pod_groups is not None
    pods = [_pod(index, *fields) for index, fields in enumerate(case.pods)]
    group = pod_group("gang", min_count=case.members_min)
    cache = cache_of(*(node(f"n{at}", cpu=str(cpus)) for at, (cpus, _) in enumerate(case.nodes)))
    states = PodGroupStates()
    for item in pods:
        states.put_waiting(item)
    gpu = msgspec.convert({"metadata": {"name": "gpu"}}, DeviceClass)
    store = ObjectStore(
        [
            (POD_GROUPS, group),
            (DEVICE_CLASSES, gpu),
            *((RESOURCE_SLICES, resource_slice) for resource_slice in _slices(case)),
            *(
                (RESOURCE_CLAIMS, _claim(index, alternatives, is_uniform=is_uniform))
                for index, (alternatives, is_uniform) in enumerate(case.claims)
            ),
        ]
    )
    nominator = Nominator({pod.key: pod for pod in pods}.get)
    groups: Any = RecordedGroups(gates.pod_groups, states)
    handle = OfflineHandle(ManualClock(), Random(1), nominator, cache.snapshot, store.lister, pod_groups=groups)
    (profile,) = default_configuration(gates).profiles
    own = PluginConfig("GangScheduling", RawArgs({"thoroughSearchSteps": steps}))
    profile = replace(profile, plugin_config=(*profile.plugin_config, own))
    framework = Framework(profile, IN_TREE, handle, Observer())
    state = states.get("default/gang")
    assert state is not None
    names = {pods[0].spec.scheduler_name: framework}
    cycle = PodGroupCycle(Engine(cache, nominator, 0), names, gates.pod_groups, "default/gang", group, pods, state)
    decision = run_unasked(cycle.attempt())
    assert cache.statistics()["assumed_pods"] == 0
    return decision, handle.shared(ClusterDevices)


def placement_of(case: Case, decision: GroupDecision) -> tuple[dict[int, int], dict[int, tuple[int, tuple[int, ...]]]]:
    """The nodes of the pods, and node and devices of the claims, as they would be reserved."""
    places: dict[int, int] = {}
    devices: dict[int, tuple[int, tuple[int, ...]]] = {}
    for index, member in enumerate(decision.members):
        if not isinstance(member.decision, Suggested):
            continue
        places[index] = int(member.decision.node_name[1:])
        status = member.cycle.framework.run_reserve(member.cycle.state, member.cycle.pod, member.decision.node_name)
        assert status is None, status
        for claim, allocation in reservations(member.cycle.state).items():
            results = allocation.devices.results
            indexes = tuple(sorted(int(result.device[1:]) for result in results))
            devices.setdefault(claim, (int(results[0].pool[1:]), indexes))
    return places, devices


def reservations(state: Any) -> dict[int, Any]:
    """The allocations that Reserve has decided on, by the number of the claim."""
    pod_devices = state.read(PodDevices)
    return {
        int(pod_devices.claims[index].metadata.name[1:]): allocation
        for index, allocation in pod_devices.reserved.items()
    }


def nodes_of(decision: GroupDecision) -> list[str]:
    """The node of each pod; "" if it has none."""
    return [member.decision.node_name if isinstance(member.decision, Suggested) else "" for member in decision.members]


def check(seed: int, steps: int = 100_000) -> str:
    """One case: "" if podium is right, else what is wrong."""
    case = random_case(Random(seed))
    plain, _ = decide(case, 0)
    decision, _ = decide(case, steps)
    if plain.status is None:
        return "" if nodes_of(plain) == nodes_of(decision) else f"seed {seed}: another answer than upstream's"
    is_possible = exists(case)
    if decision.status is not None:
        return f"seed {seed}: missed" if is_possible else ""
    if not is_possible:
        return f"seed {seed}: wrong, there is none"
    return "" if is_valid(case, *placement_of(case, decision)) else f"seed {seed}: wrong"


def is_beyond_upstream(seed: int) -> bool:
    """Return True if only the search finds a placement."""
    case = random_case(Random(seed))
    return decide(case, 0)[0].status is not None and exists(case)

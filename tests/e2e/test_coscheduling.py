"""Gangs of the plugin Coscheduling on the sandbox, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.waiting import eventually
from tests.manifests import nodes, pod

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
LABEL, MIN_MEMBER = "scheduling.x-k8s.io/pod-group", "scheduling.x-k8s.io/min-member"
EXAMPLE = Path(__file__).parents[2] / "examples/config/coscheduling.yaml"


def config(**args: int) -> Json:
    profile = yaml.safe_load(EXAMPLE.read_text())["profiles"][0]
    profile["pluginConfig"] = [{"name": "Coscheduling", "args": args}]
    return configuration(profiles=[profile])


def pod_group(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def gang(name: str, count: int, cpu: str = "1", **annotations: str) -> list[Json]:
    gang_pods = [pod(f"{name}-{at}", cpu=cpu) for at in range(count)]
    for item in gang_pods:
        item["metadata"]["labels"] = {LABEL: name}
        item["metadata"]["annotations"] = annotations
    return gang_pods


def names(pods: list[Json]) -> set[str]:
    return {item["metadata"]["name"] for item in pods}


async def phase(cluster: SandboxCluster, name: str, phase_wanted: str) -> Json:
    async def read_status() -> Json:
        status: Json = (await cluster.admin.get(f"{GROUPS}/{name}")).get("status", {})
        return status if status.get("phase") == phase_wanted else {}

    return await eventually(read_status)


async def test_two_gangs_of_which_one_fits_do_not_block_each_other(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    cluster = sandbox_cluster
    await cluster.create(*nodes(2, cpu="4"))
    for name in ("ours", "theirs"):
        await cluster.admin.create(GROUPS, pod_group(name, minMember=6, scheduleTimeoutSeconds=20))
    ours, theirs = gang("ours", 6), gang("theirs", 6)
    # In turn, so that each holds half of what it needs, unless the queue keeps them apart.
    mixed = [item for pair in zip(ours, theirs, strict=True) for item in pair]
    await start(cluster, config())
    await cluster.create(*mixed)

    async def one_is_bound() -> set[str]:
        bound_names = set(await cluster.placements())
        return bound_names if bound_names in (names(ours), names(theirs)) else set()

    first = await eventually(one_is_bound)
    winner = ours if first == names(ours) else theirs
    name = "ours" if winner is ours else "theirs"
    assert (await phase(cluster, name, "Scheduling"))["scheduleStartTime"]
    for item in winner:
        await cluster.admin.delete(f"/api/v1/namespaces/default/pods/{item['metadata']['name']}")
    await cluster.wait_bound(names(theirs if winner is ours else ours))


async def test_without_a_pod_group_the_annotation_counts(sandbox_cluster: SandboxCluster, start: StartDaemon) -> None:
    cluster = sandbox_cluster
    await cluster.create(*nodes(2, cpu="4"))
    *first, last = gang("train", 3, **{MIN_MEMBER: "3"})
    await start(cluster, config())
    await cluster.create(*first, pod("alone"))
    await cluster.wait_bound(["alone"])
    assert (await cluster.placements()).keys() == {"alone"}
    await cluster.create(last)
    await cluster.wait_bound(names([*first, last]))


async def test_the_example_lands(sandbox_cluster: SandboxCluster, start: StartDaemon) -> None:
    cluster = sandbox_cluster
    await cluster.create(*nodes(2, cpu="4"))
    group, job = yaml.safe_load_all((EXAMPLE.parents[1] / "gangs/coscheduling.yaml").read_text())
    pods = gang("train", 3)
    for item in pods:
        item |= {"spec": job["spec"]["template"]["spec"]}
        item["metadata"] |= job["spec"]["template"]["metadata"]
    await start(cluster, configuration(profiles=yaml.safe_load(EXAMPLE.read_text())["profiles"]))
    await cluster.admin.create(GROUPS, group)
    await cluster.create(*pods)
    await cluster.wait_bound(names(pods))
    assert (await phase(cluster, "train", "Scheduling"))["running"] == 0

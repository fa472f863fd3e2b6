"""Quotas, NUMA nodes and measured loads at once, for the workloads `policies` and `policies-on-a-server`.

Every node has two NUMA nodes and a load, every pod falls under a quota, and all of them fit: what is measured are the
plugins, not a lack of resources.

Source: sigs.k8s.io/scheduler-plugins (2026-08), for the objects and the configuration, which both schedulers share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks import load_watcher, nodes, pods
from benchmarks.nodes import Json
from podium.plugins.contrib.node_load import NodeLoadArgs
from tests.control_plane.client import ApiError, Client
from tests.control_plane.servers import ControlPlane

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_POLICIES: Final = Path(__file__).parent.parent / "deploy" / "policies"
_SERVED_S_MAX: Final = 30.0
_NUMA_NODES: Final = 2
_GIB_PER_NUMA_NODE: Final = 64
_PLENTY: Final = {"cpu": "10000000", "memory": "1Ei", "ephemeral-storage": "1Ei"}
# Otherwise scheduler-plugins asks the API server about each node in each attempt.
_NUMA_ARGS: Final = {"cacheResyncPeriodSeconds": 5}


def profile(load_plugin: str, watcher_address: str, numa_args: Mapping[str, Any]) -> Json:
    """The fields of a profile with quotas, NUMA nodes, and this plugin for loads, that a watcher reports."""
    names = ("CapacityScheduling", "NodeResourceTopologyMatch", load_plugin)
    args = {"NodeResourceTopologyMatch": numa_args, load_plugin: {"watcherAddress": watcher_address}}
    return {
        "plugins": {
            "multiPoint": {"enabled": [{"name": name} for name in names]},
            # As its documentation asks for: only one plugin may preempt.
            "postFilter": {"enabled": [{"name": names[0]}], "disabled": [{"name": "*"}]},
        },
        "pluginConfig": [{"name": name, "args": value} for name, value in args.items()],
    }


_NO_WATCHER: Final = "http://watcher.invalid"
ENGINE_PROFILE: Final = profile("NodeLoad", _NO_WATCHER, {})


def quotas_and_topologies(node_count: int, pod_count: int) -> Iterator[Json]:
    """A quota for the namespace, and the NUMA nodes of every node."""
    del pod_count
    yield {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "quota", "namespace": pods.NAMESPACE},
        "spec": {"min": _PLENTY, "max": _PLENTY},
    }
    for number in range(node_count):
        yield {
            "apiVersion": "topology.node.k8s.io/v1alpha2",
            "kind": "NodeResourceTopology",
            "metadata": {"name": nodes.name(number)},
            "topologyPolicies": ["SingleNUMANodeContainerLevel"],
            "zones": [_zone(numa_id) for numa_id in range(_NUMA_NODES)],
        }


def _zone(numa_id: int) -> Json:
    amounts = (("cpu", f"{nodes.CPUS // _NUMA_NODES}"), ("memory", f"{_GIB_PER_NUMA_NODE}Gi"))
    return {
        "name": f"node-{numa_id}",
        "type": "Node",
        "costs": [
            {"name": f"node-{target_id}", "value": 10 if target_id == numa_id else 20}
            for target_id in range(_NUMA_NODES)
        ],
        "resources": [
            {"name": name, "capacity": amount, "allocatable": amount, "available": amount} for name, amount in amounts
        ],
    }


def with_loads(node_count: int, pod_count: int) -> Iterator[Json]:
    """The same for the engine alone, which has no load watcher to ask: its report is there already."""
    yield from quotas_and_topologies(node_count, pod_count)
    # The engine's clock stands at 0, so that every pod that was placed since is newer than the report.
    name = NodeLoadArgs(watcher_address=_NO_WATCHER).source().name
    yield {"kind": "NodeMetricsReport", "metadata": {"name": name}, **load_watcher.report(node_count, 0)}


@contextmanager
def beside(plane: ControlPlane, node_count: int) -> Iterator[Mapping[str, Any]]:
    """Serve the definitions and a load watcher; gives the profile."""
    asyncio.run(_define(plane))
    with load_watcher.serving(plane, node_count) as address:
        yield {
            "profiles": [{"schedulerName": pods.SCHEDULER_NAME, **profile("TargetLoadPacking", address, _NUMA_ARGS)}]
        }


async def _define(plane: ControlPlane) -> None:
    async with Client(plane.url, token=plane.admin_token, tls=plane.ssl_context()) as client:
        for definition in _definitions("capacity-scheduling", "node-resource-topology-match"):
            name, group = definition["metadata"]["name"], definition["spec"]["group"]
            if name in [existing["metadata"]["name"] for existing in await client.list(_DEFINITIONS)]:
                continue
            await client.create(_DEFINITIONS, definition)
            version = next(version["name"] for version in definition["spec"]["versions"] if version["served"])
            path = f"/apis/{group}/{version}/{definition['spec']['names']['plural']}"
            async with asyncio.timeout(_SERVED_S_MAX):
                # The API server tells nobody when it begins to serve a kind.
                while not await _is_served(client, path):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)


def _definitions(*folders: str) -> Sequence[Json]:
    texts = ((_POLICIES / folder / "definitions.yaml").read_text() for folder in folders)
    return [document for text in texts for document in yaml.safe_load_all(text) if document]


async def _is_served(client: Client, path: str) -> bool:
    try:
        await client.list(path)
    except ApiError:
        return False
    return True

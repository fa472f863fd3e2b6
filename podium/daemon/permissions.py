"""The permissions that podium needs: every verb on every resource, and which component needs it.

Owns the table behind the role in deploy/ and behind `podium doctor`. The objects that a plugin reads follow from the
listers that it asks for; the objects that it writes are listed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from podium.binder import ApiClient, EventRecorder, RunningPreemptions, WaitingPods
from podium.client.dispatcher import Dispatcher
from podium.client.informer_set import InformerSet
from podium.client.permissions import RECORDING_EVENTS, Needs, Permission, leading, sharing, watching
from podium.client.session import ApiSession
from podium.cluster import Cache
from podium.config import KubeSchedulerConfiguration, LeaderElection, PodGroupRules, Release
from podium.daemon.handle import PluginHandle
from podium.daemon.handlers import BrokenObjects
from podium.framework.contract.plugin import Plugin
from podium.framework.profile.runtime import construct, names_to_construct
from podium.lib.clock import Clock
from podium.objects.node_metrics import KUBERNETES_METRICS_SERVER, MetricsSource
from podium.objects.resource_types import COSCHEDULING_POD_GROUPS, NODES, POD_GROUPS, PODS, ResourceType
from podium.plugins.contrib.capacity_scheduling.objects import ELASTIC_QUOTAS
from podium.queues import Nominator, QueuedPodGroups
from podium.telemetry import Metrics

_DEVICES = "resource.k8s.io"


_ITSELF = "podium itself"
_ALWAYS = (
    Permission("", "pods", "get"),
    Permission("", "pods/status", "patch"),
    *RECORDING_EVENTS,
)
_OF_METRICS_SERVER = Permission("metrics.k8s.io", "nodes", "list")
_WRITES_DEVICES = (Permission("", "pods", "patch"),)
_OF_POD_GROUPS = Permission(POD_GROUPS.group, f"{POD_GROUPS.plural}/status", "patch")
_DOORS = (
    Permission("authentication.k8s.io", "tokenreviews", "create"),
    Permission("authorization.k8s.io", "subjectaccessreviews", "create"),
    Permission("", "configmaps", "get", "kube-system", "extension-apiserver-authentication"),
)
_EVICTING = (Permission("", "pods", "delete"),)
_WRITES: Mapping[str, tuple[Permission, ...]] = {
    "CapacityScheduling": (
        Permission(ELASTIC_QUOTAS.group, f"{ELASTIC_QUOTAS.plural}/status", "patch"),
        Permission("", "pods", "delete"),
    ),
    "Coscheduling": (Permission(COSCHEDULING_POD_GROUPS.group, f"{COSCHEDULING_POD_GROUPS.plural}/status", "patch"),),
    "FragmentationGradientDescent": _WRITES_DEVICES,
    "GpuPacking": _WRITES_DEVICES,
    "DefaultBinder": (Permission("", "pods/binding", "create"),),
    "DefaultPreemption": _EVICTING,
    "PreemptionToleration": _EVICTING,
    "VolumeBinding": tuple(
        Permission("", resource, verb)
        for resource in ("persistentvolumes", "persistentvolumeclaims")
        for verb in ("get", "patch")
    ),
    "DynamicResources": (
        *(Permission(_DEVICES, "resourceclaims", verb) for verb in ("create", "delete", "get", "patch")),
        # Newer API servers ask for the right to change allocations and reservations besides.
        *(
            Permission(_DEVICES, f"resourceclaims/{part}", verb)
            for part in ("status", "binding")
            for verb in ("patch", "update")
        ),
    ),
}


def needs(
    config: KubeSchedulerConfiguration,
    plugins: Mapping[str, type[Plugin]],
    session: ApiSession,
    clock: Clock,
    *,
    serves: bool = True,
    pod_groups: PodGroupRules | None = None,
    is_shard: bool = False,
) -> Needs:
    """Return the permissions and resources that podium needs with this configuration.

    Args:
        session: what the plugins are constructed with; no request is made through it.
        serves: whether the endpoints are served, and thus their users authenticated and authorized.
        pod_groups: how pods are scheduled in groups; None if they are not.
        is_shard: whether it is a member of a group of shards, which reads the Leases of the others.

    Raises: PluginError if a plugin cannot be constructed.
    """
    resources: dict[ResourceType[Any], list[str]] = {PODS: [_ITSELF], NODES: [_ITSELF]}
    permissions: dict[Permission, list[str]] = {permission: [_ITSELF] for permission in _ALWAYS}
    if pod_groups is not None:
        resources[POD_GROUPS] = [_ITSELF]
        permissions[_OF_POD_GROUPS] = [_ITSELF]
    metrics: dict[MetricsSource, list[str]] = {}
    for name, handle in _handles(config, plugins, session, clock, pod_groups):
        for resource in handle.informers.resources:
            if not resource.is_local:
                _add(resources.setdefault(resource, []), name)
        for source in handle.metrics_sources.values():
            _add(metrics.setdefault(source, []), name)
        for permission in (*_WRITES.get(name, ()), *_reads_metrics(handle)):
            _add(permissions.setdefault(permission, []), name)
    for resource, users in resources.items():
        for permission in watching(resource):
            permissions[permission] = users
    permissions.update(_of_leases(config.leader_election, is_shard=is_shard))
    for permission in _DOORS if serves else ():
        permissions[permission] = ["access to the endpoints"]
    return Needs(
        {permission: tuple(users) for permission, users in sorted(permissions.items())},
        {config.release.served(resource): tuple(users) for resource, users in resources.items()},
        metrics={source: tuple(users) for source, users in metrics.items()},
    )


def _of_leases(election: LeaderElection, *, is_shard: bool) -> Iterator[tuple[Permission, list[str]]]:
    namespace = election.resource_namespace
    if election.leader_elect:
        for permission in leading(namespace, election.resource_name):
            yield permission, ["leader election"]
    if is_shard:
        yield sharing(namespace), ["shards"]


def _reads_metrics(handle: PluginHandle) -> tuple[Permission, ...]:
    is_asked = any(source.type == KUBERNETES_METRICS_SERVER for source in handle.metrics_sources.values())
    return (_OF_METRICS_SERVER,) if is_asked else ()


def _add(users: list[str], name: str) -> None:
    if name not in users:
        users.append(name)


def _handles(
    config: KubeSchedulerConfiguration,
    plugins: Mapping[str, type[Plugin]],
    session: ApiSession,
    clock: Clock,
    pod_groups: PodGroupRules | None,
) -> Iterator[tuple[str, PluginHandle]]:
    """Yield each enabled plugin, and the handle with all that it asks for when it is constructed."""
    for profile in config.profiles:
        for name in names_to_construct(profile, plugins):
            informers = InformerSet(session, clock=clock, random=Random(0))
            handle = _handle(session, informers, clock, pod_groups, config.release)
            construct(plugins[name], profile, handle)
            yield name, handle


def _handle(
    session: ApiSession, informers: InformerSet, clock: Clock, pod_groups: PodGroupRules | None, release: Release
) -> PluginHandle:
    dispatcher, metrics = Dispatcher(session, clock), Metrics()
    return PluginHandle(
        clock=clock,
        random=Random(0),
        client=ApiClient(dispatcher, clock),
        preemptions=RunningPreemptions(lambda _: None),
        waiting_pods=WaitingPods(clock),
        nominator=Nominator(lambda _: None),
        recorder=EventRecorder(dispatcher, clock, hostname=""),
        cache=Cache(BrokenObjects(metrics)),
        informers=informers,
        pod_groups=None if pod_groups is None else QueuedPodGroups(pod_groups),
        release=release,
    )

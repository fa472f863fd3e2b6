"""Where the objects of an estimate come from: files, an API server, or recorded cases. Read here, judged elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from urllib.parse import quote

import click
import msgspec

from podium.cli import event_loop, files
from podium.cluster import CacheError
from podium.config import default_configuration
from podium.estimator.accurate import Engine, without_preemption
from podium.estimator.errors import EstimateError
from podium.estimator.member import READ, READ_TO_TRY, Gates, MemberCluster
from podium.estimator.scheduler_view import SchedulerView
from podium.kube.api_errors import ApiError, NotFound, Unreachable
from podium.kube.credentials import ConnectionConfigError, load
from podium.kube.errors import FieldError
from podium.kube.objects import Node, Pod
from podium.kube.resource_types import PODS, ResourceType
from podium.kube.session import ApiSession
from podium.lib.clock import SystemClock
from podium.plugins import IN_TREE
from podium.whatif import Manifest, ManifestError, StillCluster, World, read_manifest
from podium.whatif.admission import Admission
from podium.whatif.files import read_objects
from podium.whatif.manifests import resource_of

_PAGE = 500
_KINDS: Mapping[tuple[str, str], ResourceType[Any]] = {(each.group, each.kind): each for each in (*READ, *READ_TO_TRY)}


@dataclass(frozen=True, slots=True)
class Workload:
    """A pod such as the workload makes, and the name of its priority class."""

    pod: Pod
    priority_class_name: str


def member_of(manifests: Sequence[Any], gates: Gates, name: str = "", *, is_accurate: bool = False) -> MemberCluster:
    """The member cluster of these objects.

    Args:
        is_accurate: whether replicas can be tried out on it.

    Raises:
        ManifestError: one cannot be read.
    """
    found = []
    for manifest in manifests:
        resource = _kind_of(manifest)
        if resource is not None:
            found.append(read_manifest(manifest, resource))
    view = None
    if is_accurate:
        view = SchedulerView(World.of(manifests).lister, _refuse_broken, SystemClock(), Random())
    member = MemberCluster(name, _refuse_broken, gates, view)
    for item in sorted(found, key=lambda item: (item.metadata.namespace, item.metadata.name)):
        member.put(item)
    return member


def manifests_in(names: Sequence[str]) -> list[Manifest]:
    """The objects in files, their gaps filled as an API server does.

    Raises:
        ManifestError: a file cannot be read.
    """
    found = [each.manifest for name in names for each in read_objects(files.content(name), name)]
    admission = Admission(found)
    return [admission.admit(each, resource) if (resource := resource_of(each)) else each for each in found]


def manifests_of_cluster(
    kubeconfig: str | None, context: str | None, resources: Sequence[ResourceType[Any]]
) -> list[Manifest]:
    """The objects of a running cluster, as it has them now.

    Raises:
        click.ClickException: the cluster cannot be reached, or refuses.
    """

    async def fetch() -> list[Manifest]:
        credentials = await load(kubeconfig=kubeconfig, context=context, clock=SystemClock())
        async with ApiSession(credentials) as session:
            try:
                return [item for resource in resources for item in await _listed(session, resource)]
            except Unreachable:
                raise
            except ApiError as error:
                raise click.ClickException(f"{credentials.base_url}: {error}") from error

    try:
        return event_loop.run(fetch)
    except (ConnectionConfigError, Unreachable) as error:
        raise click.ClickException(str(error)) from error


def still_cluster(manifests: Iterable[Manifest], replica: Pod) -> tuple[Engine, list[Pod]]:
    """The cluster of these objects as the scheduler sees it, and the pods that wait in it.

    Whatever scheduler the replica and the waiting pods name, podium's defaults decide on them.

    Raises:
        WhatIfError: an object cannot be read.
    """
    config = default_configuration()
    profile = replace(without_preemption(config.profiles[0]), scheduler_name=replica.spec.scheduler_name)
    world = World.of(manifests)
    try:
        cluster = StillCluster(replace(config, profiles=(profile,)), world, IN_TREE)
    except CacheError as error:
        raise ManifestError(str(error)) from error
    framework = cluster.framework_for(replica)
    engine = Engine(cluster.cache, cluster.nominated, framework, cluster.percentage_of_nodes_to_score)
    return engine, [pod for pod in world.objects(PODS).values() if not pod.node_name and not pod.is_terminating]


def workload_in(name: str) -> Workload:
    """The workload in a file: a pod, or something with a pod template.

    Raises:
        ManifestError: there is no such thing in it, or more than one.
    """
    found = [each for each in read_objects(files.content(name), name) if _template(each.manifest) is not None]
    if len(found) != 1:
        raise ManifestError(f"{name}: expected one pod or workload with a pod template, found {len(found)}")
    manifest = found[0].manifest
    template = _template(manifest)
    assert template is not None
    labels = (template.get("metadata") or {}).get("labels") or {}
    metadata = {**manifest.get("metadata", {}), "labels": labels, "ownerReferences": []}
    spec = {**(template.get("spec") or {})}
    spec.pop("nodeName", None)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return Workload(read_manifest(Admission([]).admit(pod, PODS), PODS), str(spec.get("priorityClassName") or ""))


def _kind_of(manifest: Any) -> ResourceType[Any] | None:
    if not isinstance(manifest, dict):
        return None
    return _KINDS.get((str(manifest.get("apiVersion", "")).rpartition("/")[0], str(manifest.get("kind", ""))))


def _template(manifest: Manifest) -> Mapping[str, Any] | None:
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return None
    if manifest.get("kind") == "Pod":
        return manifest
    template = spec.get("template") or ((spec.get("jobTemplate") or {}).get("spec") or {}).get("template")
    return template if isinstance(template, dict) else None


async def _listed(session: ApiSession, resource: ResourceType[Any]) -> list[Manifest]:
    version = resource.path.strip("/").removeprefix("apis/").removeprefix("api/").rpartition("/")[0]
    items: list[Manifest] = []
    token = ""
    while True:
        query = f"?limit={_PAGE}" + (f"&continue={quote(token)}" if token else "")
        try:
            page = msgspec.json.decode(await session.request("GET", resource.path + query))
        except NotFound:  # an older cluster does not serve every kind
            return items
        items += ({**item, "apiVersion": version, "kind": resource.kind} for item in page.get("items") or ())
        token = page.get("metadata", {}).get("continue") or ""
        if not token:
            return items


def _refuse_broken(item: Node | Pod, error: FieldError) -> None:
    raise EstimateError(f"{type(item).__name__} {item.key}: {error}") from error

"""Lists the objects of a running cluster. This is the package's only I/O, so it is imported only when needed.

Owns in which version a kind is asked for where a cluster does not serve the current one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import anyio
import msgspec

from podium.client.advice import explanation_of
from podium.client.credentials import ConnectionConfigError, load
from podium.client.listing import all_objects
from podium.client.server_version import release_of
from podium.client.session import ApiSession
from podium.config import NEWEST, Release
from podium.engine.derivation.control_objects import CONTROL_RESOURCES, empty_list
from podium.engine.errors import ClusterError
from podium.engine.files import LocatedManifest
from podium.engine.manifests import Manifest
from podium.engine.versions import current_form
from podium.lib.system_clock import SystemClock
from podium.objects.api_errors import ApiError, Forbidden, Malformed, NotFound
from podium.objects.custom_resources import custom_resources
from podium.objects.resource_types import COSCHEDULING_POD_GROUPS, POD_GROUPS, WITHOUT_GATES, ResourceType
from podium.objects.wire import NOT_DECODED

_GROUPS: Final = (POD_GROUPS, COSCHEDULING_POD_GROUPS)
"""Listed in addition where the cluster serves them, as are custom resources: they say how many members a gang needs."""

_FORMER_VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "karpenter.sh": ("v1beta1",),
    "resource.k8s.io": ("v1beta2", "v1beta1"),
}
"""By group, the versions that are converted when they are read, the newest first."""


class _GroupVersion(msgspec.Struct):
    version: str


class _Group(msgspec.Struct):
    versions: list[_GroupVersion]


async def list_objects(
    kubeconfig: str | None,
    context: str | None,
    resources: Sequence[ResourceType[Any]] = WITHOUT_GATES,
    extra_resources: Sequence[ResourceType[Any]] = (),
) -> tuple[list[LocatedManifest], Release]:
    """List the objects of these kinds, and as far as permitted those of the kinds from which pods are derived.

    Returns: the objects, and the release that decides as the cluster's kube-scheduler.

    Args:
        kubeconfig: the path; kubectl's default unless given.
        context: the kubeconfig's current one unless given.
        extra_resources: more kinds, as far as the cluster serves them and they may be listed.

    Raises:
        ConnectionConfigError: there is no kubeconfig, or it cannot be used.
        ClusterError: the cluster cannot be reached, or denies the request. The message has advice.
    """
    credentials = await load(kubeconfig=kubeconfig, context=context, clock=SystemClock())
    # Only asked to list: a session that refuses writes cannot be made to write by any mistake.
    async with ApiSession(credentials, may_write=lambda: False) as session:
        try:
            objects: list[LocatedManifest] = []
            release = NEWEST
            # Not all proxies let the version through, and whoever cannot be reached fails below.
            with suppress(ApiError):
                release, _ = await release_of(session)
            for resource in dict.fromkeys(
                (*resources, *CONTROL_RESOURCES, *_GROUPS, *custom_resources(), *extra_resources)
            ):
                items: Sequence[Manifest]
                try:
                    items = await _objects_of(session, release.served(resource))
                except Forbidden:
                    # Most of these only make answers about workloads better; without the right to read them the rest
                    # still answers.
                    if resource in resources:
                        raise
                    continue
                if not items and resource in CONTROL_RESOURCES:
                    # An empty list says that there are none; nothing would say that they are unknown.
                    items = [empty_list(resource)]
                objects += [LocatedManifest(item, f"{credentials.base_url}{resource.path}") for item in items]
            return objects, release
        except ApiError as error:
            raise ClusterError(explanation_of(error, credentials.base_url)) from error
        except ClusterError as error:
            raise ClusterError(f"{credentials.base_url}: {error}") from error


async def _objects_of(session: ApiSession, resource: ResourceType[Any]) -> Sequence[Manifest]:
    """Return the objects of a kind, in the newest version that the cluster serves and that is read.

    Raises:
        ClusterError: it has objects in a version that is not read.
        ApiError: it cannot be asked.
    """
    former_versions = _FORMER_VERSIONS.get(resource.group)
    if former_versions is None:
        return await all_objects(session, resource)
    current_version = resource.api_version.rpartition("/")[2]
    for version in (current_version, *former_versions):
        in_version = _in_version(resource, version)
        try:
            items = await all_objects(session, in_version, may_be_absent=False)
        except NotFound:
            continue
        return [current_form(item, in_version.path) for item in items]
    # Objects that nobody can read must not look as if there were none.
    for version in await _versions_served(session, resource.group):
        in_version = _in_version(resource, version)
        if await all_objects(session, in_version):
            versions_read = " and ".join(f"{resource.group}/{name}" for name in (current_version, *former_versions))
            raise ClusterError(f"{resource.kind} of {in_version.api_version} is not read, only of {versions_read}")
    return []


def _in_version(resource: ResourceType[Any], version: str) -> ResourceType[Any]:
    return replace(resource, path=f"/apis/{resource.group}/{version}/{resource.plural}")


async def _versions_served(session: ApiSession, group: str) -> list[str]:
    """Return the versions of a group that the cluster serves; none if it does not know the group."""
    try:
        answer = await session.request("GET", f"/apis/{group}")
    except NotFound:
        return []
    try:
        return [item.version for item in msgspec.json.decode(answer, type=_Group).versions]
    except NOT_DECODED as error:
        raise Malformed(f"not an APIGroup: {error}: {answer[:100]!r}") from error


def list_objects_blocking(
    kubeconfig: str | None, context: str | None, extra_resources: Sequence[ResourceType[Any]] = ()
) -> tuple[list[dict[str, Any]], Release]:
    """Call `list_objects` for synchronous callers, which may run in an event loop, as a notebook's cells do.

    Returns: the objects, and the release that decides as the cluster's kube-scheduler.

    Raises:
        ClusterError: as `list_objects`, or the kubeconfig cannot be used.
    """
    # An event loop that runs already, as in a notebook, cannot run another one in its thread.
    with ThreadPoolExecutor(1) as thread:
        try:
            objects, release = thread.submit(
                lambda: anyio.run(list_objects, kubeconfig, context, WITHOUT_GATES, extra_resources)
            ).result()
        except ConnectionConfigError as error:
            raise ClusterError(str(error)) from error
    return [dict(item.manifest) for item in objects], release

"""Lists the objects of a running cluster. This is the package's only I/O, so it is imported only when needed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import anyio

from podium.client.advice import diagnosis_of
from podium.client.credentials import ConnectionConfigError, load
from podium.client.listing import all_objects
from podium.client.session import ApiSession
from podium.engine.derivation.control_objects import CONTROL_RESOURCES, empty_list
from podium.engine.errors import ClusterError
from podium.engine.files import LocatedManifest
from podium.engine.manifests import Manifest
from podium.lib.system_clock import SystemClock
from podium.objects.api_errors import ApiError, Forbidden, Unauthorized, Unreachable
from podium.objects.custom_resources import custom_resources
from podium.objects.resource_types import COSCHEDULING_POD_GROUPS, POD_GROUPS, WITHOUT_GATES, ResourceType

_GROUPS: Final = (POD_GROUPS, COSCHEDULING_POD_GROUPS)
"""Listed in addition where the cluster serves them, as are custom resources: they say how many members a gang needs."""


async def list_objects(
    kubeconfig: str | None,
    context: str | None,
    resources: Sequence[ResourceType[Any]] = WITHOUT_GATES,
    extra_resources: Sequence[ResourceType[Any]] = (),
) -> list[LocatedManifest]:
    """List the objects of these kinds, and as far as permitted those of the kinds from which pods are derived.

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
            objects = []
            for resource in dict.fromkeys(
                (*resources, *CONTROL_RESOURCES, *_GROUPS, *custom_resources(), *extra_resources)
            ):
                items: Sequence[Manifest]
                try:
                    items = await all_objects(session, resource)
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
            return objects
        except (Unreachable, Unauthorized, Forbidden) as error:
            cause, advice = diagnosis_of(error)
            raise ClusterError(f"{credentials.base_url}: {cause}: {advice} ({error})") from error
        except ApiError as error:
            raise ClusterError(f"{credentials.base_url}: {error}") from error


def list_objects_blocking(
    kubeconfig: str | None, context: str | None, extra_resources: Sequence[ResourceType[Any]] = ()
) -> list[dict[str, Any]]:
    """Call `list_objects` for synchronous callers, which may run in an event loop, as a notebook's cells do.

    Raises:
        ClusterError: as `list_objects`, or the kubeconfig cannot be used.
    """
    # An event loop that runs already, as in a notebook, cannot run another one in its thread.
    with ThreadPoolExecutor(1) as thread:
        try:
            objects = thread.submit(
                lambda: anyio.run(list_objects, kubeconfig, context, WITHOUT_GATES, extra_resources)
            ).result()
        except ConnectionConfigError as error:
            raise ClusterError(str(error)) from error
    return [dict(item.manifest) for item in objects]

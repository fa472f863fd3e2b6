"""Reads Karmada's API server: its Cluster objects, and the Services that lead to the members' estimator servers.

Never writes, and decides only which addresses a Service stands for, by `division.estimator_service`.

Source: karmada pkg/estimator/client/service.go, v1.18.
Differs: a Service that cannot be read leaves out one member, and the others are looked up at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import anyio
import msgspec

from podium.client.advice import explanation_of
from podium.client.credentials import load
from podium.client.listing import all_objects
from podium.client.session import ApiSession
from podium.engine.files import LocatedManifest
from podium.estimator.cluster_objects import CLUSTERS
from podium.estimator.division.estimator_service import EstimatorService, addresses_of, service_name
from podium.estimator.errors import EstimateError
from podium.lib.error_text import error_text
from podium.lib.system_clock import SystemClock
from podium.objects.api_errors import ApiError, NotFound

_DEADLINE_S: Final = 5.0
_REQUESTS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class KarmadaApi:
    """Karmada's API server: a kubeconfig and its context, by default kubectl's."""

    kubeconfig: str | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceNames:
    """The names of the Services, as the flags of Karmada's scheduler have them.

    Attributes:
        prefix: a Service's name is this, a dash and the cluster's name.
        port: of the Services.
    """

    prefix: str = "karmada-scheduler-estimator"
    namespace: str = "karmada-system"
    port: int = 10352


@dataclass(frozen=True, slots=True)
class ServerAddresses:
    """The members' estimator servers.

    Attributes:
        targets: by cluster, `host:port` in the order in which they are tried.
        errors: by cluster, why it has none.
    """

    targets: Mapping[str, Sequence[str]]
    errors: Mapping[str, str]


async def list_clusters(karmada: KarmadaApi) -> list[LocatedManifest]:
    """List Karmada's Cluster objects.

    Raises:
        ConnectionConfigError: the kubeconfig cannot be used.
        EstimateError: the API server cannot be reached, denies the request, or is not Karmada's.
    """
    async with _session(karmada) as session:
        items = await all_objects(session, CLUSTERS, may_be_absent=False)
        return [LocatedManifest(item, CLUSTERS.path) for item in items]


async def look_up_servers(karmada: KarmadaApi, clusters: Iterable[str], names: ServiceNames) -> ServerAddresses:
    """Look up the Service of each cluster's estimator server. A cluster without one has the names of a cluster's DNS.

    Raises:
        ConnectionConfigError: the kubeconfig cannot be used.
    """
    targets: dict[str, Sequence[str]] = {}
    errors: dict[str, str] = {}
    # A fleet of thousands must not open as many connections at once.
    limit = anyio.CapacityLimiter(_REQUESTS_MAX)

    async def look_up(session: ApiSession, cluster: str) -> None:
        try:
            async with limit:
                service = await _service(session, cluster, names)
            targets[cluster] = addresses_of(service, names.prefix, cluster, names.namespace, names.port)
        except (ApiError, EstimateError) as error:
            errors[cluster] = error_text(error)

    async with _session(karmada) as session, anyio.create_task_group() as group:
        for name in clusters:
            group.start_soon(look_up, session, name)
    return ServerAddresses(targets, errors)


async def _service(session: ApiSession, cluster: str, names: ServiceNames) -> EstimatorService | None:
    path = f"/api/v1/namespaces/{names.namespace}/services/{service_name(names.prefix, cluster)}"
    try:
        return msgspec.json.decode(await session.request("GET", path, deadline_s=_DEADLINE_S), type=EstimatorService)
    except NotFound:
        # Karmada goes by the name that the Service would have, which may belong to another cluster's DNS.
        return None
    except msgspec.MsgspecError as error:
        raise EstimateError(f"{path}: {error}") from error


@asynccontextmanager
async def _session(karmada: KarmadaApi) -> AsyncIterator[ApiSession]:
    credentials = await load(kubeconfig=karmada.kubeconfig, context=karmada.context, clock=SystemClock())
    try:
        async with ApiSession(credentials) as session:
            yield session
    except ApiError as error:
        raise EstimateError(explanation_of(error, credentials.base_url)) from error

"""Finds the leading podium, with nothing but a kubeconfig, and asks it about a pod. Never answers in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from podium.cli import event_loop
from podium.cli.running_podium import page_of
from podium.client.credentials import ConnectionConfigError, Credentials, load
from podium.client.port_forward import ForwardedPort, over_forwarded_port
from podium.client.requests import LIST_BYTES_MAX
from podium.client.session import ApiSession
from podium.lib.system_clock import SystemClock
from podium.objects.api_errors import ApiError, Forbidden, NotFound, Unauthorized

_DEFAULT_PORT: Final = 10259
_DEADLINE_S: Final = 10.0
_ROLE_HINT: Final = "docs/questions.md has the role that is needed"
_TAKEOVER_HINT: Final = " (with --as-default-scheduler it is kube-system/kube-scheduler)"


class NotAskedError(Exception):
    """The leader could not be asked, or did not answer. The message says why."""


class _LeaseSpec(msgspec.Struct, rename="camel", frozen=True):
    holder_identity: str = ""


class _Lease(msgspec.Struct, frozen=True):
    spec: _LeaseSpec = _LeaseSpec()


class _Port(msgspec.Struct, rename="camel", frozen=True):
    container_port: int
    name: str = ""


class _Container(msgspec.Struct, frozen=True):
    ports: tuple[_Port, ...] = ()


class _PodSpec(msgspec.Struct, frozen=True):
    containers: tuple[_Container, ...] = ()


class _Pod(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _Configz(msgspec.Struct, rename="camel", frozen=True):
    componentconfig: msgspec.Raw = msgspec.Raw(b"")
    decides_as: str | None = None


@dataclass(frozen=True, slots=True)
class LeaderAnswer:
    """The answer of the leader.

    Attributes:
        leader: the leader's own pod, with the namespace.
        story: the page about the pod in question; None if the leader knows no such pod.
        configuration: the leader's KubeSchedulerConfiguration; None if the user may not see it.
        decides_as: the minor of Kubernetes as which the leader decides; None if it is unknown.
    """

    leader: str
    story: bytes | None
    configuration: bytes | None
    decides_as: str | None = None


def ask_leader(
    kubeconfig: str | None, context: str | None, lease: str, pod: str, namespace: str, node: str
) -> LeaderAnswer:
    """Ask the podium that holds the Lease about a pod.

    Args:
        lease: the Lease's namespace and name.
        pod: the pod's name, or `namespace/name`.
        node: a node to include in the answer; "" for none.

    Raises:
        NotAskedError: there is no leader, or it cannot be asked.
    """

    async def ask() -> LeaderAnswer:
        credentials = await load(kubeconfig=kubeconfig, context=context, clock=SystemClock())
        async with ApiSession(credentials) as session:
            return await _ask_leader(session, credentials, lease, page_of(pod, namespace, node))

    try:
        return event_loop.run(ask)
    except ConnectionConfigError as error:
        raise NotAskedError(str(error)) from error


async def _ask_leader(session: ApiSession, credentials: Credentials, lease: str, page: str) -> LeaderAnswer:
    namespace, _, _ = lease.partition("/")
    identity = await _leader_identity(session, lease)
    name = identity.rpartition("_")[0] or identity
    port = await _https_port(session, namespace, name, lease)
    authorization = await credentials.authorization()

    async def get(link: ForwardedPort, path: str) -> bytes:
        return await link.get(path, authorization, deadline_s=_DEADLINE_S, answer_bytes_max=LIST_BYTES_MAX)

    async def read_pages(link: ForwardedPort) -> LeaderAnswer:
        story: bytes | None = None
        try:
            story = await get(link, page)
        except NotFound as error:
            # A 404 with a reason means that the leader knows no such pod; any other, that it has no such page.
            if not error.reason:
                raise
        try:
            configz = _read_configz(await get(link, "/configz"))
        except (Forbidden, NotFound):
            configz = _Configz()
        return LeaderAnswer(f"{namespace}/{name}", story, bytes(configz.componentconfig) or None, configz.decides_as)

    try:
        tls = credentials.unverified_tls()
        return await over_forwarded_port(session, (namespace, name), port, tls, read_pages, deadline_s=_DEADLINE_S)
    except Unauthorized as error:
        raise NotAskedError(f"{namespace}/{name} does not accept the kubeconfig's credentials ({error})") from error
    except Forbidden as error:
        resource = "pods/portforward" if error.reason == "" else "the page /debug/pods"
        raise NotAskedError(
            f"this user may not use {resource} of {namespace}/{name}: {_ROLE_HINT} ({error})"
        ) from error
    except (ApiError, OSError, ValueError) as error:
        raise NotAskedError(f"{namespace}/{name} cannot be asked ({error})") from error


async def _leader_identity(session: ApiSession, lease: str) -> str:
    """Read the identity of the leader from its Lease."""
    namespace, _, name = lease.partition("/")
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
    try:
        spec = msgspec.json.decode(await session.request("GET", path, deadline_s=_DEADLINE_S), type=_Lease).spec
    except NotFound as error:
        raise NotAskedError(f"there is no Lease {lease}; name podium's with --lease{_TAKEOVER_HINT}") from error
    except Forbidden as error:
        raise NotAskedError(f"this user may not read the Lease {lease}: {_ROLE_HINT}") from error
    except (ApiError, msgspec.DecodeError) as error:
        raise NotAskedError(f"the Lease {lease} cannot be read ({error})") from error
    if not spec.holder_identity:
        raise NotAskedError(f"the Lease {lease} has no holder")
    return spec.holder_identity


async def _https_port(session: ApiSession, namespace: str, name: str, lease: str) -> int:
    """Return the port named https of the leader's pod, or podium's default port if there is none."""
    try:
        body = await session.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}", deadline_s=_DEADLINE_S)
        pod = msgspec.json.decode(body, type=_Pod)
    except NotFound as error:
        cause = f"{name} holds the Lease {lease}, but is not a pod in {namespace}"
        raise NotAskedError(f"{cause}; if it runs outside the cluster, give its address with --url") from error
    except (ApiError, msgspec.DecodeError) as error:
        raise NotAskedError(f"the pod {namespace}/{name}, which leads, cannot be read ({error})") from error
    ports = (port for container in pod.spec.containers for port in container.ports)
    return next((port.container_port for port in ports if port.name == "https"), _DEFAULT_PORT)


def _read_configz(body: bytes) -> _Configz:
    """Return the page /configz; an empty one if it cannot be read."""
    try:
        return msgspec.json.decode(body, type=_Configz)
    except msgspec.MsgspecError:
        return _Configz()

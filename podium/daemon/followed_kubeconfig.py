"""The kubeconfig of a running scheduler, for reading it again when it changes.

New credentials are tried before they are used. A kubeconfig may name another address of the same cluster, but no other
cluster: what podium knows would be of the old one.

Differs: kube-scheduler has to be restarted, except for the files that a kubeconfig names.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from podium.client.credentials import ConnectionConfigError, Credentials
from podium.client.informer import Informer
from podium.client.session import ApiSession
from podium.daemon.configuration_source import digest
from podium.objects.api_errors import ApiError, Malformed
from podium.objects.core import Node
from podium.objects.meta import ObjectMeta
from podium.objects.resource_types import NODES

_TRIAL_S_MAX: Final = 10.0
_NODES_MAX: Final = 20
"""Some may be so new that no watch has shown them yet."""


class _Object(msgspec.Struct):
    metadata: ObjectMeta


class _NodeList(msgspec.Struct):
    kind: Literal["NodeList"]
    items: list[_Object]


_decode = msgspec.json.Decoder(_NodeList).decode


@dataclass(frozen=True, slots=True)
class FollowedKubeconfig:
    """A kubeconfig, and the credentials from it that all connections use.

    Attributes:
        paths: one file, or several separated as in $KUBECONFIG.
        load: reads it as at the start; raises ConnectionConfigError.
        moved: called when the credentials have changed.
    """

    paths: str
    credentials: Credentials
    load: Callable[[], Awaitable[Credentials]]
    moved: Callable[[], None]

    def content(self) -> bytes:
        """Return a digest of the kubeconfig's files, which changes with them."""
        return digest([Path(path).expanduser() for path in self.paths.split(os.pathsep) if path])

    async def take(self, nodes: Informer[Node]) -> None:
        """Read the kubeconfig again, try it with one request, and have all connections use it.

        Args:
            nodes: the nodes of the cluster, as far as they have been seen.

        Raises:
            ConnectionConfigError: it cannot be used, or names another cluster; then nothing has changed.
        """
        credentials = await self.load()
        try:
            async with ApiSession(credentials, connections_max=1) as session:
                answer = await session.request("GET", f"{NODES.path}?limit={_NODES_MAX}", deadline_s=_TRIAL_S_MAX)
            metas = _nodes_in(answer)
        except ApiError as error:
            raise ConnectionConfigError(f"kubeconfig {self.paths}: listing nodes with it fails: {error}") from error
        if credentials.base_url != self.credentials.base_url and not _is_known(metas, nodes):
            raise ConnectionConfigError(
                f"kubeconfig {self.paths}: clusters[].cluster.server: {credentials.base_url} is another cluster than "
                f"{self.credentials.base_url}, since none of its nodes is known; restart podium to change the cluster"
            )
        self.credentials.take(credentials)
        self.moved()


def _nodes_in(answer: bytes) -> list[ObjectMeta]:
    try:
        return [node.metadata for node in _decode(answer).items]
    except msgspec.MsgspecError as error:
        raise Malformed(f"the answer is not a list of nodes: {error}") from error


def _is_known(metas: list[ObjectMeta], nodes: Informer[Node]) -> bool:
    """Return True if the informer has one of the nodes, or has no nodes to compare with."""
    if not any(True for _ in nodes.list()):
        return True
    return any((node := nodes.get(meta.name)) is not None and node.metadata.uid == meta.uid for meta in metas)

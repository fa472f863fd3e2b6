"""The Leases of a group of shards: lists all of them, and announces in one's own what this process claims.

Owns the requests. `podium.shards` decides what they mean.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Sequence
from typing import Any

import orjson

from podium.client.dispatcher import Requester
from podium.lib.error_text import error_text
from podium.objects.api_errors import Malformed
from podium.server.election.elector import Elector
from podium.server.election.lease import LeaseLock
from podium.shards import Announcement, MemberLease
from podium.shards.announcement import GROUP_LABEL


async def list_member_leases(
    session: Requester, namespace: str, group: str, *, deadline_s: float
) -> Sequence[MemberLease]:
    """List the Leases of a group, as they are now: the API server answers a list without a version consistently.

    Raises: `ApiError`; `Malformed` if the answer is no list of Leases.
    """
    selector = urllib.parse.quote(f"{GROUP_LABEL}={group}", safe="")
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases?labelSelector={selector}"
    answer = await session.request("GET", path, deadline_s=deadline_s)
    try:
        content: Any = orjson.loads(answer)
        # A proxy may answer anything, and an empty list would mean that nobody else is alive.
        if content["kind"] != "LeaseList":
            raise Malformed(f"Leases of the shards {group}: answered with a {content['kind']!r:.80}")
        return [MemberLease.of(item) for item in content["items"] or ()]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Malformed(f"Leases of the shards {group}: {error_text(error)}") from error


class ShardLeases:
    """The Leases of one group, seen by the member that holds one of them.

    Args:
        lock, elector: of the member's own Lease.
    """

    def __init__(self, session: Requester, lock: LeaseLock, elector: Elector, group: str, deadline_s: float) -> None:
        self._session = session
        self._lock = lock
        self._elector = elector
        self._group = group
        self._deadline_s = deadline_s

    async def list(self) -> Sequence[MemberLease]:
        """List the Leases of the group.

        Raises: as `list_member_leases`; `Malformed` if the member's own Lease is not among them.
        """
        namespace, group = self._lock.namespace, self._group
        leases = await list_member_leases(self._session, namespace, group, deadline_s=self._deadline_s)
        if all(lease.name != self._lock.name for lease in leases):
            raise Malformed(f"Leases of the shards {group}: {self._lock} is not among them")
        return leases

    def prepare(self, announcement: Announcement) -> None:
        """Have the next write of the Lease say this."""
        self._lock.put_metadata({GROUP_LABEL: self._group}, announcement.annotations())

    async def announce(self, announcement: Announcement) -> bool:
        """Write this into the Lease, and return whether it is known to be there."""
        self.prepare(announcement)
        return await self._elector.renew_now()

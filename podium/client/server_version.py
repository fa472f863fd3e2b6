"""The version of an API server, as `/version` has it, and the release that decides as it does."""

from __future__ import annotations

import msgspec

from podium.client.dispatcher import Requester
from podium.config import Release, release_of_server
from podium.objects.api_errors import Malformed

_DEADLINE_S = 5.0


class ServerVersion(msgspec.Struct, rename="camel"):
    """The fields of `/version` that podium reads; managed clusters write minors such as `37+`."""

    major: str
    minor: str
    git_version: str

    def __post_init__(self) -> None:
        """Refuse numbers that are none. Raises: ValueError."""
        int(self.major), int(self.minor.rstrip("+"))


async def server_version(session: Requester) -> ServerVersion:
    """Ask an API server for its version. Raises: ApiError; `Malformed` for an answer without one."""
    answer = await session.request("GET", "/version", deadline_s=_DEADLINE_S)
    try:
        return msgspec.json.decode(answer, type=ServerVersion)
    except msgspec.MsgspecError as error:
        raise Malformed(f"/version: {error}") from error


async def release_of(session: Requester) -> tuple[Release, str]:
    """Return the release to decide as for an API server, and its own version. Raises: ApiError."""
    version = await server_version(session)
    return release_of_server(version.major, version.minor), version.git_version

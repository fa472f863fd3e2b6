"""The version of an API server, as `/version` has it."""

from __future__ import annotations

import msgspec

from podium.client.dispatcher import Requester
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

"""Notices that the API server is of another minor than the one podium decides as.

Rules do not change while podium runs: pods in the queue have been judged by the old ones. The log asks for a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import anyio

from podium.client.dispatcher import Requester
from podium.client.server_version import release_of
from podium.config import Release
from podium.lib.error_text import UserFacingError
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError

log = get_logger("daemon")

_LOOK_EVERY_S: Final = 30.0
_RETRY_S: Final = 1.0


class OtherReleaseError(UserFacingError):
    """The API server could not be asked at the start, and turned out to be of another minor."""


@dataclass(slots=True)
class ServerRelease:
    """Compares the API server's minor with the release that decides, until the process ends.

    Attributes:
        decides_as: the release that decides.
        is_assumed: no API server could be asked for it at the start.
    """

    session: Requester
    decides_as: Release
    is_assumed: bool = False
    _minor: str = field(init=False)

    def __post_init__(self) -> None:
        """Take the release for the server's, until it is asked."""
        self._minor = self.decides_as.minor

    async def run(self) -> None:
        """Look again and again. Raises: OtherReleaseError."""
        while True:
            try:
                await self._look()
            except ApiError as error:
                log.debug("The API server does not say its version", error=str(error))
                await anyio.sleep(_RETRY_S if self.is_assumed else _LOOK_EVERY_S)
            else:
                await anyio.sleep(_LOOK_EVERY_S)

    async def _look(self) -> None:
        release, server = await release_of(self.session)
        if self.is_assumed and release.minor != self.decides_as.minor:
            raise OtherReleaseError(f"the API server is {server}, but podium decides as {self.decides_as.minor}")
        self.is_assumed = False
        if release.minor == self._minor:
            return
        self._minor = release.minor
        if release.minor != self.decides_as.minor:
            log.warning(
                "The API server is of another minor now, restart podium to decide as it does",
                server=server,
                decides_as=self.decides_as.minor,
            )

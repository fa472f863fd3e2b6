"""Files whose content is applied when it changes; while it cannot be used, the previous content stays in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio.to_thread

from podium.lib.log import get_logger
from podium.server.serving.certificates import CertificateError

log = get_logger("serving")


class FollowedFiles:
    """Certificates and keys in files.

    Args:
        called: what the log and errors call the files.
        read: reads the files, changes nothing, and returns what applies their content. Both may raise
            CertificateError, OSError or ValueError.
    """

    def __init__(self, called: str, read: Callable[[], Callable[[], None]]) -> None:
        self.called = called
        self._read = read
        self._complaint = ""

    def take(self) -> None:
        """Read the files and apply their content. Raises: CertificateError."""
        try:
            self._read()()
        except (CertificateError, OSError, ValueError) as error:
            raise self._naming_files(error) from error

    def take_again(self) -> None:
        """Read the files and apply their content; log each problem once."""
        with self._reporting():
            self._read()()

    async def take_again_in_thread(self) -> None:
        """Take the files again as `take_again` does, but read them in a thread, since a disk may hang."""
        with self._reporting():
            apply = await anyio.to_thread.run_sync(self._read)
            apply()

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except (CertificateError, OSError, ValueError) as error:
            complaint = str(self._naming_files(error))
            if complaint != self._complaint:
                log.warning("Certificates cannot be reloaded, the previous ones stay in use", error=complaint)
            self._complaint = complaint
        else:
            self._complaint = ""

    def _naming_files(self, error: Exception) -> CertificateError:
        return CertificateError(f"{self.called}: {getattr(error, 'strerror', None) or error}")

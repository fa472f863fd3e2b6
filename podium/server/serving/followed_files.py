"""Reloads certificate and key files that change; while new content cannot be used, the previous one stays in use."""

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
        called: the name of the files in the log and in errors.
        read: reads the files, changes nothing, and returns the function that applies their content. Both may raise
            CertificateError, OSError or ValueError.
    """

    def __init__(self, called: str, read: Callable[[], Callable[[], None]]) -> None:
        self.called = called
        self._read = read
        self._logged_problem = ""

    def take(self) -> None:
        """Read the files and apply their content. Raises: CertificateError."""
        try:
            self._read()()
        except (CertificateError, OSError, ValueError) as error:
            raise self._certificate_error(error) from error

    def take_again(self) -> None:
        """Read the files and apply their content; log a problem once for as long as it lasts."""
        with self._logging_problems():
            self._read()()

    async def take_again_in_thread(self) -> None:
        """Do the same as `take_again`, but read the files in a thread, since a disk may hang."""
        with self._logging_problems():
            apply = await anyio.to_thread.run_sync(self._read)
            apply()

    @contextmanager
    def _logging_problems(self) -> Iterator[None]:
        try:
            yield
        except (CertificateError, OSError, ValueError) as error:
            problem = str(self._certificate_error(error))
            if problem != self._logged_problem:
                log.warning("Certificates cannot be reloaded, the previous ones stay in use", error=problem)
            self._logged_problem = problem
        else:
            self._logged_problem = ""

    def _certificate_error(self, error: Exception) -> CertificateError:
        return CertificateError(f"{self.called}: {getattr(error, 'strerror', None) or error}")

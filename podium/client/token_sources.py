"""The sources of bearer tokens, and how they are renewed.

Owns the three kinds: fixed, in a file that the kubelet rewrites, made by a loader (exec plugin, OIDC).
Never decides when to refresh: `client.credentials` does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Protocol

from podium.lib.bounded_read import read_file

_BYTES_MAX: Final = 1024**2
"""Limit of a token file. A token has a few kilobytes, and what fits into no header is refused elsewhere."""


class TokenSource(Protocol):
    """A token, or a client certificate instead of it, and a way to renew both."""

    @property
    def header(self) -> str | None:
        """The value of the Authorization header; None without a token."""
        ...

    @property
    def certificate(self) -> tuple[str, str] | None:
        """Files of a client certificate and its key, if the source makes one."""
        ...

    async def refresh(self, *, force: bool) -> None:
        """Renew what has expired or soon will; with `force`, everything."""
        ...


class FixedToken:
    """A token that never changes, or no token."""

    def __init__(self, header: str | None) -> None:
        self.header = _checked(header) if header else None
        self.certificate: tuple[str, str] | None = None

    async def refresh(self, *, force: bool) -> None:
        """Do nothing: a fixed token cannot be renewed."""


class TokenFile:
    """A token in a file, as kubelet keeps one for each service account."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.header: str | None = _read(path)
        self.certificate: tuple[str, str] | None = None

    async def refresh(self, *, force: bool) -> None:  # noqa: ARG002
        """Read the file again: a local read of about a kilobyte."""
        self.header = _read(self._path)


class LoadedToken:
    """A token, or client certificate, from kubernetes-asyncio's loader, which runs the plugin or asks the provider."""

    def __init__(self, loader: Any, failure: type[Exception]) -> None:
        """`failure` is the loader's own exception type."""
        self._loader = loader
        self._failure = failure
        self.header: str | None = None

    @property
    def certificate(self) -> tuple[str, str] | None:
        """The certificate last loaded."""
        if "exec" not in self._loader._user or getattr(self._loader, "cert_file", None) is None:
            return None
        return self._loader.cert_file, self._loader.key_file

    async def refresh(self, *, force: bool) -> None:
        """Load again if the token is known to expire soon, or if a new token is demanded.

        An exec plugin that states no expiry is not run again unless forced, as in client-go.
        """
        if "exec" in self._loader._user:
            if force:
                self._loader.__dict__.pop("exec_plugin_expiry", None)
            elif not hasattr(self._loader, "exec_plugin_expiry"):
                return
        try:
            await self._loader._load_authentication()
        except self._failure as error:
            raise ValueError(str(error)) from error
        header = getattr(self._loader, "token", None)
        self.header = _checked(header) if header else None


def _read(path: Path) -> str:
    try:
        token = read_file(path, _BYTES_MAX).decode().strip()
    except OSError as error:
        raise OSError(f"token file {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ValueError(f"token file {path}: it is not text") from None
    if not token:
        raise ValueError(f"token file {path} is empty")
    try:
        return _checked(f"Bearer {token}")
    except ValueError as error:
        raise ValueError(f"token file {path}: {error}") from error


def _checked(header: str) -> str:
    """The header, if it can be sent. Raises: ValueError."""
    header = header.strip()
    if not header.isascii() or not header.isprintable():
        raise ValueError("the token holds what no header can hold")
    return header

"""Client TLS towards one API server, from files that may change or from data within a kubeconfig.

Owns the certificates and the `ssl` context made of them. Never decides when to reload: `client.credentials` does.
Writes to no directory: see `lib.private_file`.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Final

from podium.lib.bounded_read import read_file
from podium.lib.private_file import private_file

_BYTES_MAX: Final = 16 * 1024**2
"""Limit of a file of certificates or a key. A bundle of all public authorities has a quarter of a megabyte."""


@dataclass(frozen=True, slots=True)
class Pem:
    """Certificates or a key: the path of a file, or the text itself."""

    path: str = ""
    text: bytes = field(default=b"", repr=False)

    def read(self) -> bytes:
        """Read the current text. Raises: OSError."""
        return read_file(self.path, _BYTES_MAX) if self.path else self.text

    def __str__(self) -> str:
        return self.path or "in the kubeconfig"


@dataclass(frozen=True, slots=True)
class TlsSource:
    """The sources of authorities, certificate and key. Without authorities, the system's are used."""

    authorities: Pem | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    verify: bool = True

    def read(self) -> TlsContent:
        """Read the current content. Raises: OSError, ValueError; the message names the file."""
        authorities = _read("certificate authority", self.authorities)
        if self.authorities is not None and not authorities:
            raise ValueError(f"certificate authority {self.authorities}: it is empty")
        return TlsContent(authorities, _read("client certificate", self.certificate), _read("client key", self.key))

    def context(self, content: TlsContent) -> ssl.SSLContext:
        """Make the `ssl` context. Raises: ValueError for unusable content; the message names the file."""
        try:
            # Non-ASCII text can only be in comments.
            cadata = content.authorities.decode("ascii", "ignore") or None
            context = ssl.create_default_context(cadata=cadata)
        except ssl.SSLError as error:
            raise ValueError(f"certificate authority {self.authorities}: {error}") from error
        # Python 3.13 became stricter about certificates than Go is; clusters' own authorities often fail its checks.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if content.certificate:
            try:
                with private_file(content.key + b"\n" + content.certificate) as path:
                    # A password, so that OpenSSL does not ask for one on the terminal.
                    context.load_cert_chain(path, password="")
            except OSError as error:
                raise ValueError(f"client certificate {self.certificate}, key {self.key}: {error}") from error
        return context


@dataclass(frozen=True, slots=True)
class TlsContent:
    """The content that was read, for comparison with later reads."""

    authorities: bytes
    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


def _read(called: str, pem: Pem | None) -> bytes:
    if pem is None:
        return b""
    try:
        return pem.read()
    except OSError as error:
        raise OSError(f"{called} {pem}: {error.strerror}") from error

"""Server-side TLS: client certificates if a CA is configured, and files that are reloaded when they change.

TLS 1.3 is the minimum once `tls13.refuse_tls12` has been called.

Source: karmada pkg/util/grpcconnection/config.go, v1.18.
Differs: upstream reads the files only once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import grpc

from podium.lib.error_text import UserFacingError
from podium.lib.log import get_logger

log = get_logger("estimator")


class TlsError(UserFacingError):
    """The certificates cannot be used. The text names the file."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The server's certificate and key, and the CA of its clients ("" for none)."""

    certificate: str
    key: str
    client_ca: str = ""
    skip_client_verify: bool = False


class ReloadingCertificates:
    """Credentials that are reloaded when the files change. If a file cannot be read, the earlier ones stay in use."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._stamp = self._stamps()
        self._first = self._read()

    def credentials(self) -> grpc.ServerCredentials:
        """The credentials for a gRPC server's port.

        Raises:
            TlsError: a file cannot be read.
        """
        verify = bool(self._files.client_ca) and not self._files.skip_client_verify
        # gRPC accepts None as the result, but its type stubs do not.
        fetch = cast("Callable[[], grpc.ServerCertificateConfiguration]", self._changed)
        return grpc.dynamic_ssl_server_credentials(self._first, fetch, require_client_authentication=verify)

    def _changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Called at each handshake: the new certificates, or None if they are unchanged."""
        try:
            stamp = self._stamps()
            if stamp == self._stamp:
                return None
            found = self._read()
        except TlsError as error:
            log.warning("Cannot reload certificates", error=str(error))
            return None
        self._stamp = stamp
        log.info("Certificates have changed", certificate=self._files.certificate)
        return found

    def _stamps(self) -> tuple[tuple[int, int], ...]:
        names = (self._files.certificate, self._files.key, self._files.client_ca)
        try:
            found = [os.stat(name) for name in names if name]
        except OSError as error:
            raise TlsError(f"{error.filename}: {error.strerror}") from error
        return tuple((each.st_mtime_ns, each.st_ino) for each in found)

    def _read(self) -> grpc.ServerCertificateConfiguration:
        files = self._files
        pair = (_content(files.key), _content(files.certificate))
        client_ca = _content(files.client_ca) if files.client_ca and not files.skip_client_verify else None
        return grpc.ssl_server_certificate_configuration([pair], root_certificates=client_ca)


def _content(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise TlsError(f"{name}: {error.strerror}") from error

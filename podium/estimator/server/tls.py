"""Server-side TLS: client certificates if a CA is configured, and files that are reloaded when they change.

TLS 1.3 is the minimum once `tls13.refuse_tls12` has been called.

Source: karmada pkg/util/grpcconnection/config.go, v1.18.
Differs: upstream reads the files only once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

import grpc

from podium.lib.log import get_logger
from podium.server.serving import FollowedFiles, KeyPair, content_of, load

log = get_logger("estimator")

_Content: TypeAlias = tuple[KeyPair, bytes | None]


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The server's certificate and key, and the CA of its clients ("" for none)."""

    certificate: str
    key: str
    client_ca: str = ""
    skip_client_verify: bool = False


class ReloadingCertificates:
    """Credentials that are reloaded when the files change. While a file cannot be used, the earlier ones stay in use.

    Cost: each handshake reads the files.

    Raises:
        CertificateError: a file cannot be read, or holds something else.
    """

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._content: _Content | None = None
        self._is_new = False
        self._followed = FollowedFiles("certificates for gRPC", self._read)
        self._followed.take()

    def credentials(self) -> grpc.ServerCredentials:
        """Return the credentials for a gRPC server's port."""
        verify = bool(self._files.client_ca) and not self._files.skip_client_verify
        # gRPC accepts None as the result, but its type stubs do not.
        fetch = cast("Callable[[], grpc.ServerCertificateConfiguration]", self._look_for_change)
        return grpc.dynamic_ssl_server_credentials(self._configuration(), fetch, require_client_authentication=verify)

    def _look_for_change(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the new certificates, or None if they are unchanged; gRPC calls it at each handshake."""
        self._followed.take_again()
        if not self._is_new:
            return None
        log.info("Certificates have changed", certificate=self._files.certificate)
        return self._configuration()

    def _configuration(self) -> grpc.ServerCertificateConfiguration:
        assert self._content is not None, "the files have been read"
        self._is_new = False
        pair, client_ca = self._content
        return grpc.ssl_server_certificate_configuration([(pair.key, pair.certificate)], root_certificates=client_ca)

    def _read(self) -> Callable[[], None]:
        files = self._files
        verifies = files.client_ca and not files.skip_client_verify
        pair = KeyPair(content_of(files.certificate), content_of(files.key))
        client_ca = content_of(files.client_ca) if verifies else None
        if (pair, client_ca) == self._content:
            return lambda: None
        # Checking a key takes longer than a handshake.
        content = load(files.certificate, files.key), client_ca

        def take() -> None:
            self._content, self._is_new = content, True

        return take

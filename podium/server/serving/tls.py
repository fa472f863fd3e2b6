"""The server's TLS settings, which can change at run time: its certificate, and the client CAs that it trusts.

Owns the `ssl` context of the next connection. A change creates a new context: CAs can be added to an existing one, but
not removed from it.

Source: apiserver/pkg/server/dynamiccertificates (v0.36): files are reloaded when they change, and every minute.
Differs: files are read every 5 s, changed or not; if a CA is no longer trusted, clients with its certificates have to
reconnect, while upstream verifies the certificate again in each request.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from weakref import WeakKeyDictionary

import anyio

from podium.lib.log import get_logger
from podium.server.serving.certificates import CertificateError, KeyPair, load, self_signed
from podium.server.serving.followed_files import FollowedFiles
from podium.server.tls_limits import SAFE, TlsLimits

log = get_logger("serving")

_LOOK_EVERY_S = 5.0


class ServingTls:
    """The server's current TLS settings.

    Attributes: ``context``, used for the next connection.
    """

    def __init__(self, pair: KeyPair, limits: TlsLimits = SAFE) -> None:
        """Read the certificate. Raises: CertificateError."""
        self._limits = limits
        self._pair = pair
        self._authorities = ""
        # Weak: a context lives as long as the connections that were made with it.
        self._authorities_of: WeakKeyDictionary[ssl.SSLContext, frozenset[bytes]] = WeakKeyDictionary()
        self._followed: list[FollowedFiles] = []
        self.context = self._renew_context(pair, "")

    def show(self, pair: KeyPair) -> None:
        """Use this certificate from the next connection on. Raises: CertificateError."""
        self.context = self._renew_context(pair, self._authorities)
        self._pair = pair

    def trust(self, authorities: str) -> None:
        """Trust client certificates of these CAs, as PEM, and of no others. Raises: ssl.SSLError."""
        if authorities != self._authorities:
            self.context = self._renew_context(self._pair, authorities)
            self._authorities = authorities

    def believes(self, context: ssl.SSLContext) -> bool:
        """Return whether client certificates that were verified with that context would pass with the current one."""
        # A connection outlives the context it was made with, so it is compared by the CAs, not by the context.
        return self._authorities_of.get(context, frozenset()) <= self._authorities_of[self.context]

    def follow_pair(self, cert_file: str, key_file: str) -> None:
        """Use the certificate in these files, also after they change."""

        def look() -> Callable[[], None]:
            pair = load(cert_file, key_file)
            return lambda: None if pair == self._pair else self.show(pair)

        self._followed.append(FollowedFiles(f"serving certificate {cert_file}, key {key_file}", look))

    def follow_authorities(self, path: str) -> None:
        """Trust the CAs in that file, also after it changes.

        Raises: CertificateError if the present content cannot be used.
        """

        def look() -> Callable[[], None]:
            authorities = Path(path).read_text()
            # An empty file is one that is being written; to trust no CA at all would lock every client out.
            if not authorities.strip():
                raise CertificateError("it is empty")
            return lambda: self.trust(authorities)

        files = FollowedFiles(f"client authority {path}", look)
        files.take()
        self._followed.append(files)

    async def run(self) -> None:
        """Reload the files periodically, until cancelled."""
        while True:
            await anyio.sleep(_LOOK_EVERY_S)
            for files in self._followed:
                previous = self.context
                # In a thread, as the files may be on a network file system.
                await files.take_again_in_thread()
                if self.context is not previous:
                    log.info("Certificates have changed", what=files.called)

    def _renew_context(self, pair: KeyPair, authorities: str) -> ssl.SSLContext:
        context = pair.context(self._limits)
        if authorities:
            context.load_verify_locations(cadata=authorities)
            # Optional, since clients with tokens have none, and probes neither.
            context.verify_mode = ssl.CERT_OPTIONAL
        self._authorities_of[context] = frozenset(context.get_ca_certs(binary_form=True))
        return context


def serving_tls(
    cert_file: str = "", key_file: str = "", *, bind_address: str = "", limits: TlsLimits = SAFE
) -> ServingTls:
    """Return the server's TLS settings: with the files' certificate, or a new self-signed one without files.

    Args:
        bind_address: a new certificate is also valid for this address.

    Raises: CertificateError, also if only one of the two files is given.
    """
    if not cert_file and not key_file:
        return ServingTls(self_signed(bind_address), limits)
    if not cert_file or not key_file:
        option, missing = ("--tls-cert-file", "--tls-private-key-file")[:: 1 if cert_file else -1]
        raise CertificateError(f"{option} needs {missing} too")
    try:
        tls = ServingTls(load(cert_file, key_file), limits)
    except CertificateError as error:
        raise CertificateError(f"serving certificate {cert_file}, key {key_file}: {error}") from error
    tls.follow_pair(cert_file, key_file)
    return tls

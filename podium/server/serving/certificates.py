"""The serving certificate: read from files, or created in memory if no files are given.

Source: component-base/cli/flag and apiserver/pkg/server/options/serving.go (1.36.2): the self-signed certificate is
valid for a year and names localhost.
Differs: a P-256 key instead of RSA 2048; one certificate that is its own issuer instead of a chain of two; the host's
name and ::1 are among its names; nothing is read from or written to a --cert-dir.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podium.lib.error_text import UserFacingError
from podium.lib.private_file import private_file
from podium.server.tls_limits import SAFE, TlsLimits

_VALID_DAYS = 365
_BACKDATED = dt.timedelta(hours=1)


class CertificateError(UserFacingError):
    """The serving certificate cannot be used; the text says which file and why."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (chain) and its private key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)

    def context(self, limits: TlsLimits = SAFE) -> ssl.SSLContext:
        """Return a server's side of TLS with this certificate.

        Raises: CertificateError if key and certificate do not belong together, or OpenSSL refuses them as too weak.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        limits.apply(context)
        # Without h2, which clients would choose if it were offered, and aiohttp does not speak.
        context.set_alpn_protocols(["http/1.1"])
        try:
            # The ssl module reads keys only from files; this one is of the memory alone.
            with private_file(self.key + b"\n" + self.certificate) as path:
                context.load_cert_chain(path)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise CertificateError("the private key does not belong to the certificate") from error
            raise CertificateError(f"unusable: {error.reason or error}") from error
        return context


def load(cert_file: str, key_file: str) -> KeyPair:
    """Read a certificate and its key, which must not be encrypted.

    Raises: CertificateError if a file cannot be read or holds something else.
    """
    certificate, key = content_of(cert_file), content_of(key_file)
    try:
        x509.load_pem_x509_certificates(certificate)
    except ValueError as error:
        raise CertificateError(f"{cert_file} holds no PEM certificate") from error
    try:
        serialization.load_pem_private_key(key, password=None)
    except TypeError as error:
        raise CertificateError(f"{key_file} is encrypted; a key without a password is needed") from error
    except ValueError as error:
        raise CertificateError(f"{key_file} holds no PEM private key") from error
    return KeyPair(certificate, key)


def self_signed(bind_address: str = "", *, host_name: str | None = None) -> KeyPair:
    """Return a new self-signed certificate for this host, valid for a year.

    Args:
        host_name: the machine's own name by default.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    issued_at = dt.datetime.now(dt.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "podium")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clients' clocks may be behind.
        .not_valid_before(issued_at - _BACKDATED)
        .not_valid_after(issued_at + dt.timedelta(days=_VALID_DAYS))
    )
    for extension, critical in _extensions(key.public_key(), bind_address, host_name or socket.gethostname()):
        builder = builder.add_extension(extension, critical=critical)
    return KeyPair(
        builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def _extensions(
    key: ec.EllipticCurvePublicKey, bind_address: str, host_name: str
) -> Iterable[tuple[x509.ExtensionType, bool]]:
    """Return the extensions that strict clients require of a self-signed certificate, each with its critical flag."""
    usage = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign"), False
    )
    return (
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (
            x509.KeyUsage(
                digital_signature=True, key_cert_sign=True, encipher_only=False, decipher_only=False, **usage
            ),
            True,
        ),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.SubjectKeyIdentifier.from_public_key(key), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(key), False),
        (x509.SubjectAlternativeName(_alternative_names(bind_address, host_name)), False),
    )


def _alternative_names(bind_address: str, host_name: str) -> list[x509.GeneralName]:
    # Certificates accept only ASCII names; a host with another name is still reachable by address.
    names = [name for name in ("localhost", host_name) if name.isascii()]
    addresses = [ipaddress.ip_address(address) for address in ("127.0.0.1", "::1", bind_address) if address]
    return [
        *(x509.DNSName(name) for name in dict.fromkeys(names)),
        # An unspecified address means every address, and a certificate cannot say that.
        *(x509.IPAddress(address) for address in dict.fromkeys(addresses) if not address.is_unspecified),
    ]


def content_of(path: str) -> bytes:
    """Return the content of a file. Raises: CertificateError."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CertificateError(f"{path}: {error.strerror}") from error

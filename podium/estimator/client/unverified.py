"""The certificate that a server presents, to trust it unseen as `--insecure-skip-estimator-verify` wants.

gRPC for Python cannot skip verification. A handshake without verification reads the certificate; gRPC then trusts that
one, under a name that stands in it.

Source: karmada pkg/util/grpcconnection/config.go, v1.18.
Differs: an expired certificate is still refused, and so is another one than the first handshake saw.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass

import anyio
from anyio.streams.tls import TLSAttribute
from cryptography import x509
from cryptography.x509.oid import ExtensionOID, NameOID


@dataclass(frozen=True, slots=True)
class PresentedCertificate:
    """A server's certificate as PEM, and a host name that it is valid for."""

    pem: bytes
    host: str


async def presented_certificate(target: str) -> PresentedCertificate:
    """Return the certificate that the server at `host:port` presents.

    Raises:
        OSError: it cannot be reached, or has no TLS.
        ValueError: the target has no port, or the certificate cannot be read.
    """
    host, _, port = target.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        stream = await anyio.connect_tcp(
            host.strip("[]"), int(port), ssl_context=context, tls_standard_compatible=False
        )
    except (anyio.BrokenResourceError, anyio.EndOfStream) as error:
        raise ConnectionResetError("the connection was closed during the TLS handshake") from error
    content = stream.extra(TLSAttribute.peer_certificate_binary)
    assert content is not None, "a TLS server has a certificate"
    await anyio.aclose_forcefully(stream)
    certificate = x509.load_der_x509_certificate(content)
    return PresentedCertificate(ssl.DER_cert_to_PEM_cert(content).encode(), _host_of(certificate))


def _host_of(certificate: x509.Certificate) -> str:
    names: list[str] = []
    try:
        extension = certificate.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME)
    except x509.ExtensionNotFound:
        names += [str(item.value) for item in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    else:
        assert isinstance(extension.value, x509.SubjectAlternativeName)
        names += extension.value.get_values_for_type(x509.DNSName)
        names += map(str, extension.value.get_values_for_type(x509.IPAddress))
    if not names:
        raise ValueError("the certificate has no host name")
    return names[0].replace("*", "any")

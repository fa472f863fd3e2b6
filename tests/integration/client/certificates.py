"""A certificate authority that lives as long as a test."""

from __future__ import annotations

import datetime as dt
import ssl
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates and writes them to a directory."""

    def __init__(self, directory: Path, name: str = "test-authority") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self.file = directory / f"{name}.crt"
        certificate = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.file.write_bytes(_pem(certificate.sign(self._key, hashes.SHA256())))

    def issue(self, name: str, *groups: str, dns: str = "", ip: str = "", valid_s: float = 3600.0) -> tuple[Path, Path]:
        """Files of a new certificate and its key; `groups` are its organisations."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_name(name, *groups), key, valid_s)
        names: list[x509.GeneralName] = []
        if dns:
            names.append(x509.DNSName(dns))
        if ip:
            names.append(x509.IPAddress(ip_address(ip)))
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        cert_file, key_file = self._directory / f"{name}.crt", self._directory / f"{name}.key"
        cert_file.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return cert_file, key_file

    def server_context(self, *, dns: str = "", ip: str = "", clients: bool = False) -> ssl.SSLContext:
        """A server's side of TLS; with `clients`, it demands a certificate of this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue("server", dns=dns, ip=ip))
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.file)
        return context

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, valid_s: float = 3600.0
    ) -> x509.CertificateBuilder:
        time = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(time - dt.timedelta(hours=1))
            .not_valid_after(time + dt.timedelta(seconds=valid_s))
        )


def _name(common_name: str, *organizations: str) -> x509.Name:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
    return x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)

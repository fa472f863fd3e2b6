"""Keys, certificates, tokens and kubeconfigs for one throwaway control plane."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ADMIN_TOKEN = "admin-token"


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """Paths the API server is started with; clients trust `authority`."""

    authority: Path
    certificate: Path
    key: Path
    service_account_key: Path
    tokens: Path


def write_key_files(directory: Path) -> KeyFiles:
    """An authority, a serving certificate for 127.0.0.1 signed by it, a signing key, the admin's token."""
    files = KeyFiles(
        authority=directory / "ca.crt",
        certificate=directory / "apiserver.crt",
        key=directory / "apiserver.key",
        service_account_key=directory / "service-account.key",
        tokens=directory / "tokens.csv",
    )
    authority_key, serving_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _authority(authority_key)
    serving = _serving_certificate(serving_key, authority, authority_key)
    files.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    files.certificate.write_bytes(serving.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(_pem(serving_key))
    files.service_account_key.write_bytes(_pem(ec.generate_private_key(ec.SECP256R1())))
    files.tokens.write_text(f'{ADMIN_TOKEN},admin,admin,"system:masters"\n')
    return files


def write_kubeconfig(path: Path, server: str, authority: Path, token: str) -> Path:
    """A kubeconfig with one context that needs no other file."""
    authority_data = base64.b64encode(authority.read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority-data": authority_data}}],
        "users": [{"name": "test", "user": {"token": token}}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = _name("podium test authority")
    builder = _builder(name, name, key).add_extension(x509.BasicConstraints(True, 0), critical=True)
    return builder.add_extension(_usage(certificate_signing=True), critical=True).sign(key, hashes.SHA256())


def _serving_certificate(
    key: ec.EllipticCurvePrivateKey, authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    # Python's strict verification wants the key identifiers and usages to be there and to fit together.
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    addresses = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    return (
        _builder(_name("kube-apiserver"), authority.subject, key)
        .add_extension(x509.BasicConstraints(False, None), critical=True)
        .add_extension(_usage(certificate_signing=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    time = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(time - dt.timedelta(hours=1))
        .not_valid_after(time + dt.timedelta(days=2))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, certificate_signing: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=certificate_signing,
        crl_sign=certificate_signing,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # kube-apiserver takes the public half out of a key file of this form, and not out of a PKCS #8 one.
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )

"""The TLS settings of connections to an extender.

Source: kubernetes pkg/scheduler/extender.go (makeTransport) and client-go v0.36 transport/transport.go.
Differs: settings that cannot be used prevent the start; the error names the field.
"""

from __future__ import annotations

import base64
import binascii
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from podium.client.credentials import ConnectionConfigError
from podium.config import Extender, ExtenderTLSConfig
from podium.framework.contract.questions import name_of
from podium.lib.private_file import private_file


def tls_context(extender: Extender) -> ssl.SSLContext:
    """Build a context that verifies the extender and has podium's client certificate; inline data precedes files.

    `enableHTTPS` without a CA disables verification, as upstream does. Without both, the system's CAs are used.

    Raises:
        ConnectionConfigError: a certificate or key cannot be used.
    """
    settings = extender.tls_config or ExtenderTLSConfig()
    settings_path = f'extender "{name_of(extender)}": tlsConfig'
    context = _with_authority(settings, settings_path)
    # Python 3.13 made certificate verification stricter than Go's.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if settings.insecure or (extender.enable_https and not (settings.ca_data or settings.ca_file)):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if (settings.cert_data or settings.cert_file) and (settings.key_data or settings.key_file):
        _load_certificate(context, settings, settings_path)
    return context


def _with_authority(settings: ExtenderTLSConfig, settings_path: str) -> ssl.SSLContext:
    try:
        if settings.ca_data:
            return ssl.create_default_context(cadata=_pem(settings.ca_data, f"{settings_path}.caData").decode())
        return ssl.create_default_context(cafile=settings.ca_file or None)
    except (OSError, ssl.SSLError, UnicodeDecodeError) as error:
        field = "caData" if settings.ca_data else f"caFile {settings.ca_file}"
        raise ConnectionConfigError(f"{settings_path}.{field}: {error}") from error


def _load_certificate(context: ssl.SSLContext, settings: ExtenderTLSConfig, settings_path: str) -> None:
    with (
        _as_file(settings.cert_data, settings.cert_file, f"{settings_path}.certData") as certificate,
        _as_file(settings.key_data, settings.key_file, f"{settings_path}.keyData") as key,
    ):
        try:
            context.load_cert_chain(certificate, key, password=_no_password)
        except (OSError, ssl.SSLError, ValueError) as error:
            raise ConnectionConfigError(f"{settings_path}: client certificate or key: {error}") from error


def _no_password() -> str:
    """Return the empty password, so that OpenSSL does not prompt on the terminal."""
    raise ValueError("the key is encrypted")


@contextmanager
def _as_file(data: str, file: str, settings_path: str) -> Iterator[str]:
    """Yield the file, or a temporary one with the data: Python loads certificates only from files."""
    if not data:
        yield file
        return
    with private_file(_pem(data, settings_path)) as path:
        yield path


def _pem(data: str, settings_path: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ConnectionConfigError(f"{settings_path}: {error}") from error

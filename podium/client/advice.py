"""Explains in plain words why the API server cannot be reached, and what an operator can do about it.

Owns the messages for errors of sockets, TLS, name resolution and proxies. Never decides how podium reacts.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import Final, NamedTuple

import aiohttp

from podium.objects.api_errors import ApiError, Forbidden, Unauthorized, Unreachable

_ADDRESS: Final = "the server's address in the kubeconfig (or --master)"


class Diagnosis(NamedTuple):
    """The cause, and what to do."""

    cause: str
    advice: str


_CREDENTIALS: Final = Diagnosis(
    "the API server does not accept our credentials",
    "renew the kubeconfig's token or client certificate (an exec plugin may want a login), or give another kubeconfig",
)
_RIGHTS: Final = Diagnosis("our credentials do not allow this", "grant the rights (deploy/rbac.yaml has them)")
_NAME: Final = Diagnosis("its host name cannot be resolved", f"check {_ADDRESS}, and DNS")
_REFUSED: Final = Diagnosis(
    "nothing listens at its address", f"check that the API server runs, and {_ADDRESS} with its port"
)
_NO_WAY: Final = Diagnosis("there is no way to its network", "check routes, VPN and firewalls")
_SILENT: Final = Diagnosis("it does not answer in time", f"check {_ADDRESS}, firewalls, and the proxy variables")
_PROXY: Final = Diagnosis(
    "the proxy does not let us through", "check proxy-url in the kubeconfig, HTTPS_PROXY and NO_PROXY"
)
_NO_TLS: Final = Diagnosis("it does not speak TLS as we do", f"check {_ADDRESS}: https or http, and the port")
_OUR_CERTIFICATE: Final = Diagnosis(
    "it does not accept our client certificate", "renew client-certificate and client-key in the kubeconfig"
)
_ITS_CERTIFICATE: Final = Diagnosis("its certificate is not valid", "check certificate-authority in the kubeconfig")
_UNKNOWN: Final = Diagnosis("it cannot be reached", f"check {_ADDRESS}, the network, and the proxy variables")

_OTHER_AUTHORITY: Final = Diagnosis(
    "its certificate is not from the authority that the kubeconfig names",
    "set certificate-authority (or -data) in the kubeconfig to the API server's own authority",
)
_OTHER_NAME: Final = Diagnosis(
    "its certificate is for other names",
    "use a name of the certificate as server in the kubeconfig, or set tls-server-name to one",
)
# By OpenSSL's X509_V_ERR numbers.
_BY_VERIFY_CODE: Final = {
    9: Diagnosis("its certificate is not valid yet", "check the clocks of both machines"),
    10: Diagnosis("its certificate has expired", "renew the API server's certificate, and check this machine's clock"),
    **dict.fromkeys((2, 18, 19, 20, 21, 24), _OTHER_AUTHORITY),
    **dict.fromkeys((62, 64), _OTHER_NAME),
}
_NETWORK: Final = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN})


def explanation_of(error: ApiError, url: str) -> str:
    """Return what an error of the API server at this URL means, with advice if its user can do something."""
    if not isinstance(error, Unreachable | Unauthorized | Forbidden):
        return f"{url}: {error}"
    cause, advice = diagnosis_of(error)
    return f"{url}: {cause}: {advice} ({error})"


def diagnosis_of(error: BaseException) -> Diagnosis:
    """Explain why a request has failed, from its chain of causes."""
    if isinstance(error, Unauthorized):
        return _CREDENTIALS
    if isinstance(error, Forbidden):
        return _RIGHTS
    for cause in causes(error):
        if (advice := _of_one(cause)) is not None:
            return advice
    return _UNKNOWN


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, the innermost last. The errors of several addresses are listed one by one."""
    current: BaseException | None = error
    while current is not None:
        yield current
        if isinstance(current, BaseExceptionGroup):
            yield from current.exceptions
        inner = getattr(current, "os_error", None) or getattr(current, "certificate_error", None)
        if isinstance(inner, BaseException) and inner is not current:
            yield inner
        current = current.__cause__


def _of_one(error: BaseException) -> Diagnosis | None:
    if isinstance(error, (aiohttp.ClientHttpProxyError, aiohttp.ClientProxyConnectionError)):
        return _PROXY
    if isinstance(error, ssl.SSLCertVerificationError):
        # aiohttp's error of that type has no code, but the error that it wraps has.
        code = getattr(error, "verify_code", None)
        return None if code is None else _BY_VERIFY_CODE.get(code, _ITS_CERTIFICATE)
    if isinstance(error, ssl.SSLError):
        words = str(error).upper()
        return _OUR_CERTIFICATE if ("ALERT" in words and "CERT" in words) or "UNKNOWN_CA" in words else _NO_TLS
    if isinstance(error, socket.gaierror):
        return _NAME
    if isinstance(error, ConnectionRefusedError):
        return _REFUSED
    if isinstance(error, OSError) and error.errno in _NETWORK:
        return _NO_WAY
    if isinstance(error, TimeoutError) or (isinstance(error, OSError) and error.errno == errno.ETIMEDOUT):
        return _SILENT
    return None


_BY_WORDS: Final = (
    ("no API server to talk to", "give a kubeconfig with --kubeconfig, or run in a pod"),
    ("in-cluster", "check the pod's service account, and that automountServiceAccountToken is not false"),
    ("exec", "install the plugin's command where podium finds it, and run it by hand: it must print an ExecCredential"),
    ("auth-provider", "use a token, a client certificate or an exec plugin"),
    ("certificate authority", "certificate-authority must be a PEM file, certificate-authority-data one in base64"),
    ("certificate-authority", "certificate-authority must be a PEM file, certificate-authority-data one in base64"),
    ("client certificate", "client-certificate and client-key must be PEM files that belong together"),
    ("client-", "client-certificate and client-key must be PEM files that belong together"),
    ("token", "write a valid token to that file or field"),
    ("impersonation", "give podium credentials of its own"),
    ("proxy", "correct proxy-url in the kubeconfig, or the proxy variables"),
    ("server", "correct the cluster's server in the kubeconfig"),
    ("context", "set current-context to one of the contexts (kubectl config use-context)"),
)


def advice_on_configuration(problem: str) -> str:
    """Advise what to do about an invalid connection configuration, by the field or file that the problem names."""
    # The path of a kubeconfig comes first and may contain any of the words, so it is skipped.
    cause = problem.partition(": ")[2] if problem.startswith("kubeconfig ") else problem
    for word, advice in _BY_WORDS:
        if word in cause:
            return advice
    return "correct the kubeconfig, or give another one with --kubeconfig"

"""Which TLS versions and cipher suites are served, configured by kube-scheduler's flags.

Source: component-base/cli/flag/ciphersuites_flag.go (1.36.2)
Differs: nothing below TLS 1.2, and no suite without forward secrecy and authenticated encryption; upstream has both.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MINIMUM: Final = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}

_OF_TLS12: Final = {
    f"TLS_ECDHE_{key}_WITH_{suite}": f"ECDHE-{key}-{openssl}"
    for key in ("ECDSA", "RSA")
    for suite, openssl in (
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
        ("CHACHA20_POLY1305", "CHACHA20-POLY1305"),
    )
}
# As in Go, TLS 1.3 suites are always enabled, and naming them changes nothing.
_OF_TLS13: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
SUITES: Final = (*_OF_TLS12, *sorted(_OF_TLS13))


@dataclass(frozen=True, slots=True)
class TlsLimits:
    """The minimum version, and the names of the suites; an empty list means all of `SUITES`.

    Raises: ValueError for a name that is not among `MINIMUM` and `SUITES`.
    """

    min_version: str = "VersionTLS12"
    cipher_suites: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check the names."""
        for name, names in ((self.min_version, MINIMUM), *((suite, SUITES) for suite in self.cipher_suites)):
            if name not in names:
                raise ValueError(f"{name} is not served, only {', '.join(names)}")

    def apply(self, context: ssl.SSLContext) -> None:
        """Apply the limits to a server's context."""
        context.minimum_version = MINIMUM[self.min_version]
        suites = [_OF_TLS12[name] for name in self.cipher_suites or _OF_TLS12 if name in _OF_TLS12]
        if suites:
            context.set_ciphers(":".join(suites))
        else:
            context.minimum_version = ssl.TLSVersion.TLSv1_3


SAFE: Final = TlsLimits()
"""The default limits."""

"""Environment variables for gRPC: TLS 1.3 as the minimum, and no log output of its own.

Separate from `tls`, because the variables must be set before gRPC is imported.
"""

from __future__ import annotations

import os
from typing import Final

_ONLY_TLS13: Final = "ECDHE-PSK-CHACHA20-POLY1305"
"""The only cipher suite for TLS 1.2 needs a pre-shared key, which the server lacks. So only TLS 1.3 works.

gRPC for Python has no option for the minimum version.
"""


def keep_quiet() -> None:
    """Disable the log of gRPC's core: it writes to standard error itself, blocks on its reader, and reports every
    malformed input of clients. Errors that matter are raised as exceptions.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def refuse_tls12() -> None:
    """Refuse TLS 1.2 and older."""
    os.environ["GRPC_SSL_CIPHER_SUITES"] = _ONLY_TLS13

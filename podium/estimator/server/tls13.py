"""What gRPC reads from the environment: TLS 1.3 and nothing older, and no log of its own.

Apart from `tls`, because it must be said before gRPC is imported.
"""

from __future__ import annotations

import os
from typing import Final

_ONLY_TLS13: Final = "ECDHE-PSK-CHACHA20-POLY1305"
"""The one cipher for TLS 1.2 needs a key agreed beforehand, and there is none: what remains is TLS 1.3.

gRPC for Python cannot be told the least version.
"""


def keep_quiet() -> None:
    """Have gRPC's own core log nothing: it writes to standard error by itself, waits for its reader, and complains of
    whatever anybody sends. What matters comes as an exception.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def refuse_tls12() -> None:
    """Let only TLS 1.3 pass."""
    os.environ["GRPC_SSL_CIPHER_SUITES"] = _ONLY_TLS13

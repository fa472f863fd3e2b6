"""`python -m tests.estimator_chaos.liars CERTIFICATE KEY PORT...`: servers whose answers no client may believe.

Each of `NAMES` is served on the port of its place.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import grpc
import grpc.aio

from podium.estimator.server.messages import replicas_response
from podium.estimator.server.service import SERVICE
from tests.estimator_chaos.members import HOST

_FIELD: Final = b"\x08"
"""The number of the only field of both answers, as a varint follows."""

LIES: Final[Mapping[str, bytes]] = {
    "negative": replicas_response(-5),
    "two-to-the-31": _FIELD + b"\x80\x80\x80\x80\x08",
    "two-to-the-63": _FIELD + b"\x80" * 9 + b"\x01",
    "cut-off": _FIELD + b"\x80",
    "not-a-message": b"\xff\xff",
    "too-long": b"\x12\xff\x7f" + b"a" * 16_383,
    "of-another-type": b"\x0a\x017",
}
"""By name, the answer to every question. `old`, too, has none: it is a server of a version without these questions."""

OLD: Final = "old"
NAMES: Final = (*LIES, OLD)


async def serve(certificate: bytes, key: bytes, ports: Sequence[int]) -> None:
    """Serve until cancelled."""
    servers = []
    for name, port in zip(NAMES, ports, strict=True):
        server = grpc.aio.server()
        if name != OLD:
            handlers = dict.fromkeys(("MaxAvailableReplicas", "MaxAvailableComponentSets"), _handler(LIES[name]))
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        server.add_secure_port(f"{HOST}:{port}", grpc.ssl_server_credentials([(key, certificate)]))
        await server.start()
        servers.append(server)
    await anyio.sleep_forever()


def _handler(content: bytes) -> grpc.RpcMethodHandler[bytes, bytes]:
    async def answer(request: bytes, context: Any) -> bytes:
        return content

    return grpc.unary_unary_rpc_method_handler(answer)


if __name__ == "__main__":
    anyio.run(serve, *(Path(name).read_bytes() for name in sys.argv[1:3]), [int(port) for port in sys.argv[3:]])

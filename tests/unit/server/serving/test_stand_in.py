from __future__ import annotations

import pytest

from podium.server.serving.stand_in import _response


@pytest.mark.parametrize("path", ["/livez", "/healthz?verbose", "/readyz/ping", "/livez/"])
def test_probes_fail_without_a_reason(path: str) -> None:
    head, _, text = _response(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()).partition(b"\r\n\r\n")
    probe = path.split("/")[1].split("?")[0]
    assert head.startswith(b"HTTP/1.1 500 ")
    assert text == f"[-]event-loop failed: reason withheld\n{probe} check failed\n".encode()
    assert f"Content-Length: {len(text)}".encode() in head.split(b"\r\n")


@pytest.mark.parametrize("request_head", [b"GET /metrics HTTP/1.1\r\n\r\n", b"", b"\r\n\r\n", b"\xff\x00 \xfe", b"GET"])
def test_everything_else_is_not_available(request_head: bytes) -> None:
    assert _response(request_head).startswith(b"HTTP/1.1 503 ")

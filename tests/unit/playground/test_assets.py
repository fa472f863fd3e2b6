from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.control_plane.builder import BuildError
from tests.playground.assets import Wheel, fetch

WHEEL = bytes(range(256)) * 40
MEMBER = "other/numpy.whl"


def _carrier() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("other/large.bin", bytes(1_000_000))
        archive.writestr(MEMBER, WHEEL)
    return content.getvalue()


class _Files(BaseHTTPRequestHandler):
    """Serves the carrier, in parts below /parts and only as a whole elsewhere."""

    content = _carrier()

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()

    def do_GET(self) -> None:
        start, end = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        is_part = self.path.startswith("/parts")
        content = self.content[start : end + 1] if is_part else self.content
        self.server.sent.append(len(content))  # type: ignore[attr-defined]
        self.send_response(206 if is_part else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    http_server = ThreadingHTTPServer(("127.0.0.1", 0), _Files)
    http_server.sent = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=http_server.serve_forever)
    thread.start()
    yield http_server
    http_server.shutdown()
    thread.join()
    http_server.server_close()


def wheel(server: ThreadingHTTPServer, path: str, member: str = MEMBER, content: bytes = WHEEL) -> Wheel:
    url = f"http://127.0.0.1:{server.server_port}{path}"
    return Wheel("numpy.whl", hashlib.sha256(content).hexdigest(), url, member)


def test_wheel_within_a_large_file_is_fetched_without_the_rest(server: ThreadingHTTPServer) -> None:
    assert fetch(wheel(server, "/parts")) == WHEEL
    assert sum(server.sent) < 100_000  # type: ignore[attr-defined]


def test_server_that_sends_everything_is_read_too(server: ThreadingHTTPServer) -> None:
    assert fetch(wheel(server, "/whole")) == WHEEL


def test_other_content_than_was_pinned_is_refused(server: ThreadingHTTPServer) -> None:
    with pytest.raises(BuildError, match="is not what was pinned: its sha256 is "):
        fetch(wheel(server, "/parts", content=b"?"))


def test_wheel_that_is_not_there_is_told(server: ThreadingHTTPServer) -> None:
    with pytest.raises(BuildError, match="cannot be fetched: "):
        fetch(wheel(server, "/parts", member="gone.whl"))

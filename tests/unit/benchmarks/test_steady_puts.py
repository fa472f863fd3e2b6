import http.server
import json
import time
from base64 import b64decode
from collections.abc import Iterator
from threading import Thread

import pytest

from benchmarks.etcd import EtcdError
from benchmarks.pods import pod
from benchmarks.steady_puts import SteadyPuts, put_requests_of


class Gateway(http.server.ThreadingHTTPServer):
    """Stands in for etcd: notes what is put, and answers with the code."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.code = 200
        self.put: list[tuple[str, bytes]] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Gateway

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.put.append((b64decode(body["key"]).decode(), b64decode(body["value"])))
        self.send_response(self.server.code)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
        if self.server.code != http.HTTPStatus.OK:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


REQUESTED = [(pod("a", "web"), b"one"), (pod("b", "web"), b"two")]


def _send(gateway: Gateway, at_least: int) -> SteadyPuts:
    deadline_s = time.monotonic() + 10.0
    with SteadyPuts(gateway.address, put_requests_of(gateway.address, REQUESTED), 1000.0) as puts:
        while len(gateway.put) < at_least and time.monotonic() < deadline_s:
            time.sleep(0.001)
    return puts


def test_objects_are_written_in_turn_where_the_api_server_looks_for_them(gateway: Gateway) -> None:
    puts = _send(gateway, 5)
    assert len(gateway.put) == puts.made >= 5
    assert gateway.put[:3] == [
        ("/registry/pods/default/a", b"one"),
        ("/registry/pods/default/b", b"two"),
        ("/registry/pods/default/a", b"one"),
    ]


def test_a_refusal_is_raised_when_the_block_ends(gateway: Gateway) -> None:
    gateway.code = 500
    with pytest.raises(EtcdError):
        _send(gateway, 1)


def test_nothing_is_sent_of_nothing(gateway: Gateway) -> None:
    with SteadyPuts(gateway.address, [], 1000.0) as puts:
        pass
    assert (puts.made, gateway.put) == (0, [])

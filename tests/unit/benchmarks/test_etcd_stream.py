from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from benchmarks.etcd import EtcdError
from benchmarks.etcd_stream import EtcdStream, put_each, put_message
from benchmarks.pods import pod

_GRPC_HEAD_BYTES = 5


class Service(grpc.GenericRpcHandler):
    """Stands in for etcd, with a gRPC server that others have written."""

    def __init__(self) -> None:
        self.put: list[bytes] = []
        self.refuses = False

    def service(self, handler_call_details: Any) -> Any:
        assert handler_call_details.method == "/etcdserverpb.KV/Put"
        return grpc.unary_unary_rpc_method_handler(self._take)

    def _take(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        if self.refuses:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "no space")
        self.put.append(request)
        return b"\x0a\x02\x18\x01"


Serving = tuple[Service, str]


@pytest.fixture
def serving() -> Iterator[Serving]:
    service = Service()
    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads, handlers=[service])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield service, f"127.0.0.1:{port}"
        server.stop(None).wait()


def test_a_message_is_a_put_request_with_key_and_value() -> None:
    assert put_message("/k", b"v") == b"\0\0\0\0\x07\x0a\x02/k\x12\x01v"
    assert put_message("/k", b"v" * 300)[_GRPC_HEAD_BYTES:] == b"\x0a\x02/k\x12\xac\x02" + b"v" * 300


@pytest.mark.parametrize("count", [1, 100])
def test_puts_arrive_whole_and_are_answered_however_little_room_the_server_gives(serving: Serving, count: int) -> None:
    service, address = serving
    # A hundred of them are ten times what may be under way at once.
    messages = [put_message(f"/registry/minions/n{number}", bytes(6000)) for number in range(count)]
    with EtcdStream(address) as stream:
        stream.put(messages)
        stream.put(messages[:1])
    assert sorted(service.put) == sorted(
        stream_message[_GRPC_HEAD_BYTES:] for stream_message in [*messages, messages[0]]
    )


def test_a_refused_put_is_an_error(serving: Serving) -> None:
    service, address = serving
    service.refuses = True
    with EtcdStream(address) as stream, pytest.raises(EtcdError, match="refused"):
        stream.put([put_message("/k", b"v")])


def test_a_server_that_goes_away_is_an_error() -> None:
    with ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads, handlers=[Service()])
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        with EtcdStream(address) as stream:
            stream.put([put_message("/k", b"v")])
            server.stop(None).wait()
            with pytest.raises((EtcdError, OSError)):
                stream.put([put_message("/k", b"v")])


def test_what_does_not_fit_into_a_frame_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="/k"):
        put_message("/k", bytes(1 << 14))


def test_each_object_is_put_by_itself_with_what_the_api_server_gives_it_and_keeps_its_uid(serving: Serving) -> None:
    service, address = serving
    pods = [pod(f"web-{number}", "web") for number in range(120)]
    pods[0]["metadata"]["uid"] = "mine"
    put_each(address, pods)
    assert len(service.put) == len(pods)
    first = next(request for request in service.put if b"/registry/pods/default/web-0\x12" in request)
    assert b'"uid":"mine"' in first
    assert b'"creationTimestamp"' in first

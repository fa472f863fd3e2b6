"""`podium estimator serve` from the outside: TLS, certificates that change, endpoints, the end."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import grpc
import pytest

from podium.estimator.server.messages import CLASSES
from podium.estimator.server.service import SERVICE
from podium.server.serving.certificates import KeyPair, self_signed
from tests.control_plane.processes import free_ports
from tests.integration.cli.conftest import ROOT, Podium, Start
from tests.patience import PATIENCE_S
from tests.unit.estimator.server.wire import replicas_request

CASES = ROOT / "tests" / "parity" / "data" / "karmada-estimates.jsonl.gz"
QUIET = ("--health-probe-bind-address", "", "--metrics-bind-address", "")


@dataclass(frozen=True)
class Served:
    """A server as its clients see it."""

    port: int
    process: subprocess.Popen[str]

    def replicas(self, credentials: grpc.ChannelCredentials | None = None) -> int:
        """Return the replicas that the first recorded cluster takes without requirements."""
        target = f"localhost:{self.port}"
        channel_made = (
            grpc.insecure_channel(target) if credentials is None else grpc.secure_channel(target, credentials)
        )
        with channel_made as channel:
            call = channel.unary_unary(f"/{SERVICE}/MaxAvailableReplicas")
            answer = call(replicas_request(CASE["id"], None), timeout=PATIENCE_S)
        return int(CLASSES["MaxAvailableReplicasResponse"].FromString(answer).maxReplicas)

    def handshake(self, version: ssl.TLSVersion) -> tuple[str | None, bytes | None]:
        """The TLS version and the server's certificate."""
        context = ssl._create_unverified_context()
        context.minimum_version = context.maximum_version = version
        context.set_alpn_protocols(["h2"])
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as raw,
            context.wrap_socket(raw, server_hostname="localhost") as secure,
        ):
            return secure.version(), secure.getpeercert(binary_form=True)


def _case() -> dict[str, Any]:
    with gzip.open(CASES, "rt", encoding="utf-8") as lines:
        return next(row for row in map(json.loads, lines) if row["expect"].get("replicas") and len(row) == 4)


CASE = _case()
REPLICAS = CASE["expect"]["replicas"]


@pytest.fixture
def serve(start: Start, tmp_path: Path) -> Callable[..., Served]:
    """Serve the case, and return when the port is open."""
    case = tmp_path / "case.jsonl"
    case.write_text(json.dumps(CASE))

    def begin(*flags: str | Path) -> Served:
        port = free_ports(1)[0]
        address = ("--bind-address", "127.0.0.1", "--server-port", str(port))
        process = start("estimator", "serve", "--cases", case, *address, *(flags or QUIET))
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "Serving estimates" in line, line
        return Served(port, process)

    return begin


def _write_pair(directory: Path, name: str, pair: KeyPair) -> tuple[Path, Path]:
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    return certificate, key


def _tls(certificate: Path, key: Path, *options: str | Path) -> tuple[str | Path, ...]:
    return (*QUIET, "--grpc-auth-cert-file", certificate, "--grpc-auth-key-file", key, *options)


def test_plain_text_answers_and_a_signal_ends_it_well(serve: Callable[..., Served]) -> None:
    server = serve()
    assert server.replicas() == REPLICAS
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE_S) == 0


def test_the_signal_that_has_the_scheduler_dump_its_cache_does_not_end_it(serve: Callable[..., Served]) -> None:
    server = serve()
    server.process.send_signal(signal.SIGUSR2)
    assert server.replicas() == REPLICAS
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE_S) == 0


def test_only_tls_13_is_spoken_and_certificates_are_read_anew(serve: Callable[..., Served], tmp_path: Path) -> None:
    first, second = self_signed(), self_signed()
    server = serve(*_tls(*_write_pair(tmp_path, "server", first)))
    version, certificate_seen = server.handshake(ssl.TLSVersion.TLSv1_3)
    assert version == "TLSv1.3"
    assert server.replicas(grpc.ssl_channel_credentials(first.certificate)) == REPLICAS
    with pytest.raises(OSError, match=r"EOF|reset|alert"):
        server.handshake(ssl.TLSVersion.TLSv1_2)
    _write_pair(tmp_path, "server", second)
    assert server.handshake(ssl.TLSVersion.TLSv1_3)[1] != certificate_seen
    assert server.replicas(grpc.ssl_channel_credentials(second.certificate)) == REPLICAS


def test_client_needs_a_certificate_of_the_ca_unless_that_is_skipped(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    server, client = self_signed(), self_signed()
    files = _write_pair(tmp_path, "server", server)
    ca = _write_pair(tmp_path, "client", client)[0]
    client_credentials = grpc.ssl_channel_credentials(server.certificate, client.key, client.certificate)
    unknown = grpc.ssl_channel_credentials(server.certificate)
    estimator = serve(*_tls(*files, "--grpc-client-ca-file", ca))
    assert estimator.replicas(client_credentials) == REPLICAS
    with pytest.raises(grpc.RpcError) as error:
        estimator.replicas(unknown)
    assert error.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    lenient = serve(*_tls(*files, "--grpc-client-ca-file", ca, "--insecure-skip-grpc-client-verify"))
    assert lenient.replicas(unknown) == REPLICAS


def test_health_and_metrics_are_served_over_http(serve: Callable[..., Served]) -> None:
    health, metrics = free_ports(2)
    server = serve(
        "--health-probe-bind-address", f"127.0.0.1:{health}", "--metrics-bind-address", f"127.0.0.1:{metrics}"
    )
    server.replicas()
    for path in ("healthz", "readyz"):
        with urlopen(f"http://127.0.0.1:{health}/{path}", timeout=PATIENCE_S) as answer:
            assert answer.read() == b"ok"
    with urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    name = "karmada_scheduler_estimator_estimating_request_total"
    assert f'{name}{{result="success",type="MaxAvailableReplicas"}} 1' in text


def test_port_that_is_taken_is_a_plain_message(serve: Callable[..., Served], podium: Podium) -> None:
    port = serve().port
    flags = ("--cluster-name", "m1", "--master", "http://127.0.0.1:1", "--server-port", str(port), *QUIET)
    result = podium("estimator", "serve", "--bind-address", "127.0.0.1", *flags)
    assert result.returncode == 1
    reason = f"cannot listen on 127.0.0.1 port {port}: Address already in use; change --server-port or --bind-address"
    assert reason in result.stderr
    assert "Traceback" not in result.stderr


def test_port_of_health_that_is_taken_is_a_plain_message(podium: Podium) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        flags = ("--cluster-name", "m1", "--master", "http://127.0.0.1:1", "--server-port", "0", *QUIET)
        result = podium("estimator", "serve", *flags, "--health-probe-bind-address", f"127.0.0.1:{port}")
    assert result.returncode == 1
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in result.stderr
    assert "change --health-probe-bind-address" in result.stderr
    assert "Traceback" not in result.stderr

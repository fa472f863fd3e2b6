"""Karmada's own client asks `podium estimator serve` the recorded questions, over every kind of connection."""

from __future__ import annotations

import functools
import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.control_plane.processes import ServerProcess, free_ports
from tests.control_plane.requirement import built_or_skipped
from tests.integration.client.certificates import Authority
from tests.karmada.binaries import CLIENT, obtain

CASES = Path(__file__).parents[1] / "parity" / "data" / "karmada-estimates.jsonl.gz"
LINES = gzip.decompress(CASES.read_bytes())
ROWS: list[dict[str, Any]] = [json.loads(line) for line in LINES.splitlines()]
CLIENT_S_MAX = 120.0
CANNOT_DIAL = 3


@dataclass(frozen=True, slots=True)
class Tls:
    """The files of both sides."""

    authority: Path
    server: tuple[Path, Path]
    client: tuple[Path, Path]


@pytest.fixture(scope="module")
def client_binary(pytestconfig: pytest.Config) -> Path:
    """Karmada's client; built on first use, which takes minutes."""
    return built_or_skipped(pytestconfig, "client of Karmada's", functools.partial(obtain, CLIENT))


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    authority = Authority(tmp_path_factory.mktemp("tls"))
    return Tls(authority.file, authority.issue("server", ip="127.0.0.1"), authority.issue("client"))


@contextmanager
def _serving(directory: Path, *flags: str | Path) -> Iterator[str]:
    """`podium estimator serve` with the recorded clusters; where it listens."""
    port, health = free_ports(2)
    command = [sys.executable, "-m", "podium", "estimator", "serve", f"--cases={CASES}", "--bind-address=127.0.0.1"]
    command += [f"--server-port={port}", f"--health-probe-bind-address=127.0.0.1:{health}"]
    command += ["--metrics-bind-address=", "--logging-format=json"]
    server = ServerProcess("podium", [*command, *flags], directory / "podium.log")
    try:
        server.wait_ready(lambda: '"msg":"Serving estimates"' in server.log.read_text())
        yield f"127.0.0.1:{port}"
    finally:
        server.stop()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with _serving(tmp_path_factory.mktemp("plain")) as target:
        yield target


@pytest.fixture(scope="module")
def mutual(tmp_path_factory: pytest.TempPathFactory, tls: Tls) -> Iterator[str]:
    certificate, key = tls.server
    with _serving(
        tmp_path_factory.mktemp("mutual"),
        f"--grpc-auth-cert-file={certificate}",
        f"--grpc-auth-key-file={key}",
        f"--grpc-client-ca-file={tls.authority}",
    ) as target:
        yield target


Ask = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def ask(client_binary: Path) -> Ask:
    """Asks all questions, or as many as are told."""

    def ask_client(target: str, *flags: str, count: int = len(ROWS)) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [client_binary, f"-target={target}", *flags],
            input="\n".join(LINES.decode().splitlines()[:count]),
            capture_output=True,
            text=True,
            timeout=CLIENT_S_MAX,
            check=False,
        )

    return ask_client


def _with_certificate(tls: Tls) -> tuple[str, ...]:
    certificate, key = tls.client
    return f"-ca={tls.authority}", f"-cert={certificate}", f"-key={key}"


def _differing(answers: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Recorded and given answers that are not the same; Karmada's client wraps the texts of errors."""
    replies = [json.loads(line) for line in answers.splitlines()]
    pairs = []
    for row, answer in zip(ROWS, replies, strict=True):
        error_answer = {"id": row["id"]}
        error_answer |= {name: value for name, value in row["expect"].items() if not name.startswith("general_")}
        if error_answer != answer and not (
            "error" in error_answer and error_answer["error"] in answer.get("error", "")
        ):
            pairs.append((error_answer, answer))
    return pairs


@pytest.mark.parametrize("era", ["", "legacy", "bytes"])
def test_clients_of_every_era_get_the_recorded_answers(plain: str, ask: Ask, era: str) -> None:
    assert _differing(ask(plain, f"-era={era}").stdout) == []


def test_client_with_a_certificate_gets_the_recorded_answers(mutual: str, tls: Tls, ask: Ask) -> None:
    assert _differing(ask(mutual, *_with_certificate(tls)).stdout) == []


def test_client_without_a_certificate_is_refused(mutual: str, tls: Tls, ask: Ask) -> None:
    refusal = ask(mutual, f"-ca={tls.authority}", count=1)
    assert (refusal.returncode, refusal.stdout) == (CANNOT_DIAL, "")


def test_client_that_speaks_tls_1_2_at_most_is_refused(mutual: str, tls: Tls, ask: Ask) -> None:
    answer = json.loads(ask(mutual, *_with_certificate(tls), "-tls12", count=1).stdout)
    assert "authentication handshake failed" in answer["error"]

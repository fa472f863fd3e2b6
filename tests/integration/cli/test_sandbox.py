"""`podium sandbox` from the outside, and the example manifests on it."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import orjson
import pytest
import yaml

from tests.integration.cli.conftest import ROOT, Podium, Start, read_until
from tests.patience import PATIENCE_S

COLLECTIONS = {"Pod": "/api/v1/namespaces/default/pods", "Deployment": "/apis/apps/v1/namespaces/default/deployments"}


def call(url: str, body: Any = None) -> Any:
    data = None if body is None else orjson.dumps(body)
    with urlopen(Request(url, data, {"Content-Type": "application/json"}), timeout=PATIENCE_S) as answer:
        return orjson.loads(answer.read())


@pytest.fixture
def sandbox(start: Start, tmp_path: Path) -> tuple[subprocess.Popen[str], Path]:
    kubeconfig = tmp_path / "kubeconfig"
    process = start("sandbox", "--nodes", "3", "--write-kubeconfig", kubeconfig)
    read_until(process, ["Serving on"])
    return process, kubeconfig


def server_of(kubeconfig: Path) -> str:
    server: str = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    return server


def test_it_serves_what_its_kubeconfig_says_until_it_is_interrupted(
    sandbox: tuple[subprocess.Popen[str], Path],
) -> None:
    process, kubeconfig = sandbox
    assert kubeconfig.stat().st_mode & 0o077 == 0
    server = server_of(kubeconfig)
    assert server.startswith("http://127.0.0.1:")
    assert len(call(f"{server}/api/v1/nodes")["items"]) == 3
    process.send_signal(signal.SIGINT)
    log_text, complained = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert log_text.endswith("Stopped.\n")
    assert complained == ""


def test_a_port_that_is_taken_is_a_plain_message(sandbox: tuple[subprocess.Popen[str], Path], podium: Podium) -> None:
    port = server_of(sandbox[1]).rpartition(":")[2]
    result = podium("sandbox", "--port", port)
    assert result.returncode == 1
    assert f"cannot serve on port {port}" in result.stderr
    assert "Traceback" not in result.stderr


def await_pods(server: str, count: int) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while len(pods := call(server + COLLECTIONS["Pod"])["items"]) < count:
        assert time.monotonic() < ends_s, pods
        time.sleep(0.05)
    assert len(pods) == count


@pytest.mark.parametrize("file", sorted((ROOT / "examples/pods").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_example_manifest_gives_pods_that_ask_for_podium(
    sandbox: tuple[subprocess.Popen[str], Path], file: Path
) -> None:
    server = server_of(sandbox[1])
    for manifest in yaml.safe_load_all(file.read_text()):
        try:
            created_object = call(server + COLLECTIONS[manifest["kind"]], manifest)
        except HTTPError as error:
            pytest.fail(error.read().decode())
        spec = (
            created_object["spec"]["template"]["spec"]
            if created_object["kind"] == "Deployment"
            else created_object["spec"]
        )
        assert spec["schedulerName"] == "podium"
    await_pods(server, 3 if created_object["kind"] == "Deployment" else 1)
    assert len(file.read_text().splitlines()) < 60

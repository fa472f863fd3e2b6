"""Starting in bad circumstances: what the operator is told, and what podium does about it."""

from __future__ import annotations

import json
import re
import socket
from collections import Counter
from pathlib import Path

import pytest

from podium.sandbox import Sandbox
from tests.control_plane.client import Client, Json
from tests.control_plane.processes import free_ports
from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import Daemon, configuration
from tests.e2e.waiting import eventually
from tests.manifests import nodes, pods

pytestmark = pytest.mark.anyio

DOCS = Path(__file__).parents[2] / "docs"


async def test_an_api_server_that_cannot_be_reached_is_waited_for(tmp_path: Path, start: StartDaemon) -> None:
    later = Sandbox(free_ports(1)[0], kubelets=False)
    cluster = SandboxCluster(Client(later.url), later.write_kubeconfig(tmp_path / "kubeconfig"), later)
    daemon = await start(cluster, ready=False)

    async def tries() -> list[Json]:
        return [entry for entry in daemon.log() if entry["msg"] == "API server unreachable"]

    entry = (await eventually(tries))[0]
    assert (entry["level"], entry["server"]) == ("warning", later.url)
    assert entry["cause"] == "nothing listens at its address"
    assert "check that the API server runs" in entry["advice"]
    assert not [entry for entry in daemon.log() if "resource" in entry]

    async def readiness() -> tuple[int, str] | None:
        # podium has asked for the version before it serves anything.
        try:
            return await daemon.get("/readyz?verbose")
        except OSError:
            return None

    answer = await eventually(readiness)
    assert answer is not None
    status, text = answer
    assert (status, "[-]sched-handler-sync failed" in text) == (500, True)
    assert (await daemon.get("/livez"))[0] == (await daemon.get("/healthz"))[0] == 200
    async with later, cluster.admin:
        cluster.put(*nodes(2), *pods(5))
        await daemon.wait_ready()
        await cluster.wait_bound(f"web-{index}" for index in range(5))
        assert await daemon.stop() == 0


async def wait_refusal(daemon: Daemon) -> list[str]:
    """The errors that podium logs before it ends with 1; no traceback, and nothing that is not JSON, beside them."""
    assert await daemon.wait_ended() == 1
    output = daemon.output()
    assert "Traceback" not in output
    entries = [json.loads(line) for line in output.splitlines()]
    return [entry["error"] for entry in entries if entry["level"] == "critical"]


async def test_a_port_that_is_taken_is_named(sandbox_cluster: SandboxCluster, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        daemon = Daemon(tmp_path / "podium", sandbox_cluster.kubeconfig, port=port)
        (refusal,) = await wait_refusal(daemon)
    assert refusal.startswith(f"cannot listen on 127.0.0.1 port {port}: Address already in use; change --secure-port")


_NOT_A_URL = """
clusters: [{name: a, cluster: {server: nowhere}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
users: []
"""


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "no such file"),
        ("clusters: [", "did not find expected node content"),
        ("just text", "is not a mapping"),
        (_NOT_A_URL, "clusters[].cluster.server is not an http or https URL: 'nowhere'"),
        ("clusters: []\ncontexts: []\ncurrent-context: a\nusers: []\n", "contexts"),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used_is_named(tmp_path: Path, content: str | None, problem: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    if content is not None:
        kubeconfig.write_text(content)
    errors = "\n".join(await wait_refusal(Daemon(tmp_path / "podium", kubeconfig)))
    assert errors.startswith(f"kubeconfig {kubeconfig}: ")
    assert problem in errors


async def test_every_error_of_a_configuration_is_printed_at_once(tmp_path: Path) -> None:
    config = configuration(parallelism=-1, podInitialBackoffSeconds=0, noSuchField=True)
    config["profiles"] = [{"schedulerName": "podium", "plugins": {"score": {"enabled": [{"nam": "X"}]}}}]
    lines = await wait_refusal(Daemon(tmp_path / "podium", tmp_path / "kubeconfig", config))
    for field in ("noSuchField", "profiles[0].plugins.score.enabled[0].nam"):
        assert [line for line in lines if field in line], lines


async def test_every_invalid_value_of_a_configuration_is_printed_at_once(tmp_path: Path) -> None:
    config = configuration(parallelism=-1, podInitialBackoffSeconds=0, percentageOfNodesToScore=101)
    config["profiles"] *= 2
    lines = await wait_refusal(Daemon(tmp_path / "podium", tmp_path / "kubeconfig", config))
    for field in ("parallelism", "podInitialBackoffSeconds", "percentageOfNodesToScore", "profiles[1].schedulerName"):
        assert [line for line in lines if field in line], lines


async def test_no_log_level_prints_credentials(tmp_path: Path, start: StartDaemon) -> None:
    token = "a-token-that-nobody-may-see"
    async with Sandbox(token=token, kubelets=False) as sandbox, Client(sandbox.url, token=token) as admin:
        kubeconfig = sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        cluster = SandboxCluster(admin, kubeconfig, sandbox)
        connection = {"kubeconfig": str(kubeconfig)}
        daemon = await start(cluster, configuration() | {"clientConnection": connection}, flags=("-v", "10"))
        tainted = {**nodes(1)[0], "metadata": {"name": "tainted"}}
        tainted["spec"] = {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}
        await cluster.create(*nodes(2), tainted, *pods(5))
        await cluster.wait_bound(f"web-{index}" for index in range(5))
        for path in ("/metrics", "/configz", "/debug/queue"):
            status, text = await daemon.get(path)
            assert (status, token in text) == (200, False)
            assert (await daemon.get(path, token="another-secret"))[0] == 401
        # Lines of libraries, and of the tokens that were turned down: the log is as talkative as it gets.
        refusal = ("serving", "Unable to authenticate the request")

        async def three_refusals() -> Counter[tuple[str, str]] | None:
            logged = Counter((entry["component"], entry["msg"]) for entry in daemon.log())
            return logged if logged[refusal] == 3 else None

        logged = await eventually(three_refusals)
        assert {"scheduler", "serving"} <= {component for component, _ in logged}
        verbose = re.findall(r"^\| (?:4|6|10) \| (.*) \|$", (DOCS / "operations.md").read_text(), re.MULTILINE)
        promised = {message for row in verbose for message in re.findall(r"`([^`]+)`", row)}
        assert len(promised) == 6
        # No extender is configured here.
        assert promised - {"Extender scored node for pod"} <= {message for _, message in logged}
        assert token not in daemon.output()
        assert "another-secret" not in daemon.output()


async def test_flags_that_make_no_sense_are_refused(sandbox_cluster: SandboxCluster, tmp_path: Path) -> None:
    daemon = Daemon(tmp_path / "podium", sandbox_cluster.kubeconfig, flags=("--tls-cert-file", "/no/such/file"))
    [line, *_] = await wait_refusal(daemon)
    assert "/no/such/file" in line or "--tls-private-key-file" in line

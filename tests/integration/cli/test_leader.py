"""`podium why` and `podium outlook` with a kubeconfig alone: the leader is found by its Lease and asked by a forwarded
port.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web
from anyio.from_thread import start_blocking_portal
from click.testing import Result
from structlog.testing import capture_logs

from podium.config import RELEASES, configz, default_gates, load
from podium.sandbox import Sandbox
from podium.server.serving.server import Pages
from tests.integration.cli.served import TOKEN, podium_with
from tests.manifests import node, pod
from tests.port_forward import forward
from tests.unit.cli.commands import run, write_objects
from tests.unit.daemon.recorded_attempts import flight_recorder, recorder_pages
from tests.unit.queues.builders import QueueBench, Rejecter

SPREADING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: podium}, {schedulerName: podium-batch}]
"""
Json = dict[str, Any]


@dataclass
class Cluster:
    """A sandbox whose pod kube-system/podium-0 is a podium, and what happens to ports that are forwarded to it.

    Attributes:
        forwarded_to: the port that the pod's port leads to; a code of HTTP below 1000 refuses to forward.
    """

    sandbox: Sandbox
    kubeconfig: Path
    forwarded_to: int = 0
    shows_configuration: bool = True
    decides_as: str = "1.37"

    def configz(self) -> Mapping[str, Any]:
        if not self.shows_configuration:
            return {}
        gates = default_gates(RELEASES[self.decides_as])
        return {**configz(load(SPREADING, "config", gates=gates).config), "decidesAs": self.decides_as}

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if not request.path.endswith("/pods/podium-0/portforward"):
            return await self.sandbox._api.handle(request)
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        assert request.query["ports"] == "443"
        if self.forwarded_to < 1000:
            return web.Response(status=self.forwarded_to)
        return await forward(request, self.forwarded_to)

    def why(self, *arguments: str) -> Result:
        return run("why", *arguments, "--kubeconfig", self.kubeconfig)

    def outlook(self, *arguments: str) -> Result:
        return run("outlook", *arguments, "--kubeconfig", self.kubeconfig)


def lease(holder: str, name: str = "podium") -> Json:
    meta = {"name": name, "namespace": "kube-system"}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": meta,
        "spec": {"holderIdentity": holder},
    }


def objects() -> list[tuple[str, Json]]:
    leader = pod("podium-0", node="n0")
    leader["metadata"]["namespace"] = "kube-system"
    leader["spec"]["containers"][0]["ports"] = [{"name": "https", "containerPort": 443}]
    big = pod("big", "64")
    big["metadata"]["namespace"] = "shop"
    return [
        ("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", lease("podium-0_c0ffee")),
        ("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", lease("laptop_c0ffee", "elsewhere")),
        ("/api/v1/namespaces", {"metadata": {"name": "shop"}}),
        ("/api/v1/namespaces/kube-system/pods", leader),
        ("/api/v1/namespaces/shop/pods", big),
        ("/api/v1/namespaces/default/pods", pod("late", "1", scheduler="podium-bach")),
        ("/api/v1/nodes", node("n0", "2")),
    ]


@contextlib.asynccontextmanager
async def serve(pages: Pages, directory: Path) -> AsyncIterator[Cluster]:
    async with Sandbox(token=TOKEN, kubelets=False) as sandbox:
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as admin:
            for path, item in objects():
                async with admin.post(sandbox.url + path, json=item) as answer:
                    assert answer.status == 201, await answer.text()
        cluster = Cluster(sandbox, directory / "forwarding")
        runner = web.ServerRunner(web.Server(cluster.handle))
        await runner.setup()
        listener = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(runner, listener).start()
        config = sandbox.kubeconfig()
        config["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{listener.getsockname()[1]}"
        cluster.kubeconfig.write_text(yaml.safe_dump(config))
        try:
            async with podium_with(pages, directory, cluster.configz, sandbox) as port:
                cluster.forwarded_to = port
                yield cluster
        finally:
            await runner.cleanup()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    bench = QueueBench(Rejecter("NodeResourcesFit"))
    pages = recorder_pages(flight_recorder(), bench, profiles=("podium", "podium-batch")).pages
    with capture_logs(), start_blocking_portal() as portal, contextlib.ExitStack() as stack:
        yield stack.enter_context(portal.wrap_async_context_manager(serve(pages, tmp_path)))


def lines(result: Result) -> list[str]:
    assert (result.exit_code, result.stderr) == (0, "")
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_a_pod_is_in_the_namespace_of_the_context_or_where_it_alone_has_the_name(cluster: Cluster) -> None:
    long_form = lines(cluster.why("big", "-n", "shop"))
    # Nothing else has the name; the leader is asked again, as it has to know where it is.
    assert lines(cluster.why("big")) == long_form
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = "shop"
    cluster.kubeconfig.write_text(yaml.safe_dump(config))
    assert lines(cluster.why("big")) == long_form
    assert "default/late fits on 1 of 1 nodes" in cluster.why("late", "-n", "default").stdout
    result = cluster.why("big", "-n", "default")
    assert (result.exit_code, "there is no pod default/big" in result.stderr) == (1, True)


def test_the_leader_is_asked_without_any_flag_and_the_nodes_are_judged_by_its_configuration(cluster: Cluster) -> None:
    output_lines = lines(cluster.why("big", "-n", "shop"))
    assert output_lines[:2] == ["shop/big is pending", "Told by kube-system/podium-0, the running podium that leads"]
    assert any(line.startswith("It was not scheduled: 0/3 nodes are available: ") for line in output_lines)
    assert "Answered by the profile podium of the running podium (kube-system/podium-0)" in output_lines
    assert "1 NodeResourcesFit Insufficient cpu: requests 64, at most 1.9 free (n0) n0" in output_lines
    answer = json.loads(cluster.why("shop/big", "-o", "json").stdout)
    assert (answer["running"]["asked"], answer["running"]["attempts"][0]["name"]) == ("kube-system/podium-0", "big")
    assert answer["scheduler"]["own"]
    assert cluster.why("shop/big", "--exit-code").exit_code == 3


@pytest.mark.parametrize(("flags", "minor"), [((), "1.36"), (("--decide-as", "1.37"), "1.37")])
def test_the_minor_of_the_leader_decides_unless_another_one_is_named(
    cluster: Cluster, flags: tuple[str, ...], minor: str
) -> None:
    cluster.decides_as = "1.36"
    result = cluster.why("shop/big", "--fix", "-o", "json", *flags)
    assert json.loads(result.stdout)["decidesAs"] == minor
    assert result.stderr == f"deciding as kube-scheduler {minor}: the running podium does\n" * (not flags)


def test_a_leader_that_does_not_show_its_configuration_answers_alone(cluster: Cluster) -> None:
    cluster.shows_configuration = False
    output_lines = lines(cluster.why("big", "-n", "shop"))
    assert output_lines[1] == "Told by kube-system/podium-0, the running podium that leads"
    assert "2 NodeResourcesFit Insufficient cpu n0, n2" in output_lines
    answer = json.loads(cluster.why("shop/big", "-o", "json").stdout)
    assert (answer["asked"], answer["attempts"][0]["name"]) == ("kube-system/podium-0", "big")
    assert cluster.why("shop/big", "--exit-code").exit_code == 3
    assert (
        "Answered by kube-scheduler's default profile, as the running podium does not show"
        in cluster.why("shop/big", "--fix").stdout
    )


def test_fixes_are_by_the_configuration_of_the_leader(cluster: Cluster) -> None:
    output_lines = lines(cluster.why("shop/big", "--fix"))
    assert "Answered by the profile podium of the running podium (kube-system/podium-0)" in output_lines
    assert "lower the request for cpu from 64 to 1900m → n0" in output_lines


def test_a_pod_that_the_leader_does_not_serve_is_reported_first(cluster: Cluster) -> None:
    output_lines = lines(cluster.why("late"))
    assert output_lines[0] == (
        "No profile serves spec.schedulerName podium-bach: nothing schedules it; did you mean podium-batch?"
    )
    assert (
        output_lines[1] == "If the pod were for the profile podium-batch of the running podium (kube-system/podium-0):"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--lease", "kube-system/none"],
            "there is no Lease kube-system/none; name podium's with --lease (with --as-default",
        ),
        (["--lease", "kube-system/elsewhere"], "laptop holds the Lease kube-system/elsewhere, but is not a pod"),
        (["--lease", ""], "nothing says which one is used"),
        (["--lease", "podium"], "is not NAMESPACE/NAME"),
    ],
)
def test_without_a_leader_the_answer_names_the_profile_and_why(
    cluster: Cluster, flags: list[str], message: str
) -> None:
    result = cluster.why("shop/big", *flags)
    output = " ".join((result.stdout + result.stderr).split())
    assert message in output
    if result.exit_code != 2:
        assert "Answered by kube-scheduler's default profile, as " in output


@pytest.mark.parametrize(
    ("port", "message"),
    [
        (403, "this user may not use pods/portforward of kube-system/podium-0"),
        (404, "kube-system/podium-0 cannot be asked"),
        (500, "kube-system/podium-0 cannot be asked"),
        (65535, "error forwarding port 65535"),
    ],
)
def test_a_leader_that_cannot_be_asked_is_named_with_the_reason(cluster: Cluster, port: int, message: str) -> None:
    cluster.forwarded_to = port
    output = " ".join(cluster.why("shop/big").stdout.split())
    assert "shop/big fits on no node" in output
    assert message in output


def test_an_outlook_is_by_the_configuration_of_the_leader_and_begins_with_its_queue(cluster: Cluster) -> None:
    result = cluster.outlook("big")
    assert result.stderr == ""
    story, answer = result.stdout.splitlines()[:2]
    assert story.startswith("kube-system/podium-0: shop/big is not in its queue, after attempt ")
    assert answer.startswith("shop/big: never")
    fields = json.loads(cluster.outlook("shop/big", "-o", "json").stdout)
    assert (fields["leader"]["asked"], fields["leader"]["queue"]) == ("kube-system/podium-0", None)
    # The leader's profiles are the only ones.
    result = cluster.outlook("late", "-n", "default")
    assert (result.exit_code, "no profile is named 'podium-bach'" in result.stderr) == (1, True)


def test_an_outlook_of_pods_of_a_file_is_by_the_configuration_of_the_leader(cluster: Cluster, tmp_path: Path) -> None:
    new = write_objects(tmp_path / "new.yaml", pod("new", "1", scheduler="podium-batch"))
    result = cluster.outlook(str(new))
    assert (result.stderr, result.stdout.splitlines()[0]) == ("", "default/new: now, on n0")
    strange = write_objects(tmp_path / "strange.yaml", pod("new", "1", scheduler="strange"))
    assert "no profile is named 'strange'" in cluster.outlook(str(strange)).stderr


@pytest.mark.parametrize(
    ("flags", "port", "message"),
    [
        (["--lease", "kube-system/none"], 0, "there is no Lease kube-system/none"),
        ([], 403, "this user may not use pods/portforward of kube-system/podium-0"),
    ],
)
def test_without_the_leader_an_outlook_is_computed_from_the_cluster_alone_and_says_why(
    cluster: Cluster, flags: list[str], port: int, message: str
) -> None:
    cluster.forwarded_to = port or cluster.forwarded_to
    result = cluster.outlook("shop/big", *flags)
    assert result.stdout.startswith("shop/big: never")
    assert f"computed from the cluster alone: the running podium was not asked: {message}" in result.stderr
    result = cluster.outlook("shop/big", "--lease", "")
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_pod_that_the_leader_does_not_know_is_judged_anew(cluster: Cluster) -> None:
    result = cluster.why("podium-0", "-n", "kube-system")
    assert "kube-system/podium-0 is on n0" in result.stdout

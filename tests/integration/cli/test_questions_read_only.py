"""Questions about a running cluster, also those of the library, write nothing and read no Secrets."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web
from anyio.from_thread import start_blocking_portal
from structlog.testing import capture_logs

import podium
from podium.engine import ClusterError
from podium.sandbox import Sandbox
from podium.sandbox.server import ApiServer
from tests.gang_manifests import COSCHEDULING, UPSTREAM, group, member
from tests.manifests import node, pod
from tests.unit.cli.commands import run, write_objects

GANGS = (COSCHEDULING, "train"), (UPSTREAM, "tune")
REQUESTS: list[tuple[str, str]] = []
REFUSED: set[str] = set()
"""The plurals of kinds that the user may not list."""
SERVED: dict[str, list[Any]] = {}
"""The NodePools that the sandbox does not serve by itself, by path."""
NODE_POOLS = "/apis/karpenter.sh/v1/nodepools"


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """That of a cluster with a node and two pods; the requests that it gets are in REQUESTS."""
    REQUESTS.clear()
    REFUSED.clear()
    SERVED.clear()
    answer = ApiServer.handle

    async def note_and_answer(self: ApiServer, request: Any) -> web.StreamResponse:
        REQUESTS.append((request.method, request.path))
        if request.path.rpartition("/")[2] in REFUSED:
            return web.json_response({"kind": "Status", "code": 403, "reason": "Forbidden"}, status=403)
        if request.path in SERVED:
            type_meta = {"apiVersion": "karpenter.sh/v1", "kind": "NodePoolList"}
            return web.json_response({**type_meta, "metadata": {}, "items": SERVED[request.path]})
        return await answer(self, request)

    monkeypatch.setattr(ApiServer, "handle", note_and_answer)
    with capture_logs(), start_blocking_portal() as portal, contextlib.ExitStack() as stack:

        async def fill() -> None:
            gangs = (group(kind, 2, name) for kind, name in GANGS)
            pods = (member(kind, f"{name}-0", name, cpu="9") for kind, name in GANGS)
            for item in (node("n1", "2"), pod("web", node="n1"), pod("big", "9"), *gangs, *pods):
                sandbox.store.create(item)

        sandbox = Sandbox(kubelets=False)
        stack.enter_context(portal.wrap_async_context_manager(sandbox))
        portal.call(fill)
        yield sandbox.write_kubeconfig(tmp_path / "kubeconfig")


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (["why", "web"], "default/web is on n1"),
        (["why", "big", "--fix"], "default/big fits after one edit"),
        (["why", "train-0"], "only 1 of the 2 pods that it needs exist"),
        (["why", "tune-0"], "only 1 of the 2 pods that it needs exist"),
        (["what-if", "--drain", "n1"], "web"),
        (["make-room", "--for", "default/big"], "no set of moves makes room for default/big (proven; 1 node"),
        (["what-if", "--scale", "default/ReplicaSet/web=3"], "there is no workload"),
        (["capacity", "--pod", "pod.yaml", "--explain"], "n1"),
    ],
)
def test_a_question_reads_what_it_needs_and_writes_nothing(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_objects(tmp_path / "pod.yaml", pod("new", "1"))
    result = run(*question, "--kubeconfig", kubeconfig)
    assert message in result.stdout + result.stderr
    assert ("GET", "/api/v1/nodes") in REQUESTS
    assert {method for method, _ in REQUESTS} == {"GET"}
    assert not [path for _, path in REQUESTS if "secret" in path]


def test_the_library_loads_a_running_cluster_from_its_kubeconfig(kubeconfig: Path) -> None:
    cluster = podium.Cluster.load(kubeconfig)
    assert [node.name for node in cluster.nodes] == ["n1"]
    assert cluster.capacity(pod("new", "1", scheduler="default-scheduler")).fits == 1
    assert {method for method, _ in REQUESTS} == {"GET"}
    assert not [path for _, path in REQUESTS if "secret" in path]


def test_the_library_loads_a_running_cluster_in_a_notebook(kubeconfig: Path) -> None:
    async def cell() -> list[str]:
        return [pod.metadata.name for pod in podium.Cluster.load(str(kubeconfig), context="podium-sandbox").pods]

    assert sorted(anyio.run(cell)) == ["big", "train-0", "tune-0", "web"]


def node_pool(name: str) -> Any:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}}}


def test_the_library_plans_with_the_node_pools_of_a_running_cluster(kubeconfig: Path) -> None:
    SERVED[NODE_POOLS] = [node_pool("general")]
    plan = podium.Cluster.load(kubeconfig).plan(assume_unschedulable=True).as_dict()
    assert [new_node["pool"] for new_node in plan["new_nodes"]] == ["general"] * len(plan["new_nodes"])
    assert plan["new_nodes"]


@pytest.mark.parametrize("is_refused", [True, False])
def test_a_cluster_without_node_pools_or_the_right_to_list_them_is_loaded(
    kubeconfig: Path, *, is_refused: bool
) -> None:
    if is_refused:
        SERVED[NODE_POOLS] = [node_pool("general")]
        REFUSED.update({"nodepools", "nodeclaims"})
    cluster = podium.Cluster.load(kubeconfig)
    assert [node.name for node in cluster.nodes] == ["n1"]
    with pytest.raises(ClusterError, match="there are no NodePools"):
        cluster.plan()


def test_pod_groups_that_the_user_may_not_list_are_left_out(kubeconfig: Path) -> None:
    REFUSED.add("podgroups")
    result = run("why", "train-0", "--kubeconfig", kubeconfig)
    assert "neither a PodGroup default/train nor an annotation of the pod says" in result.stdout


def test_a_running_cluster_that_the_library_cannot_load_is_named_with_advice(kubeconfig: Path) -> None:
    with pytest.raises(ClusterError, match="other"):
        podium.Cluster.load(kubeconfig, context="other")
    text = kubeconfig.read_text()
    kubeconfig.write_text(re.sub(r"https?://\S+", "http://127.0.0.1:1", text))
    with pytest.raises(ClusterError, match=r"127\.0\.0\.1:1: nothing listens at its address: check"):
        podium.Cluster.load(kubeconfig)

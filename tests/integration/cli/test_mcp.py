"""`podium mcp`, asked by the protocol's own client: over pipes as a process, and within this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from podium.cli.mcp_server import server_of
from podium.cli.mcp_source import ClusterSource
from podium.cli.mcp_tools import Tools
from podium.config import default_configuration
from podium.plugins import IN_TREE
from podium.sandbox import Sandbox
from podium.sandbox.server import ApiServer
from tests.lifeline import PASSED, guard
from tests.manifests import Json, node, pod
from tests.patience import PATIENCE_S
from tests.unit.cli.commands import write_objects

pytestmark = pytest.mark.anyio
READ_ONLY_VERBS = {"GET"}
NEW = pod("new", "1")
QUESTIONS: list[tuple[str, Json]] = [
    ("why", {"pod": "default/big", "node": "n1"}),
    ("fixes", {"pod": "default/big", "count": 2}),
    ("what_if", {"steps": [{"drain": "n1"}, {"apply": NEW}]}),
    ("capacity", {"pod": NEW}),
    ("outlook", {"pod": "big"}),
    ("make_room", {"pod": "default/big"}),
    ("plan", {"adopt_nodes": True, "assume_unschedulable": True}),
    ("queue", {"count": 5}),
]
OBJECTS = [node("n1", "2"), pod("web", node="n1"), pod("big", "9")]


def tools_for(files: list[str], kubeconfig: str | None = None, bytes_max: int = 60_000) -> Tools:
    source = ClusterSource(files, (kubeconfig, None), default_configuration(), IN_TREE, any_scheduler=True)
    return Tools(source, 30.0, bytes_max)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    return str(write_objects(tmp_path / "cluster.yaml", *OBJECTS))


async def test_the_official_client_lists_the_tools_of_a_process_and_asks_each(dump: str) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "podium", "mcp", "-f", dump], env=dict(os.environ)
    )
    with anyio.fail_after(PATIENCE_S):
        async with Client(parameters) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == [name for name, _ in QUESTIONS]
            assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
            assert all(tool.description for tool in tools)
            for name, arguments in QUESTIONS:
                result = await client.call_tool(name, arguments)
                assert not result.is_error, (name, result.content)
                assert isinstance(result.structured_content, dict)
                assert "at" in result.structured_content


async def test_no_tool_sends_a_verb_that_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verbs: set[str] = set()
    answer = ApiServer.handle

    async def note_and_answer(self: ApiServer, request: Any) -> Any:
        verbs.add(request.method)
        return await answer(self, request)

    monkeypatch.setattr(ApiServer, "handle", note_and_answer)
    async with Sandbox(kubelets=False) as sandbox:
        for manifest in OBJECTS:
            sandbox.store.create(manifest)
        kubeconfig = str(sandbox.write_kubeconfig(tmp_path / "kubeconfig"))
        objects = sandbox.store.list("pods"), sandbox.store.list("nodes")
        async with Client(server_of(tools_for([], kubeconfig))) as client:
            for name, arguments in QUESTIONS:
                result = await client.call_tool(name, arguments)
                assert not result.is_error, (name, result.content)
        assert (sandbox.store.list("pods"), sandbox.store.list("nodes")) == objects
    assert verbs == READ_ONLY_VERBS


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("why", {}, "pod"),
        ("why", {"pod": 3}, "pod"),
        ("why", {"pod": "default/bgi"}, "pod: there is no pod default/bgi"),
        ("why", {"pod": "x" * 100_000}, "pod: there is no pod default/xxx"),
        ("why", {"pod": "default/big", "node": "n9"}, "node: there is no node n9"),
        ("why", {"pod": "default/big", "nodes": "n1"}, "nodes"),
        ("fixes", {"pod": "default/big", "count": 99}, "count"),
        ("what_if", {"steps": []}, "steps"),
        ("what_if", {"steps": [{"explode": "n1"}]}, "steps: steps[0]"),
        ("what_if", {"steps": [{"apply": "/etc/passwd"}]}, "apply: expected a manifest"),
        ("what_if", {"steps": [{"config": "/etc/passwd"}]}, "steps: steps[0]"),
        ("capacity", {"pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {}}}, "metadata.name"),
        ("outlook", {"pod": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}}, "pod: "),
        ("make_room", {"pod": "default/bgi"}, "pod: there is no pod and no gang default/bgi"),
        ("plan", {"rules": "mine"}, "rules"),
        ("queue", {"count": 0}, "count"),
    ],
)
async def test_an_error_names_the_argument(dump: str, tool: str, arguments: Json, message: str) -> None:
    async with Client(server_of(tools_for([dump]))) as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert message in result.content[0].text
    assert len(result.content[0].text) < 10_000


async def test_a_pod_that_names_no_scheduler_is_answered_whatever_schedulers_the_cluster_has(dump: str) -> None:
    nameless = pod("nameless", "100m", scheduler=None)
    async with Client(server_of(tools_for([dump]))) as client:
        answer = await client.call_tool("outlook", {"pod": nameless})
        assert answer.structured_content is not None
        assert answer.structured_content["pods"][0]["verdict"] == "now"
        answer = await client.call_tool("outlook", {"pod": pod("misspelt", "100m", scheduler="podiumm")})
        assert answer.is_error
        assert "spec.schedulerName: no profile is named 'podiumm'" in answer.content[0].text


async def test_a_large_answer_is_cut_and_says_so(tmp_path: Path) -> None:
    nodes = [node(f"node-{index}", "1") for index in range(300)]
    name = str(write_objects(tmp_path / "cluster.yaml", *nodes, pod("big", "9")))
    async with Client(server_of(tools_for([name], bytes_max=4000))) as client:
        answer = (await client.call_tool("why", {"pod": "big"})).structured_content
    assert answer is not None
    assert len(json.dumps(answer)) < 6000
    assert answer["cut"]["totals"]


async def test_broken_objects_are_named_and_the_rest_is_answered(tmp_path: Path) -> None:
    unreadable = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "bad"},
        "status": {"allocatable": {"cpu": "x"}},
    }
    name = str(write_objects(tmp_path / "cluster.yaml", *OBJECTS, unreadable))
    async with Client(server_of(tools_for([name]))) as client:
        answer = (await client.call_tool("outlook", {"pod": "big"})).structured_content
    assert answer is not None
    assert "bad" in answer["broken"][0]


@pytest.mark.parametrize("ending", ["at once", "amid a question"])
def test_the_process_ends_with_its_standard_input(dump: str, ending: str) -> None:
    process = subprocess.Popen(
        guard([sys.executable, "-m", "podium", "mcp", "-f", dump]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=PASSED,
    )
    assert process.stdin is not None
    if ending == "amid a question":
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    process.stdin.close()
    assert process.wait(PATIENCE_S) in (0, -9)
    assert process.stdout is not None
    process.stdout.close()

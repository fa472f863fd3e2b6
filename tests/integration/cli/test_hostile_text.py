"""Whatever a dump, a recording or a server says, no command prints what a terminal obeys, or a line not its own."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from podium.cli.exit_codes import EXIT_FAILED, EXIT_NO
from podium.cli.main import main
from podium.recording.entries import DECIDED, Decision
from tests.unit.cli.commands import write_objects
from tests.unit.cli.test_replay import complete, write_recording
from tests.unit.recording.contents import content_of

FORGED = "FORGED:addtherule"
HOSTILE = f"\x1b]0;title\x07\x1b[2J\x9b31m\u202e\u2066\u2028\x85\x7f\r\n{FORGED}\t[bold]x[/bold] :smile:"
BATCH = 12
_ZONE = "topology.kubernetes.io/zone"
_OBJECTS: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n1",
            "uid": "u1",
            "labels": {_ZONE: "a", "team": "web", "kubernetes.io/hostname": "n1"},
            "annotations": {"note": "x"},
        },
        "spec": {"taints": [{"key": "for", "value": "team", "effect": "PreferNoSchedule"}], "providerID": "kwok://n1"},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/gpu": "1"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "fine"}],
            "images": [{"names": ["web:1"], "sizeBytes": 5}],
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-1",
            "namespace": "default",
            "uid": "u2",
            "labels": {"app": "web"},
            "annotations": {"note": "x"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
            ],
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "nodeName": "n1",
            "nodeSelector": {"team": "web"},
            "tolerations": [{"key": "for", "operator": "Equal", "value": "team", "effect": "NoSchedule"}],
            "containers": [
                {
                    "name": "app",
                    "image": "web:1",
                    "resources": {"requests": {"cpu": "1", "example.com/gpu": "1"}},
                    "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP", "hostIP": "127.0.0.1"}],
                }
            ],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            "priorityClassName": "high",
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "PodScheduled", "status": "True", "reason": "x", "message": "x"}],
        },
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "uid": "u3"},
        "spec": {"storageClassName": "fast", "volumeName": "pv", "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Bound"},
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default", "uid": "u4"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": "50%"},
        "status": {"disruptionsAllowed": 0},
    },
]
_POD = copy.deepcopy(_OBJECTS[1])
_POD["metadata"] |= {"name": "web-2", "uid": "u9"}
del _POD["spec"]["nodeName"]
_COMMANDS = [
    "evaluate -f {f} --pod pod.yaml",
    "evaluate -f cluster.yaml --pod {f1}",
    "why web-2 -f {f} --fix",
    "why web-1 -f {f} --node n1",
    "why nothing -f {f}",
    "what-if -f {f} --drain n1",
    "what-if -f {f} --scale default/ReplicaSet/web=3",
    "what-if -f cluster.yaml --apply {f}",
    "capacity -f {f} --pod pod.yaml --explain",
    "capacity -f {f} --pod pod.yaml --headroom 2",
    "plan -f {f} --adopt-nodes --add pod.yaml --assume-unschedulable",
    "consolidate -f {f} --adopt-nodes",
    "estimate -f {f} --requests cpu=1 --explain",
    "estimate -f {f} --workload pod.yaml --mode accurate",
    "estimate -f cluster.yaml --workload {f1}",
]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all texts, keys of maps among them."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key, None)
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from leaves(item, (*path, at))
    elif isinstance(value, str):
        yield path


def with_hostile(item: Any, path: tuple[Any, ...]) -> Any:
    """A copy that is hostile in that place."""
    hostile_item = copy.deepcopy(item)
    within = hostile_item
    if path[-1] is None:
        *way, last = path[:-1]
        for part in way:
            within = within[part]
        within[last + HOSTILE] = within.pop(last)
        return hostile_item
    *way, last = path
    for part in way:
        within = within[part]
    within[last] += HOSTILE
    return hostile_item


HOSTILE_OBJECTS = [with_hostile(item, path) for item in (*_OBJECTS, _POD) for path in leaves(item)]


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def assert_harmless(result: Result) -> None:
    """Nothing but the layout's line breaks is unprintable, and no line begins with the forged words."""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    for printed in (result.stdout_bytes.decode(), result.stderr_bytes.decode()):
        text = printed.replace("\n", "")
        assert text.isprintable(), [character for character in text if not character.isprintable()]
        assert not any(line.strip().startswith(FORGED) for line in printed.split("\n")), printed


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_objects(tmp_path / "cluster.yaml", *_OBJECTS)
    write_objects(tmp_path / "pod.yaml", _POD)


@pytest.mark.parametrize("output", ["text", "json", "yaml"])
@pytest.mark.parametrize("command", _COMMANDS)
def test_a_hostile_dump_moves_no_cursor_and_forges_no_line(command: str, output: str, tmp_path: Path) -> None:
    step = BATCH if output == "text" else 4 * BATCH
    for begin in range(0, len(HOSTILE_OBJECTS), step):
        objects_chosen = HOSTILE_OBJECTS[begin : begin + step]
        write_objects(tmp_path / "hostile.yaml", *_OBJECTS, _POD, *objects_chosen)
        write_objects(tmp_path / "one.yaml", objects_chosen[0])
        result = invoke(*command.format(f="hostile.yaml", f1="one.yaml").split(), "-o", output)
        assert_harmless(result)
        if result.exit_code == 0 and output == "json":
            for line in result.stdout.splitlines():
                json.loads(line)
        elif result.exit_code == 0 and output == "yaml":
            yaml.safe_load(result.stdout)


@pytest.mark.parametrize("name", ["no\x1b[2Jde", "n\u202e1", f"n1\n{FORGED}"])
@pytest.mark.parametrize(
    "command",
    [
        "why {} -f cluster.yaml",
        "why web-1 -f cluster.yaml --node {}",
        "what-if -f cluster.yaml --drain {}",
        "what-if -f cluster.yaml --scale {}",
        "consolidate -f cluster.yaml --adopt-nodes --why {}",
        "plan -f cluster.yaml --adopt-nodes --why {}",
        "evaluate -f {} --pod pod.yaml",
        "replay {}",
        "replay x --until {}",
        "diff {} {}",
        "sweep {} --grid A=1",
        "sweep x --grid {}",
        "why x -f cluster.yaml --plugin {}",
        "why x --url {}",
        "config check {}",
        "config {}",
        "run --feature-gates {}",
        "estimate -f cluster.yaml --requests {}",
        "estimate -f cluster.yaml --feature-gates {}",
        "doctor --kubeconfig {}",
        "record --kubeconfig {} x",
        "shadow --kubeconfig {}",
        "{}",
        "--{}",
        "why --{}",
        "version -o {}",
        "completion {}",
    ],
)
def test_what_the_command_line_quotes_is_escaped(command: str, name: str) -> None:
    result = invoke(*(part.format(name) for part in command.split()))
    assert result.exit_code != 0
    assert_harmless(result)


def _decision(node: str, pod: str = f"default/web{HOSTILE}") -> bytes:
    return content_of((DECIDED, Decision("u", pod, "Suggested", node, 1, 1, 0, HOSTILE, (HOSTILE,))))


@pytest.mark.parametrize("output", ["text", "json", "yaml"])
@pytest.mark.parametrize(
    "command", ["replay one", "replay one --counterfactual", "diff one two", "sweep one --grid A=1"]
)
def test_a_hostile_recording_moves_no_cursor_and_forges_no_line(command: str, output: str, tmp_path: Path) -> None:
    for name, node in (("one", f"n1{HOSTILE}"), ("two", f"n2{HOSTILE}")):
        write_recording(tmp_path / name, complete() | {"commit": HOSTILE}, _decision(node))
    assert_harmless(invoke(*command.split(), "-o", output))


@pytest.mark.parametrize(
    "change",
    [
        {"podium": HOSTILE},
        {"plugins": [f"{HOSTILE}:A"]},
        {"plugins": HOSTILE},
        {"feature_gates": [HOSTILE]},
        {"config": {"apiVersion": HOSTILE, "kind": HOSTILE, HOSTILE: 1}},
        {"config": {"profiles": [{"schedulerName": HOSTILE, "plugins": {"score": {"enabled": [{"name": HOSTILE}]}}}]}},
        {"options": {HOSTILE: HOSTILE}},
    ],
)
@pytest.mark.parametrize(
    "command", ["replay one", "diff one two", "sweep one --grid A=1", "replay one --counterfactual"]
)
def test_a_hostile_description_moves_no_cursor_and_forges_no_line(
    command: str, change: dict[str, Any], tmp_path: Path
) -> None:
    write_recording(tmp_path / "one", complete() | change, _decision("n1"))
    write_recording(tmp_path / "two", complete(), _decision("n2"))
    assert_harmless(invoke(*command.split()))


def test_a_page_holds_nothing_unprintable(tmp_path: Path) -> None:
    for name, node in (("one", f"n1{HOSTILE}"), ("two", f"n2{HOSTILE}")):
        write_recording(tmp_path / name, complete(), _decision(node))
    assert invoke("diff", "one", "two", "--html", "page.html").exit_code == 3
    page = (tmp_path / "page.html").read_text()
    assert FORGED in page
    assert page.replace("\n", "").isprintable()
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert all(text.isprintable() for text in _texts(data))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value


# ---------------------------------------------------------------- servers


class _HostileServer(BaseHTTPRequestHandler):
    """Answers every request with an error whose every text is hostile."""

    code, reason = 403, "Forbidden"

    def do_GET(self) -> None:
        status = {"kind": "Status", "code": self.code, "reason": self.reason, "message": f"no{HOSTILE}"}
        body = json.dumps(status).encode()
        self.send_response(self.code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(
    params=[(403, "Forbidden"), (404, "NotFound"), (422, HOSTILE), (500, "InternalError"), (401, "Unauthorized")]
)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    handler = type("Handler", (_HostileServer,), dict(zip(("code", "reason"), request.param, strict=True)))
    listening = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listening.server_address[1]}"
    kubeconfig = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
        "current-context": "c",
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig))
    yield url
    listening.shutdown()
    listening.server_close()
    thread.join()


@pytest.mark.parametrize(
    "command",
    [
        "why web-1 --url {url}",
        "why web-1 --kubeconfig kubeconfig",
        "evaluate --kubeconfig kubeconfig --pod pod.yaml",
        "what-if --kubeconfig kubeconfig --drain n1",
        "capacity --kubeconfig kubeconfig --pod pod.yaml",
        "plan --kubeconfig kubeconfig --adopt-nodes",
        "consolidate --kubeconfig kubeconfig --adopt-nodes",
        "estimate --kubeconfig kubeconfig --requests cpu=1",
        "doctor --kubeconfig kubeconfig",
        "doctor --kubeconfig kubeconfig --shadow",
    ],
)
def test_a_hostile_server_moves_no_cursor_and_forges_no_line(command: str, server: str) -> None:
    result = invoke(*command.format(url=server).split())
    assert result.exit_code == (EXIT_NO if command.startswith("doctor") else EXIT_FAILED)
    assert_harmless(result)


def test_a_hostile_story_moves_no_cursor_and_forges_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    score = {"node": f"n1{HOSTILE}", "total": 5, "plugins": {f"Fit{HOSTILE}": 5}}
    group = {"count": 1, "plugin": f"Taint{HOSTILE}", "text": f"had{HOSTILE}", "examples": [f"n2{HOSTILE}"]}
    attempt = {
        "at": f"now{HOSTILE}",
        "attempt": 1,
        "result": f"error{HOSTILE}",
        "node": "",
        "message": f"no{HOSTILE}",
        "nodes": 1,
        "examined": 1,
        "feasible": 0,
        "decisionSeconds": 0.5,
    }
    story = {
        "pod": f"default/web{HOSTILE}",
        "bound_to": "",
        "exists": True,
        "leader": None,
        "queue": {
            "queue": f"gated{HOSTILE}",
            "nextTry": {"text": f"soon{HOSTILE}"},
            "gatingPlugin": f"Gates{HOSTILE}",
            "reason": f"why{HOSTILE}",
        },
        "attempts": [attempt],
        "why": {
            "at": f"then{HOSTILE}",
            "groups": [group],
            "scores": [score],
            "blockers": {"n1": [{"plugin": f"P{HOSTILE}", "text": f"t{HOSTILE}"}]},
            "verdict": f"n1 wins{HOSTILE}",
        },
    }
    monkeypatch.setattr("podium.cli.running_podium.story_of", lambda *_: json.dumps(story).encode())
    for output in ("text", "json", "yaml"):
        result = invoke("why", "web", "--url", "https://localhost:1", "--node", "n1", "-o", output)
        assert result.exit_code == 0
        assert_harmless(result)
        assert FORGED in result.stdout
    monkeypatch.setattr(
        "podium.cli.running_podium.story_of", lambda *_: json.dumps(story | {"leader": f"other{HOSTILE}"}).encode()
    )
    assert_harmless(invoke("why", "web", "--url", "https://localhost:1"))

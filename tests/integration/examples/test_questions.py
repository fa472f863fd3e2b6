"""docs/questions.md: following only that page, questions are answered."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from podium.cli.main import main
from podium.engine.derivation.control_objects import CONTROL_RESOURCES
from podium.objects import resource_types
from podium.sandbox.fill import varied_nodes
from tests.integration.cli.conftest import ROOT, Start, environment, read_until, start

__all__ = ["environment", "start"]

_PAGE = (ROOT / "docs" / "questions.md").read_text()
_LIVE, _FROM_FILES = (shlex.split(line) for line in re.findall(r"^\$ podium (evaluate .*)$", _PAGE, re.MULTILINE))
(_DUMPED,) = re.findall(r"^\$ kubectl get (\S+) -A", _PAGE, re.MULTILINE)
(_DUMPED_FOR_DEVICES,) = re.findall(
    r"^Pods that claim devices also need `(\S+)` and, from Kubernetes 1.37 on, `(\S+)`", _PAGE, re.MULTILINE
)


@pytest.fixture
def kubeconfig(start: Start, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    read_until(start("sandbox", "--nodes", "5", "--write-kubeconfig", path), ["Serving on"])
    return path


@pytest.fixture(autouse=True)
def _in_the_clone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(ROOT)
    return iter(())


def _ask(arguments: list[str], *options: str, **places: Path) -> Result:
    arguments_given = [str(places.get(Path(argument).stem, argument)) for argument in arguments]
    return CliRunner().invoke(main, [*arguments_given, *options], catch_exceptions=False)


def test_a_running_cluster_is_asked(kubeconfig: Path) -> None:
    result = _ask(_LIVE, "-o", "json", config=kubeconfig)
    assert (result.exit_code, result.stderr) == (0, "")
    answer = json.loads(result.stdout)
    assert answer["pod"] == "default/podium-web"
    assert answer["node"] in answer["feasible"]
    assert len(answer["feasible"]) + len(answer["filter"]) == 5


def test_a_cluster_in_a_file_is_asked_and_what_it_lacks_is_named(tmp_path: Path) -> None:
    dump = tmp_path / "dump.yaml"
    dump.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": varied_nodes(5)}))
    result = _ask(_FROM_FILES, cluster=dump)
    assert result.exit_code == 0
    assert "default/podium-web fits on " in result.stdout
    assert "warning: the answer depends on services" in result.stderr


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A cluster with the nodes and pods that the page talks of."""
    nodes = varied_nodes(4)
    for number, node_object in enumerate(nodes):
        node_object["metadata"]["name"] = f"node-{number}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d", "uid": "u", "controller": True}
    container = {"name": "web", "image": "web", "resources": {"requests": {"cpu": "1000"}}}
    meta = {"namespace": "shop", "ownerReferences": [owner]}
    small = {**container, "resources": {"requests": {"cpu": "100m"}}}
    pods = [
        {"metadata": {**meta, "name": "web-7d4"}, "spec": {"containers": [container]}},
        {"metadata": {**meta, "name": "web-7d5"}, "spec": {"containers": [small], "nodeName": "node-1"}},
    ]
    items = [*nodes, *({"apiVersion": "v1", "kind": "Pod", **pod_object} for pod_object in pods)]
    path = tmp_path / "dump.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


# A running podium is asked in tests/integration/cli/test_running_podium.py.
@pytest.mark.parametrize(
    "command", re.findall(r"^\$ podium ((?:capacity|why|what-if) (?!.*--url).*)$", _PAGE, re.MULTILINE)
)
def test_questions_of_the_page_are_answered_from_files(command: str, dump: Path, tmp_path: Path) -> None:
    (steps,) = re.findall(r"^```yaml\n(steps:.*?)^```", _PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "steps.yaml").write_text(steps)
    arguments = shlex.split(command.replace("--kubeconfig ~/.kube/config", "-f cluster.yaml"))
    pod = ROOT / "examples" / "pods" / "web.yaml"
    result = _ask(arguments, "-o", "json", cluster=dump, steps=tmp_path / "steps.yaml", small=pod, large=pod)
    assert result.exit_code == 0, result.output
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    word_by_command = {
        "capacity": "times" if "--headroom" in arguments else "fits",
        "why": "blockers",
        "what-if": "batches" if "--order" in arguments else "moved",
    }
    assert all(word_by_command[arguments[0]] in answer for answer in answers)
    assert answers


def test_questions_about_a_running_cluster_are_answered(kubeconfig: Path) -> None:
    capacity = _ask(["capacity", "--kubeconfig", str(kubeconfig), "--pod", "examples/pods/web.yaml", "-o", "json"])
    assert (capacity.exit_code, capacity.stderr) == (0, "")
    assert json.loads(capacity.stdout)["fits"] > 0
    drained = next(iter(json.loads(capacity.stdout)["by_node"]))
    outcome = _ask(["what-if", "--kubeconfig", str(kubeconfig), "--drain", drained, "-o", "json"])
    assert (outcome.exit_code, json.loads(outcome.stdout)["steps"]) == (0, [f"drain {drained}"])
    unknown = _ask(["why", "web", "--kubeconfig", str(kubeconfig)])
    assert (unknown.exit_code, unknown.stderr) == (1, "Error: there is no pod default/web\n")


def test_a_context_that_is_not_there_is_named(kubeconfig: Path) -> None:
    result = _ask(_LIVE, "--context", "nowhere", config=kubeconfig)
    assert result.exit_code == 1
    assert "no object with name nowhere in contexts" in result.stderr


def test_the_page_names_every_kind_that_a_decision_may_depend_on() -> None:
    short = {"pv": "persistentvolumes", "pvc": "persistentvolumeclaims"}
    kinds_dumped = {short.get(kind, kind) for kind in ",".join((_DUMPED, *_DUMPED_FOR_DEVICES)).split(",")}
    kinds_watched = {resource.plural for resource in resource_types.WITHOUT_GATES}
    assert kinds_dumped == kinds_watched | {resource.plural for resource in CONTROL_RESOURCES}

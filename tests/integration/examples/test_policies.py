"""examples/policies: each cluster and its configuration answer what their first lines promise."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import orjson
import pytest
import yaml
from click.testing import CliRunner

from podium.cli.main import main
from podium.insight.evaluate import Evaluator
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB
from tests.integration.cli.conftest import ROOT

POLICIES = ROOT / "examples" / "policies"
CONFIGS = ROOT / "examples" / "config"


def command_of(name: str) -> str:
    """Return the command in the first line of the example."""
    return (POLICIES / f"{name}.yaml").read_text().partition("\n")[0].removeprefix("# ")


def answer_of(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the answer of the command in the first line of the example."""
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(command_of(name))
    assert program == "podium"
    result = CliRunner().invoke(main, [*arguments, "-o", "json"], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("name", "node", "verdict", "blockers"),
    [
        ("fragmentation-gradient-descent", "half-used", "half-used beats idle by 69: FragmentationGradient", set()),
        ("gpu-packing", "half-used", "half-used beats idle by 639: GpuPacking +640, ", set()),
        ("load-variation-risk-balancing", "steady", "steady beats varying by 63: LoadVariationRisk", set()),
        ("low-risk-over-commitment", "moderate", "moderate beats greedy by 114: LowRiskOverCommitment", set()),
        ("node-load", "cool", "cool beats warm by 170: NodeLoad +170", {"hot"}),
        ("peaks", "n1", "n1 beats n2 by 100: Peaks +100", set()),
        ("target-load-packing", "near", "near beats idle by 81: TargetLoadPacking +81", set()),
        ("node-resource-topology-match", "large", "", {"split"}),
        ("network-overhead", "a-2", "a-2 beats b-1 by 500: NetworkOverhead +500", {"a-1", "c-1"}),
        ("node-metadata", "cheap", "cheap beats dear by 990: NodeMetadata +990", set()),
        ("node-resources-allocatable", "small", "small beats large by 983: NodeResourcesAllocatable +1000, ", set()),
        ("pod-state", "leaving", "leaving beats staying by 1000: PodState +1000", set()),
        ("sy-sched", "with-cache", "with-cache beats with-vpn by 1000: SySched +1000", set()),
        ("topology-levels", "a2-1", "a2-1 and a2-2 have the same score", set()),
    ],
)
def test_the_example_chooses_the_node_that_it_names_because_of_the_plugin(
    name: str, node: str, verdict: str, blockers: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = answer_of(name, monkeypatch)
    assert (answer["node"], set(answer.get("blockers", {}))) == (node, blockers)
    assert answer["verdict"].startswith(verdict)


def test_the_page_shows_commands_of_the_examples() -> None:
    page = (ROOT / "docs" / "policies.md").read_text()
    examples_run = ("capacity-scheduling", "node-resource-topology-match")
    assert re.findall(r"^\$ (.*)$", page, re.MULTILINE) == [command_of(name) for name in examples_run]


def test_why_names_the_source_of_measured_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "LoadWatcher http://load-watcher.monitoring:2020"
    assert answer_of("target-load-packing", monkeypatch)["notes"] == [
        f"TargetLoadPacking: it decides by the metrics from {source}"
    ]


def test_the_pod_that_does_not_tolerate_preemption_has_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = answer_of("preemption-toleration", monkeypatch)
    assert (answer["nominated"], answer["victims"]) == ("n2", ["default/web"])


def test_the_team_takes_back_what_it_has_lent_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = answer_of("capacity-scheduling", monkeypatch)
    assert (answer["nominated"], answer["victims"]) == ("n1", ["team-a/batch-2"])
    details = {group["plugin"]: group["detail"] for group in answer["groups"]}
    assert details["CapacityScheduling"].endswith("team-a/quota has borrowed cpu 2")


def test_the_guaranteed_pod_goes_first() -> None:
    documents = list(yaml.safe_load_all((POLICIES / "qos-sort.yaml").read_text()))
    pods = [document for document in documents if document["kind"] == "Pod"]
    question = {
        "objects": [document for document in documents if document["kind"] != "Pod"],
        "pods": pods,
        "config": yaml.safe_load((CONFIGS / "qos-sort.yaml").read_text()),
    }
    answer = Evaluator({**IN_TREE, **CONTRIB}).answer_line(orjson.dumps(question), "qos-sort")
    assert [pod["metadata"]["name"] for pod in pods] == ["burstable", "guaranteed"]
    assert answer["placements"] == [{"pod": "default/guaranteed", "node": "n1"}, {"pod": "default/burstable"}]

"""docs/jupyterhub.md and docs/kuberay.md: podium, by its own chart with the shown values, decides on their objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from podium.cli.main import main
from tests.helm.chart import Helm, one

pytestmark = pytest.mark.control_plane

ROOT = Path(__file__).parents[2]


def values(name: str, file: str) -> Any:
    return yaml.safe_load((ROOT / "examples" / name / file).read_text())


@pytest.fixture
def ask(helm: Helm, tmp_path: Path) -> Any:
    """Ask about a pod of an example, with the configuration that podium's chart makes of its values."""

    def why(name: str, pod: str) -> Any:
        rendered = one(helm.objects(values(name, "podium-values.yaml")), "ConfigMap")["data"]["config.yaml"]
        (tmp_path / "config.yaml").write_text(rendered)
        cluster = ROOT / "examples" / name / "cluster.yaml"
        arguments = ["why", pod, "-f", str(cluster), "--config", str(tmp_path / "config.yaml"), "-o", "json"]
        result = CliRunner().invoke(main, arguments, catch_exceptions=False)
        assert result.exit_code == 0
        return json.loads(result.stdout)

    return why


def test_a_server_goes_to_the_busiest_node_with_room(ask: Any) -> None:
    answer = ask("jupyterhub", "hub/jupyter-ada")
    assert answer["node"] == "user-1"
    assert answer["verdict"] == "user-1 beats user-2 by 3146: NodeResourcesFit +3146"


def test_a_server_that_needs_a_whole_node_takes_the_place_of_a_placeholder(ask: Any) -> None:
    answer = ask("jupyterhub", "hub/jupyter-lou")
    assert (answer["nominated"], answer["victims"]) == ("user-2", ["hub/user-placeholder-1"])


def test_a_ray_cluster_starts_whole_in_one_rack(ask: Any) -> None:
    answer = ask("kuberay", "default/training-head")
    gang = answer["gang"]
    assert (gang["needed"], gang["fits"]) == (4, True)
    assert {node.partition("-")[0] for node in gang["would_get"].values()} == {"large"}


def test_the_pods_name_the_profile_that_the_values_make() -> None:
    for name in ("jupyterhub", "kuberay"):
        (profile,) = values(name, "podium-values.yaml")["configuration"]["profiles"]
        documents = yaml.safe_load_all((ROOT / "examples" / name / "cluster.yaml").read_text())
        pods = [document for document in documents if document["kind"] == "Pod"]
        assert {pod["spec"]["schedulerName"] for pod in pods} == {profile["schedulerName"]}


def test_the_pod_group_is_what_the_operator_makes_of_the_ray_cluster() -> None:
    spec = values("kuberay", "raycluster.yaml")["spec"]
    (group,) = spec["workerGroupSpecs"]
    documents = list(yaml.safe_load_all((ROOT / "examples/kuberay/cluster.yaml").read_text()))
    (pod_group,) = (document for document in documents if document["kind"] == "PodGroup")
    assert pod_group["spec"]["minMember"] == group["replicas"] + 1
    assert len([document for document in documents if document["kind"] == "Pod"]) == group["replicas"] + 1

import gzip
import json
import subprocess
import sys

import pytest

from podium.playground import Playground
from tests.manifests import node, pod
from tests.unit.cli.commands import run, write_objects

_BROWSER_LACKS = (
    # What talks to others, and what needs threads or processes.
    *("asyncio", "anyio", "aiohttp", "httptools", "ssl", "uvloop", "kubernetes_asyncio"),
    *("threading", "multiprocessing", "subprocess", "concurrent", "mmap", "fcntl", "resource", "termios"),
    # What is compiled for servers only, or is there for terminals.
    *("orjson", "cryptography", "structlog", "prometheus_client", "rich", "click"),
)
NODES = node("n1", "4"), node("n2", "2", taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}])
PODS = pod("full", "4", node="n1"), pod("web", "1"), pod("big", "99")
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "api", "namespace": "shop"},
    "spec": {"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}}},
}
CONFIG = (
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    "profiles: [{schedulerName: podium, plugins: {filter: {disabled: [{name: TaintToleration}]}}}]\n"
)


@pytest.fixture
def cluster(tmp_path):
    return write_objects(tmp_path / "cluster.yaml", *NODES, *PODS)


def load(*files, config=""):
    """The playground with these files, and what it says of them."""
    playground = Playground()
    return playground, json.loads(playground.load({str(file): file.read_bytes() for file in files}, config))


@pytest.mark.long
def test_what_a_browser_runs_loads_nothing_that_a_browser_lacks():
    # From Python 3.13 on sysconfig imports threading, in a browser as well.
    script = (
        "import sys, sysconfig, numpy, msgspec, yaml; before = set(sys.modules); import podium.playground; "
        f"print(sorted({{each.partition('.')[0] for each in set(sys.modules) - before}} & {set(_BROWSER_LACKS)}))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "[]"


def test_pending_pods_are_listed_before_workloads_and_bound_pods(tmp_path, cluster):
    more_objects = write_objects(tmp_path / "more.yaml", DEPLOYMENT)
    _, answer = load(cluster, more_objects)
    assert (answer["nodes"], answer["broken"]) == (2, [])
    assert [(pod["kind"], pod["name"], pod["node"]) for pod in answer["pods"]] == [
        ("Pod", "default/web", ""),
        ("Pod", "default/big", ""),
        ("Deployment", "shop/api", ""),
        ("Pod", "default/full", "n1"),
    ]


def test_answers_are_those_of_the_commands(tmp_path, cluster):
    playground, _ = load(cluster)
    pod_file = write_objects(tmp_path / "web.yaml", PODS[1])
    assert json.loads(playground.placement(0)) == command("evaluate", "-f", cluster, "--pod", pod_file)
    assert json.loads(playground.why(0)) == command("why", "web", "-f", cluster, "--fix")
    assert json.loads(playground.capacity(0)) == command("capacity", "-f", cluster, "--pod", pod_file, "--explain")


def command(*arguments):
    return json.loads(run(*arguments, "-o", "json").stdout)


def test_workload_is_asked_about_by_its_template(tmp_path, cluster):
    playground, _ = load(write_objects(tmp_path / "api.yaml", DEPLOYMENT), cluster)
    assert json.loads(playground.why(2))["pod"] == "shop/api"
    assert json.loads(playground.capacity(2))["by_node"] == {}


def test_pods_of_other_workloads_are_asked_about_only_by_their_owner(tmp_path, cluster):
    replica_set = {**DEPLOYMENT, "kind": "ReplicaSet"}
    replica_set["metadata"] = {**DEPLOYMENT["metadata"], "ownerReferences": [{"kind": "Deployment", "name": "api"}]}
    _, answer = load(write_objects(tmp_path / "sets.yaml", replica_set), cluster)
    assert {pod["kind"] for pod in answer["pods"]} == {"Pod"}


def test_configuration_decides(cluster):
    playground, _ = load(cluster)
    assert json.loads(playground.placement(0))["node"] is None
    playground, _ = load(cluster, config=CONFIG)
    assert json.loads(playground.placement(0))["node"] == "n2"


def test_unreadable_configuration_is_an_error_with_its_fields(cluster):
    _, answer = load(cluster, config=f"{CONFIG}parallelism: five\n")
    assert answer["error"] == 'configuration:4: parallelism: expected int32, got "five"'


def test_compressed_file_is_unpacked(cluster):
    playground = Playground()
    answer = json.loads(playground.load({"cluster.yaml.gz": gzip.compress(cluster.read_bytes())}))
    assert answer["nodes"] == 2
    answer = json.loads(playground.load({"cluster.yaml.gz": gzip.compress(cluster.read_bytes())[:40]}))
    assert answer["error"].startswith("cluster.yaml.gz: ")


def test_broken_object_is_named_with_its_file_and_field(tmp_path):
    wrong = pod("wrong", "1")
    wrong["spec"]["priority"] = "high"
    playground, answer = load(write_objects(tmp_path / "cluster.yaml", *NODES, wrong))
    assert "cluster.yaml: document 3: Pod default/wrong: spec.priority: expected" in answer["broken"][0]
    assert "spec.priority: expected" in json.loads(playground.placement(0))["error"]


def test_cluster_without_nodes_is_none(tmp_path, cluster):
    playground, _ = load(cluster)
    assert "no nodes" in json.loads(playground.load({"a": b"kind: Pod\napiVersion: v1\n"}))["error"]
    assert json.loads(playground.load({"a": b"{"}))["error"].startswith("a: line ")

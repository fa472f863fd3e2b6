import msgspec

from benchmarks.load_watcher import report
from benchmarks.nodes import node
from benchmarks.pods import SCHEDULER_NAME
from benchmarks.policies import ENGINE_PROFILE
from benchmarks.schedulers import configuration
from benchmarks.workloads import WORKLOADS
from podium.client.metrics_answers import NodeNames, Readings, read_watcher
from podium.engine.configurations import read_configuration
from podium.objects.core import Node
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB


def test_the_profile_of_the_policies_is_valid() -> None:
    text = msgspec.json.encode(configuration(ENGINE_PROFILE)).decode()
    [profile] = read_configuration(text, "bench", {**IN_TREE, **CONTRIB}).profiles
    assert profile.scheduler_name == SCHEDULER_NAME


def test_the_load_watcher_reports_every_node_as_load_watchers_do() -> None:
    readings = Readings(NodeNames(msgspec.convert(node(number), Node) for number in range(5)))
    read_watcher(readings, msgspec.json.encode(report(5, 1_000_000)))
    assert len(readings.nodes) == 5
    assert not readings.problems


def test_on_a_server_every_node_has_numa_nodes_and_the_namespace_a_quota() -> None:
    kinds = [item["kind"] for item in WORKLOADS["policies-on-a-server"].existing(4, 2)]
    assert kinds == ["ElasticQuota", *["NodeResourceTopology"] * 4]

import json
from functools import partial

import pytest

from tests.gang_manifests import COSCHEDULING, group, member
from tests.manifests import ZONE, node, pod
from tests.unit.cli.commands import run, write_objects

NODES = node("n1", "4", labels={ZONE: "a"}), node("n2", "2", labels={ZONE: "b"}), node("n3", unschedulable=True)

_APART = {
    "weight": 1,
    "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}},
}

_SHORT_OF_BOTH = (
    "1 node: Insufficient cpu, Insufficient memory: requests 3 cpu, at most 1 free (a); "
    "requests 8Gi memory, at most 4Gi free (a)"
)

_run = partial(run, "capacity")


@pytest.fixture
def cluster(tmp_path):
    return write_objects(tmp_path / "cluster.yaml", *NODES)


@pytest.fixture
def web(tmp_path):
    return write_objects(tmp_path / "pod.yaml", pod("web", "1"))


def lines(result):
    assert result.exit_code == 0
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_text_says_how_many_fit_where_and_what_keeps_the_next_one_off(cluster, web):
    assert lines(_run("-f", cluster, "--pod", web)) == [
        "6 more of default/web fit",
        "by zone: no zone 0, a 4, b 2",
        "what blocks the next one:",
        "2 nodes: Insufficient cpu: requests 1, at most 0 free (n1)",
        "1 node: node(s) were unschedulable",
    ]


def test_each_node_is_explained(cluster, web):
    output_lines = lines(_run("-f", cluster, "--pod", web, "--explain"))
    assert "n1 a 4 Insufficient cpu: requests 1, at most 0 free (n1)" in output_lines
    assert "n3 0 node(s) were unschedulable" in output_lines


@pytest.mark.parametrize(
    ("asking", "nodes", "line"),
    [
        (
            {"cpu": "3"},
            [node("a", "5"), node("b", "5500m")],
            "2 nodes: Insufficient cpu: requests 3, at most 2.5 free (b)",
        ),
        (
            {"cpu": "3", "memory": "8Gi"},
            [node("a", "1", memory="4Gi")],
            _SHORT_OF_BOTH,
        ),
        ({"cpu": "1m"}, [node("a", "5", pods="2")], "1 node: Too many pods: takes at most 2 pods (a)"),
        (
            {"cpu": "1"},
            [node("a", "5", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])],
            "1 node: node(s) had untolerated taint(s) (gpu=yes:NoSchedule)",
        ),
    ],
    ids=["one resource", "two resources", "pods", "a taint"],
)
@pytest.mark.parametrize("apart", [False, True], ids=["counted", "placed"])
def test_limits_have_their_amounts_and_names_once(tmp_path, asking, nodes, line, apart):
    rules = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_APART]}} if apart else None
    pod_file = write_objects(tmp_path / "pod.yaml", pod("web", labels={"app": "web"}, affinity=rules, **asking))
    cluster = write_objects(tmp_path / "cluster.yaml", *nodes)
    assert line in lines(_run("-f", cluster, "--pod", pod_file))
    assert line.partition(": ")[2] in " ".join(_run("-f", cluster, "--pod", pod_file, "--explain").stdout.split())
    limits = json.loads(_run("-f", cluster, "--pod", pod_file, "-o", "json").stdout)["limits"]
    assert not any("asks for" in limit or "at most" in limit for limit in limits)


def test_last_line_of_json_has_the_number(cluster, web):
    answer = json.loads(_run("-f", cluster, "--pod", web, "-o", "json", "--explain").stdout.splitlines()[-1])
    assert (answer["fits"], answer["by_node"], answer["by_zone"]) == (6, {"n1": 4, "n2": 2}, {"": 0, "a": 4, "b": 2})
    assert answer["nodes"][1] == {"node": "n2", "zone": "b", "fits": 2, "limit": "Insufficient cpu"}


def test_pods_are_counted_alone_or_in_turn(cluster, web, tmp_path):
    large = write_objects(tmp_path / "large.yaml", pod("large", "2"))
    arguments = ("-f", cluster, "--pod", web, "--pod", large, "-o", "json")
    assert [json.loads(line)["fits"] for line in _run(*arguments).stdout.splitlines()] == [6, 3]
    (line,) = _run(*arguments, "--together").stdout.splitlines()
    assert json.loads(line)["fits"] == sum(pod["fits"] for pod in json.loads(line)["pods"]) == 5
    assert lines(_run(*arguments[:-2], "--together"))[-1] == "5 pods fit together"


def test_headroom_says_how_large_the_pod_may_be(cluster, web):
    answer = json.loads(_run("-f", cluster, "--pod", web, "--headroom", 3, "-o", "json").stdout)
    assert (answer["fits_as_it_is"], answer["largest"]["cpu"], answer["percent"]) == (True, "2", 200)
    output_lines = lines(_run("-f", cluster, "--pod", web, "--headroom", 3))
    assert output_lines[0] == "default/web fits 3 times"
    assert "with up to 2 of cpu, and its other requests as they are, it fits 3 times" in output_lines
    impossible = lines(_run("-f", cluster, "--pod", web, "--headroom", 9999))
    assert impossible == ["default/web does not fit 9,999 times", "no size of its requests lets it fit 9,999 times"]


def test_profile_of_the_configuration_decides(cluster, web, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: podium}, {schedulerName: bold, "
        "plugins: {filter: {disabled: [{name: NodeUnschedulable}]}}}]\n"
    )
    arguments = ("-f", cluster, "--pod", web, "--config", config, "-o", "json")
    assert json.loads(_run(*arguments).stdout)["fits"] == 6
    assert json.loads(_run(*arguments, "--profile", "bold").stdout)["fits"] == 22
    assert "no profile is named 'x', only bold, podium" in _run(*arguments, "--profile", "x").stderr


def test_broken_objects_are_named_and_the_rest_is_answered(web, tmp_path):
    dump = write_objects(tmp_path / "dump.yaml", *NODES, pod("bad", node="n1", priority="high"), {"kind": "Pod"})
    result = _run("-f", dump, "--pod", web, "-o", "json")
    assert "warning: 2 objects cannot be read in full, and the answer may be off:" in result.stderr
    answer = json.loads(result.stdout)
    assert answer["fits"] == 2  # the node of the pod takes no others
    assert any("Pod default/bad counts in part: spec.priority" in text for text in answer["broken"])


def test_exit_status_shows_that_nothing_fits(cluster, tmp_path):
    huge = write_objects(tmp_path / "huge.yaml", pod("huge", "99"))
    assert _run("-f", cluster, "--pod", huge).exit_code == 0
    assert _run("-f", cluster, "--pod", huge, "--exit-code").exit_code == 3


def test_gated_pod_is_named_as_gated(cluster, tmp_path):
    gated_file = write_objects(tmp_path / "gated.yaml", pod("web", schedulingGates=[{"name": "hold"}]))
    assert (
        "It would not be tried: waiting for scheduling gates: [hold]" in _run("-f", cluster, "--pod", gated_file).stdout
    )


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--headroom", "2", "--together"], 2, "--headroom asks about each pod alone"),
        (["--kubeconfig", "x"], 2, "give either files with -f, or a running cluster"),
        (["--headroom", "0"], 2, "0 is not in the range"),
    ],
)
def test_bad_command_lines_are_refused(cluster, web, options, status, message):
    result = _run("-f", cluster, "--pod", web, *options)
    assert (result.exit_code, message in result.stderr) == (status, True)


def test_whole_gangs_are_counted_whose_group_may_be_in_the_pods_file(tmp_path):
    cluster = write_objects(tmp_path / "cluster.yaml", *(node(f"n{index}", "4") for index in range(7)))
    pod_file = write_objects(tmp_path / "gang.yaml", group(COSCHEDULING, 3), member(COSCHEDULING, "train"))
    output = run("capacity", "-f", cluster, "--pod", pod_file).stdout
    assert "2 more whole gangs of 3 pods like default/train fit; pod by pod:" in output
    assert "7 more of default/train fit" in output
    answer = json.loads(run("capacity", "-f", cluster, "--pod", pod_file, "-o", "json").stdout)
    assert (answer["fits"], answer["gangs"]) == (7, {"gang": "default/train", "size": 3, "fits": 2})
    large = write_objects(tmp_path / "large.yaml", group(COSCHEDULING, 8), member(COSCHEDULING, "train"))
    assert run("capacity", "-f", cluster, "--pod", large, "--exit-code").exit_code == 3


def test_whole_gangs_are_counted_among_pods_that_are_placed_together(tmp_path, web):
    cluster = write_objects(tmp_path / "c.yaml", *NODES, group(COSCHEDULING, 2))
    train = write_objects(tmp_path / "train.yaml", member(COSCHEDULING, "train", cpu="1"))
    output_lines = lines(_run("-f", cluster, "--pod", train, "--pod", web, "--together"))
    assert output_lines[0] == "1 more whole gang of 2 pods like default/train fits; pod by pod:"
    assert output_lines[-1] == "6 pods fit together"


@pytest.mark.parametrize(
    ("question", "plugin"),
    [
        (["capacity", "--pod", "pod.yaml"], "GangScheduling"),
        (["evaluate", "--pod", "pod.yaml"], "GangScheduling"),
        (["why", "web"], "TopologyPlacementGenerator"),
        (["what-if", "--drain", "n1"], "GangScheduling"),
    ],
)
def test_a_plugin_that_needs_a_feature_gate_is_left_to_the_running_podium(
    tmp_path, cluster, web, monkeypatch, question, plugin
):
    monkeypatch.chdir(tmp_path)
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": plugin}]}}}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = write_objects(tmp_path / "config.yaml", {**head, "profiles": [profile]})
    result = run(*question, "-f", cluster, "--config", config)
    assert result.exit_code == 1
    assert f"{plugin} needs the feature gate GenericWorkload, and questions are answered without" in result.stderr
    assert f"without {plugin}. Leave it out of --config" in result.stderr

import gzip
import json
from functools import partial

import pytest
import yaml
from click.testing import CliRunner

from podium.cli.main import main
from tests.manifests import node, pod
from tests.unit.cli.commands import run, write_objects

NODE = node("n1", "4", memory="8Gi")
CORDONED = node("n2", "4", memory="8Gi", unschedulable=True)
POD = pod("web", "1")
BIG = {**POD, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9"}}}]}}
SCENARIO = {"id": "s-1", "objects": [NODE], "pod": {**POD, "spec": {}}}


_run = partial(run, "evaluate")


@pytest.fixture
def cluster(tmp_path):
    return write_objects(tmp_path / "cluster.yaml", NODE, CORDONED)


def test_table_shows_the_winner_the_scores_and_why_others_do_not_fit(cluster, tmp_path):
    result = _run("-f", cluster, "--pod", write_objects(tmp_path / "pod.yaml", POD))
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert any(line.startswith("NODE TOTAL") for line in lines)
    assert any(line.startswith("n1 ") and len(line.split()) > 4 for line in lines)
    assert "n2 NodeUnschedulable node(s) were unschedulable" in lines
    assert lines[-1].startswith("default/web fits on 1 of 2 nodes and would go to n1 (total ")


def test_table_names_the_taints(tmp_path):
    tainted = {**NODE, "spec": {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}}
    result = _run("-f", write_objects(tmp_path / "c.yaml", tainted), "--pod", write_objects(tmp_path / "p.yaml", POD))
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "n1 TaintToleration node(s) had untolerated taint(s) (team=a:NoSchedule)" in lines


@pytest.mark.parametrize(
    ("requests", "row"),
    [
        ({"cpu": "5"}, "Insufficient cpu: requests 5, at most 4 free (n1)"),
        ({"memory": "9Gi"}, "Insufficient memory: requests 9Gi, at most 8Gi free (n1)"),
    ],
)
def test_table_names_the_amounts(tmp_path, requests, row):
    big = {**POD, "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}
    result = _run("-f", write_objects(tmp_path / "c.yaml", NODE), "--pod", write_objects(tmp_path / "p.yaml", big))
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert f"n1 NodeResourcesFit {row}" in lines


def test_table_of_a_pod_that_fits_nowhere_ends_with_the_reason(cluster, tmp_path):
    result = _run("-f", cluster, "--pod", write_objects(tmp_path / "pod.yaml", BIG))
    assert result.exit_code == 0
    text = " ".join(result.output.split())
    assert "default/web fits on no node: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were" in text


def _large(tmp_path):
    """Five nodes of 4 CPUs and 1,000 smaller ones, of which every tenth is cordoned and six have taints."""
    small = [node(f"s{number:04}", "2", memory="8Gi", unschedulable=number % 10 == 0) for number in range(1000)]
    for number in range(1, 7):
        small[number] = node(f"t{number}", "8", taints=[{"key": f"k{number}", "effect": "NoSchedule"}])
    large = [node(f"b{number}", "4", memory="8Gi") for number in range(5)]
    return write_objects(tmp_path / "large.yaml", *large, *small)


def _rows(result):
    return [" ".join(line.split()) for line in result.stdout.splitlines() if line.strip()]


@pytest.mark.long
def test_nodes_with_equal_verdicts_share_a_row_in_a_large_cluster(tmp_path):
    arguments = ("-f", _large(tmp_path), "--pod", write_objects(tmp_path / "p.yaml", pod("web", "3")))
    rows = _rows(_run(*arguments))
    assert len(rows) < 30
    assert [row.split()[0] for row in rows if row.startswith("b")] == ["b0", "b1", "b2", "b3", "b4"]
    assert (
        "s0007, s0008, s0009 and 891 more NodeResourcesFit Insufficient cpu: requests 3, at most 2 free (s0007)" in rows
    )
    assert "s0000, s0010, s0020 and 97 more NodeUnschedulable node(s) were unschedulable" in rows
    assert any(
        row.startswith("t1, t2, t3 and 3 more TaintToleration") and "k3:NoSchedule; and 3" in row for row in rows
    ), rows
    all_rows = _rows(_run(*arguments, "--all"))
    assert len(all_rows) > 1000
    assert "s0999 NodeResourcesFit Insufficient cpu: requests 3, at most 2 free (s0999)" in all_rows
    as_json = json.loads(_run(*arguments, "-o", "json").stdout)
    assert len(as_json["filter"]) == 1000


@pytest.mark.long
def test_nodes_with_equal_scores_share_a_row_below_the_winner(tmp_path):
    arguments = ("-f", _large(tmp_path), "--pod", write_objects(tmp_path / "p.yaml", pod("web", "1")))
    rows = _rows(_run(*arguments))
    fitting = [row for row in rows[1:] if row[:2] in ("b0", "b1", "s0")]
    assert fitting[0].startswith("b0 ")
    assert fitting[1].startswith("b1, b2, b3 and 1 more ")
    assert fitting[2].startswith("s0007, s0008, s0009 and 891 more ")
    rows = _rows(_run(*arguments, "--top", "1"))
    assert "and 898 more nodes on 2 more rows: --all shows every node" in rows
    assert "and 6 more nodes on 1 more row: --all shows every node" in rows


def test_few_nodes_have_a_row_each_and_a_limit_groups_them(cluster, tmp_path):
    more_nodes = write_objects(tmp_path / "more.yaml", *(node(f"m{number}", "4", memory="8Gi") for number in range(4)))
    arguments = ("-f", cluster, "-f", more_nodes, "--pod", write_objects(tmp_path / "p.yaml", POD))
    assert sum(row.startswith("m") for row in _rows(_run(*arguments))) == 4
    assert any(
        row.startswith(("m1, m2, m3 and 1 more ", "m0, m1, m2 and 1 more "))
        for row in _rows(_run(*arguments, "--top", "3"))
    )


def test_preemption_is_described_in_words(tmp_path):
    running = {**BIG, "metadata": {"name": "low"}, "spec": {**BIG["spec"], "nodeName": "n1"}}
    running["spec"]["containers"] = [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]
    urgent = {**POD, "spec": {**POD["spec"], "priority": 5}}
    result = _run(
        "-f", write_objects(tmp_path / "c.yaml", NODE, running), "--pod", write_objects(tmp_path / "p.yaml", urgent)
    )
    assert "It would be nominated to n1 after default/low left" in result.output


def test_held_back_pod_is_named_as_held_back(cluster, tmp_path):
    gated_pod = {**POD, "spec": {**POD["spec"], "schedulingGates": [{"name": "hold"}]}}
    result = _run("-f", cluster, "--pod", write_objects(tmp_path / "pod.yaml", gated_pod))
    assert "But it would not be tried yet: waiting for scheduling gates: [hold] (SchedulingGates)" in result.output


def test_json_holds_everything_in_one_line(cluster, tmp_path):
    result = _run("-f", cluster, "--pod", write_objects(tmp_path / "pod.yaml", POD), "--output", "json")
    answer = json.loads(result.stdout)
    assert (answer["pod"], answer["node"], answer["feasible"]) == ("default/web", "n1", ["n1"])


def test_cluster_may_come_from_standard_input(tmp_path):
    result = _run(
        "-f", "-", "--pod", write_objects(tmp_path / "pod.yaml", POD), "--output", "json", stdin=json.dumps(NODE)
    )
    assert json.loads(result.stdout)["node"] == "n1"


def test_configuration_decides_and_its_leader_election_does_not_matter(cluster, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection: {leaderElect: true}\n"
        "profiles: [{schedulerName: podium, plugins: {filter: {disabled: [{name: NodeUnschedulable}]}}}]\n"
    )
    pod = write_objects(tmp_path / "pod.yaml", POD)
    result = _run("-f", cluster, "--pod", pod, "--config", config, "--output", "json")
    assert json.loads(result.stdout)["feasible"] == ["n1", "n2"]


def test_scenarios_are_answered_a_line_each_packed_or_not(tmp_path):
    packed, plain = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl"
    packed.write_bytes(gzip.compress(json.dumps(SCENARIO).encode()))
    plain.write_text(f"\n{json.dumps({**SCENARIO, 'id': 's-2'})}\nnonsense\n")
    answers = [json.loads(line) for line in _run(packed, plain).output.splitlines()]
    assert [answer["id"] for answer in answers] == ["s-1", "s-2", f"{plain}:3"]
    assert [answer.get("feasible") for answer in answers] == [["n1"], ["n1"], None]
    assert answers[2]["error"].startswith("not a scenario: ")


def test_a_scenario_that_is_nested_too_deep_is_named_by_its_line(tmp_path):
    path = tmp_path / "scenarios.jsonl"
    deep = '{"config": ' + '{"x":' * 100_000 + "1" + "}" * 100_001
    path.write_text(f"{json.dumps(SCENARIO)}\n{deep}\n")
    first, second = (json.loads(line) for line in _run(path).output.splitlines())
    assert first["feasible"] == ["n1"]
    assert second == {"id": f"{path}:2", "error": "not a scenario: nested too deep"}


def test_file_without_any_scenario_is_an_error(tmp_path):
    path = tmp_path / "scenarios.jsonl"
    path.write_text('{"pod": 1}\nnonsense\n')
    result = _run(path)
    assert result.exit_code == 1
    assert f"{path}: none of its lines is a scenario" in result.stderr


@pytest.mark.parametrize("form", [json.dumps, lambda pod: json.dumps(pod, indent=1), yaml.safe_dump])
def test_a_pod_in_the_place_of_scenarios_is_refused_with_advice(form, tmp_path):
    path = tmp_path / "pod.yaml"
    path.write_text(form(POD))
    result = _run(path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{path} holds Kubernetes objects (Pod), not scenarios" in result.stderr
    assert f"podium evaluate -f cluster.yaml --pod {path}\n" in result.stderr


@pytest.mark.parametrize("arguments", ["-f mistaken --pod pod", "-f cluster --pod mistaken"])
@pytest.mark.parametrize(
    ("head", "flag"),
    [
        (
            {"apiVersion": "v1", "kind": "Config", "clusters": []},
            "kubeconfig, not an object of a cluster: give it with --k",
        ),
        (
            {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"},
            "configuration, not an object of a cluster: give it with --config",
        ),
    ],
    ids=["kubeconfig", "configuration"],
)
def test_a_file_in_the_wrong_place_is_refused_with_its_right_option(arguments, head, flag, cluster, tmp_path):
    paths = {"mistaken": tmp_path / "m", "pod": tmp_path / "p", "cluster": cluster}
    write_objects(paths["mistaken"], head)
    write_objects(paths["pod"], POD)
    result = _run(*(paths.get(argument, argument) for argument in arguments.split()))
    assert result.exit_code == 1
    assert f"{paths['mistaken']}: document 1: this is a" in result.stderr
    assert flag in result.stderr


def test_the_exit_status_shows_whether_the_pod_fits_with_exit_code(cluster, tmp_path):
    fits, big = write_objects(tmp_path / "pod.yaml", POD), write_objects(tmp_path / "big.yaml", BIG)
    assert _run("-f", cluster, "--pod", fits, "--exit-code").exit_code == 0
    assert _run("-f", cluster, "--pod", big, "--exit-code").exit_code == 3
    assert _run("-f", cluster, "--pod", big).exit_code == 0
    assert _run("-f", "nowhere", "--pod", big, "--exit-code").exit_code == 1


def test_what_the_dump_lacks_is_named_on_standard_error(cluster, tmp_path):
    arguments = ("-f", cluster, "--pod", write_objects(tmp_path / "pod.yaml", POD))
    result = _run(*arguments)
    (warning,) = result.stderr.splitlines()
    assert warning.startswith("warning: the answer depends on services, and the files hold none")
    assert "kubectl get services -A -o yaml" in warning
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    assert _run(*arguments, "-f", write_objects(tmp_path / "s.yaml", service)).stderr == ""


def test_every_format_says_the_same(cluster, tmp_path):
    arguments = ("-f", cluster, "--pod", write_objects(tmp_path / "pod.yaml", POD))
    as_json = json.loads(_run(*arguments, "-o", "json").stdout)
    assert yaml.safe_load(_run(*arguments, "-o", "yaml").stdout) == as_json
    assert (
        _run(*arguments, "-o", "table").stdout == _run(*arguments).stdout == _run(*arguments, "--output", "text").stdout
    )


def test_scenarios_may_come_from_standard_input():
    result = _run("-", stdin=gzip.compress(json.dumps(SCENARIO).encode()))
    assert json.loads(result.stdout)["feasible"] == ["n1"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "give the pod with --pod, or files of scenarios"),
        (("-f", "c"), "give the pod with --pod, or files of scenarios"),
        (("--pod", "p", "s.jsonl"), "give either files of scenarios, or a cluster and a pod with --pod"),
        (("-f", "c", "s.jsonl"), "give either files of scenarios, or a cluster and a pod with --pod"),
        (("--context", "c", "s.jsonl"), "give either files of scenarios, or a cluster and a pod with --pod"),
        (("--pod", "p", "-f", "c", "--kubeconfig", "k"), "give either files with -f, or a running cluster"),
        (("--pod", "p", "-f", "c", "--top", "3", "--all"), "give either --top or --all"),
        (("--pod", "p", "-f", "c", "--top", "0"), "0 is not in the range x>=1"),
        (("--pod", "-", "-f", "-"), "standard input (-) can be read only once"),
    ],
    ids=lambda arguments: " ".join(arguments)[:20],
)
def test_half_a_question_is_a_usage_error(arguments, text):
    result = _run(*arguments)
    assert result.exit_code == 2
    assert text in " ".join(result.output.split())


def test_without_any_cluster_both_ways_to_give_one_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    result = _run("--pod", write_objects(tmp_path / "pod.yaml", POD))
    assert result.exit_code == 1
    assert "no kubeconfig was given" in result.stderr
    assert result.stderr.endswith("; give one with --kubeconfig, or the cluster's objects with -f\n")


@pytest.mark.parametrize(("content", "text"), [(None, "this is a directory, not a kubeconfig file"), ("", "is empty")])
def test_a_file_that_is_no_kubeconfig_is_refused_in_plain_words(content, text, tmp_path):
    path = tmp_path / "kubeconfig"
    if content is None:
        path.mkdir()
    else:
        path.write_text(content)
    result = _run("--kubeconfig", path, "--pod", write_objects(tmp_path / "pod.yaml", POD))
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: kubeconfig {path}: ")
    assert line.endswith(text)


def test_file_that_is_not_there_is_named(tmp_path):
    for arguments in (["nowhere"], ["-f", "nowhere", "--pod", "nowhere"]):
        result = _run(*arguments)
        assert result.exit_code == 1
        assert "nowhere: No such file or directory" in result.output


def test_packed_file_that_is_cut_short_is_named(tmp_path):
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(json.dumps(SCENARIO).encode())[:-9])
    result = _run(cut)
    assert result.exit_code == 1
    assert f"Error: {cut}: " in result.output


def test_broken_object_is_named_by_file_document_and_field(cluster, tmp_path):
    result = _run("-f", cluster, "--pod", write_objects(tmp_path / "pod.yaml", {**POD, "spec": {"priority": "x"}}))
    assert result.exit_code == 1
    assert f"{tmp_path / 'pod.yaml'}: document 1: Pod default/web: spec.priority: expected int" in result.output


def test_text_from_outside_is_neither_markup_nor_a_command_to_the_terminal(tmp_path):
    taint = {"key": "[/red]", "value": "\x1b[2J", "effect": "NoSchedule"}
    tainted = {**NODE, "spec": {"taints": [taint]}}
    files = write_objects(tmp_path / "cluster.yaml", tainted), write_objects(tmp_path / "pod.yaml", POD)
    result = _run("-f", files[0], "--pod", files[1])
    assert "\x1b" not in result.output
    assert "fits on no node" in " ".join(result.output.split())
    command_line = ["estimate", "-f", str(files[0]), "--requests", "cpu=1", "--explain"]
    result = CliRunner().invoke(main, command_line, catch_exceptions=False)
    assert "\x1b" not in result.output
    assert "[/red]=\\x1b[2J:NoSchedule" in "".join(result.output.split())

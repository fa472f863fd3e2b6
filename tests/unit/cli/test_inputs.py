"""Every question reads the same forms of input."""

import gzip
import json

import pytest
import yaml

from tests.manifests import node, pod
from tests.unit.cli.commands import run, write_objects

POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "pool"},
    "spec": {"template": {"spec": {"requirements": []}}},
}
OBJECTS = [node("n1"), node("n2"), POOL, pod("web", "1"), pod("db", "1", node="n1")]
ASKED = pod("asked", "1")

QUESTIONS = {
    "evaluate": (("evaluate", "--pod"), lambda answer: answer["node"] is not None),
    "why": (("why", "web"), lambda answer: answer["nodes"] == 2),
    "capacity": (("capacity", "--pod"), lambda answer: answer["fits"] > 10),
    "what-if": (
        ("what-if", "--drain", "n1"),
        lambda answer: answer["gone"] == ["default/db"],
    ),
    "estimate": (("estimate", "--requests", "cpu=1"), lambda answer: answer["replicas"] > 10),
    "plan": (("plan", "--assume-unschedulable"), lambda answer: "existing" in answer),
    "consolidate": (("consolidate",), lambda answer: "commands" in answer),
}


def _lines(folder):
    path = folder / "cluster.jsonl"
    path.write_text("".join(f"{json.dumps(item)}\n" for item in OBJECTS))
    return ["-f", path]


def _one_after_the_other(folder):
    path = folder / "cluster.json"
    path.write_text("\n".join(json.dumps(item, indent=2) for item in OBJECTS))
    return ["-f", path]


def _documents(folder):
    path = folder / "cluster.yaml"
    path.write_text("---\n---\n# nothing\n---\n" + "\n---\n".join(yaml.safe_dump(item) for item in OBJECTS) + "---\n")
    return ["-f", path]


def _lists(folder):
    without_kind = [{name: item[name] for name in ("metadata", "spec", "status")} for item in OBJECTS[:2]]
    nodes = {"apiVersion": "v1", "kind": "NodeList", "items": without_kind}
    pods = {"apiVersion": "v1", "kind": "PodList", "items": OBJECTS[3:]}
    inner = {"apiVersion": "v1", "kind": "List", "items": [nodes, POOL]}
    return ["-f", write_objects(folder / "cluster.yaml", {"apiVersion": "v1", "kind": "List", "items": [inner, pods]})]


def _several(folder):
    paths = [write_objects(folder / f"{number}.yaml", item) for number, item in enumerate(OBJECTS)]
    return [part for path in paths for part in ("-f", path)]


def _directory(folder):
    dump = folder / "dump"
    (dump / "more" / "still").mkdir(parents=True)
    write_objects(dump / "nodes.yml", *OBJECTS[:2])
    write_objects(dump / "more" / "pools.json", POOL)
    (dump / "more" / "still" / "pods.yaml.gz").write_bytes(gzip.compress(json.dumps(OBJECTS[3:]).encode()))
    return ["-f", dump]


@pytest.mark.parametrize("form", [_lines, _one_after_the_other, _documents, _lists, _several, _directory])
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_reads_every_form(question, form, tmp_path):
    arguments, is_right = QUESTIONS[question]
    if arguments[-1] == "--pod":
        arguments = (*arguments, write_objects(tmp_path / "asked", ASKED))
    result = run(*arguments, *form(tmp_path), "-o", "json")
    assert result.exit_code == 0, result.output
    assert is_right(json.loads(result.stdout))


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_reads_standard_input(question, tmp_path):
    arguments, is_right = QUESTIONS[question]
    if arguments[-1] == "--pod":
        arguments = (*arguments, write_objects(tmp_path / "asked", ASKED))
    result = run(*arguments, "-f", "-", "-o", "json", stdin="".join(f"{json.dumps(item)}\n" for item in OBJECTS))
    assert is_right(json.loads(result.stdout))


@pytest.mark.parametrize("question", ["evaluate", "capacity", "estimate", "what-if", "plan"])
def test_the_workload_that_is_asked_about_is_read_in_every_form_as_well(question, tmp_path):
    folder = tmp_path / "app"
    folder.mkdir()
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    nameless = {**ASKED, "metadata": {"generateName": "asked-"}}
    (folder / "app.json").write_text(f"{json.dumps(service)}{json.dumps(nameless)}")
    option = {"estimate": "--workload", "what-if": "--apply", "plan": "--add"}.get(question, "--pod")
    for name in (folder, folder / "app.json"):
        result = run(question, option, name, *_several(tmp_path), "-o", "json")
        assert result.exit_code == 0, result.output
    if question != "estimate":
        assert "default/asked-" in result.stdout


def test_capacity_is_shown_for_every_workload_of_a_file_or_directory(tmp_path):
    folder = tmp_path / "app"
    folder.mkdir()
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    write_objects(folder / "one.yaml", pod("one", "1"), service)
    write_objects(folder / "two.yaml", pod("two", "2"))
    result = run("capacity", "--pod", folder, *_several(tmp_path), "-o", "json")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(answer["pod"], answer["fits"]) for answer in answers] == [("default/one", 31), ("default/two", 15)]
    result = run("capacity", "--pod", write_objects(tmp_path / "s.yaml", service), *_several(tmp_path))
    assert "expected one pod or workload with a pod template, found 0: the file holds Service" in result.stderr


def test_several_files_and_directories_are_applied(tmp_path):
    folder = tmp_path / "app"
    folder.mkdir()
    write_objects(folder / "one.yaml", pod("one"))
    write_objects(folder / "two.yaml", pod("two"))
    third_file = write_objects(tmp_path / "three.yaml", pod("three"))
    result = run("what-if", *_several(tmp_path), "--apply", folder, "--apply", third_file, "-o", "json")
    pods = {placement["pod"] for placement in json.loads(result.stdout)["placed"]}
    assert {"default/one", "default/two", "default/three"} <= pods


def test_a_step_in_a_file_applies_several_files(tmp_path):
    pod_files, two = (str(write_objects(tmp_path / f"{name}.yaml", pod(name))) for name in ("one", "two"))
    steps = tmp_path / "steps.yaml"
    steps.write_text(yaml.safe_dump({"steps": [{"apply": [pod_files, two]}]}))
    result = run("what-if", *_several(tmp_path), "--steps", steps, "-o", "json")
    pods = {placement["pod"] for placement in json.loads(result.stdout)["placed"]}
    assert {"default/one", "default/two"} <= pods
    for wrong in ([], [3], 3, {"a": 1}):
        steps.write_text(yaml.safe_dump({"steps": [{"apply": wrong}]}))
        result = run("what-if", *_several(tmp_path), "--steps", steps)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "steps[0].apply: expected a string or a list of them" in result.stderr
    steps.write_text(yaml.safe_dump({"steps": [{"config": [pod_files]}]}))
    assert "steps[0].config: expected a string\n" in run("what-if", *_several(tmp_path), "--steps", steps).stderr


def test_pods_that_have_only_a_prefix_count_each(tmp_path):
    nameless = {**pod("", "6", node="n1"), "metadata": {"generateName": "web-"}}
    cluster = write_objects(tmp_path / "c.yaml", node("n1", "16"), nameless, nameless)
    result = run("evaluate", "-f", cluster, "--pod", write_objects(tmp_path / "p.yaml", pod("big", "5")))
    assert "Insufficient cpu" in result.stdout
    assert "default/big fits on no node" in result.stdout


def test_what_is_given_twice_and_what_is_left_out_is_named_on_standard_error(tmp_path):
    folder = tmp_path / "dump"
    folder.mkdir()
    write_objects(folder / "a.yaml", node("n1", "1"))
    write_objects(folder / "b.yaml", node("n1", "8"))
    (folder / "values.yaml").write_text("replicas: 3\n")
    write_objects(folder / ".c.yaml", node("n9"))
    result = run("evaluate", "-f", folder, "--pod", write_objects(tmp_path / "p.yaml", pod("web", "4")), "-o", "json")
    assert json.loads(result.stdout)["feasible"] == ["n1"]
    warnings = [line for line in result.stderr.splitlines() if "depends on" not in line]
    assert [line.split(": ")[0] for line in warnings] == ["warning"] * 3
    assert warnings[0].startswith(f"warning: {folder}/.c.yaml: left out, because it is hidden")
    assert warnings[1].startswith(f"warning: {folder}/values.yaml: document 1: kind: required: left out")
    assert f"Node n1: is there with other contents in {folder}/a.yaml: document 1" in warnings[2]


def test_many_notes_are_counted(tmp_path):
    folder = tmp_path / "dump"
    folder.mkdir()
    write_objects(folder / "a.yaml", *OBJECTS)
    for number in range(15):
        (folder / f"values-{number:02}.yaml").write_text("replicas: 3\n")
    result = run("why", "web", "-f", folder)
    assert result.stderr.count("left out") == 10
    assert "warning: and 5 more such" in result.stderr


def test_a_template_within_a_directory_is_named_and_the_rest_is_answered_only_where_dumps_may_be_broken(tmp_path):
    folder = tmp_path / "dump"
    folder.mkdir()
    write_objects(folder / "a.yaml", *OBJECTS)
    (folder / "web.yaml").write_text("kind: Pod\nmetadata:\n  name: {{ .Values.name }}\n")
    pod_file = write_objects(tmp_path / "p.yaml", ASKED)
    result = run("evaluate", "-f", folder, "--pod", pod_file)
    assert result.exit_code == 1
    assert "looks like a template, such as those of Helm" in result.stderr
    result = run("capacity", "-f", folder, "--pod", pod_file)
    assert result.exit_code == 0
    assert "looks like a template, such as those of Helm" in result.stderr


def test_a_directory_that_cannot_be_entered_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("os.scandir", _refuse)
    result = run("why", "web", "-f", tmp_path)
    assert (result.exit_code, result.stderr) == (1, f"Error: {tmp_path}: Permission denied\n")


def _refuse(path):
    raise PermissionError(13, "Permission denied", path)


CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: podium, plugins: {filter: {disabled: [{name: NodeUnschedulable}]}}}]
"""


@pytest.mark.parametrize("is_config_map", [True, False])
@pytest.mark.parametrize("question", ["evaluate", "capacity", "why", "what-if"])
def test_the_configuration_may_be_in_a_config_map_and_on_standard_input(question, is_config_map, tmp_path):
    cluster = write_objects(tmp_path / "c.yaml", node("n1", unschedulable=True), pod("web"))
    arguments = {"why": ("web",), "what-if": ("--apply", write_objects(tmp_path / "p.yaml", ASKED))}.get(
        question, ("--pod", write_objects(tmp_path / "p.yaml", ASKED))
    )
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"c.yaml": CONFIGURATION}}
    text = json.dumps(document) if is_config_map else CONFIGURATION
    command_line = (question, *arguments, "-f", cluster, "-o", "json")
    answers = [run(*command_line), run(*command_line, "--config", "-", stdin=text)]
    assert [answer.exit_code for answer in answers] == [0, 0]
    assert answers[0].stdout != answers[1].stdout
    assert '"n1"' in answers[1].stdout
    path = tmp_path / "config"
    path.write_text(text)
    # Where the configuration is from is part of an answer.
    assert run(*command_line, "--config", path).stdout.replace(str(path), "-") == answers[1].stdout
    result = run(*command_line, "-f", "-", "--config", "-")
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_config_map_with_several_configurations_is_refused_with_its_keys(tmp_path):
    data = {"a.yaml": CONFIGURATION, "b.yaml": CONFIGURATION}
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
    path = write_objects(tmp_path / "config.yaml", document)
    result = run("config", "check", path)
    assert result.exit_code == 3
    assert f"{path}: expected one KubeSchedulerConfiguration, found 2: ConfigMap c: data[a.yaml], " in result.stderr

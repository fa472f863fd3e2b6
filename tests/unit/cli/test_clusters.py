import json
from functools import partial

import pytest

from podium.cli import fleet_source
from podium.config import RELEASES
from podium.engine.files import LocatedManifest
from tests.manifests import node, pod
from tests.unit.cli.commands import run, write_objects
from tests.workload_manifests import workload

_run = partial(run, "clusters", "fit")


@pytest.fixture
def job(tmp_path):
    return write_objects(tmp_path / "job.yaml", workload("Job", "train", parallelism=2, completions=2))


@pytest.fixture
def dumps(tmp_path):
    folder = tmp_path / "dumps"
    (folder / "west").mkdir(parents=True)
    write_objects(folder / "east.yaml", node("e1", "1"))
    write_objects(folder / "west" / "nodes.yaml", node("w1", "4"))
    (folder / ".git").mkdir()
    (folder / "README.md").write_text("dumps")
    return folder


def test_the_clusters_that_take_the_workload_are_shown_with_the_reason_of_the_others(job, dumps):
    result = _run("-f", job, "--clusters", dumps)
    assert result.exit_code == 0
    assert "west takes Job default/train whole (2 pods)" in result.stdout
    assert "after 1 of 2: 0/1 nodes are available: 1 Insufficient cpu." in result.stdout
    assert "w1: 2" in result.stdout


def test_the_proof_names_the_node_of_each_pod(job, dumps):
    answer = json.loads(_run("-f", job, "--clusters", dumps, "-o", "json").stdout)
    assert (answer["best"], answer["pods"], answer["order"]) == ("west", 2, "emptiest")
    assert set(answer["fits"][0]["nodes"].values()) == {"w1"}
    assert [rejection["cluster"] for rejection in answer["rejected"]] == ["east"]
    text = _run("-f", job, "--clusters", dumps, "--proof").stdout
    assert all(pod in text for pod in answer["fits"][0]["nodes"])


def test_none_is_said_and_told_by_the_status(job, tmp_path):
    member = write_objects(tmp_path / "small.yaml", node("n1", "1"))
    result = _run("-f", job, "--member", f"small={member}", "--exit-code")
    assert result.exit_code == 3
    assert "None takes Job default/train whole (2 pods)" in result.stdout


def test_a_member_that_cannot_be_read_is_named_and_the_others_answer(job, dumps):
    (dumps / "broken.yaml").write_text("{")
    result = _run("-f", job, "--clusters", dumps, "--member", f"gone={dumps / 'gone.yaml'}")
    assert result.exit_code == 0
    assert "the answer is without broken: " in result.stderr
    assert "the answer is without gone: " in result.stderr
    assert "west takes" in result.stdout


def test_kubeconfigs_of_which_one_cannot_be_reached_leave_the_others(job, dumps, tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    server = {"name": "off", "cluster": {"server": "http://127.0.0.1:1"}}
    contexts = [
        {"name": "off", "context": {"cluster": "off", "user": ""}},
        {"name": "odd", "context": {"cluster": "missing", "user": ""}},
    ]
    kubeconfig.write_text(json.dumps({"clusters": [server], "contexts": contexts, "users": []}))
    result = _run("-f", job, "--clusters", dumps, "--kubeconfig", kubeconfig)
    assert result.exit_code == 0
    assert "the answer is without off: " in result.stderr
    assert "the answer is without odd: " in result.stderr
    assert "west takes" in result.stdout


@pytest.fixture
def resized_objects():
    """A node with 4 CPUs and a pod that 1.37 counts with 3, and 1.36 with 1 since its container has no amount yet."""
    status = {"phase": "Running", "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "3"}}]}
    return [node("n1", "4"), pod("grows", "1", node="n1", status=status)]


@pytest.fixture
def contexts(tmp_path, monkeypatch, resized_objects):
    """A kubeconfig whose contexts are alike but for the minor that they are named after."""

    async def list_objects(kubeconfig, context):
        return [LocatedManifest(item, context) for item in resized_objects], RELEASES[context]

    monkeypatch.setattr(fleet_source, "list_objects", list_objects)
    kubeconfig = tmp_path / "kubeconfig"
    contexts = [{"name": minor, "context": {"cluster": "c", "user": ""}} for minor in RELEASES]
    kubeconfig.write_text(json.dumps({"clusters": [], "contexts": contexts, "users": []}))
    return kubeconfig


def test_each_member_decides_as_its_own_minor_and_dumps_as_the_newest(job, contexts, resized_objects, tmp_path):
    dump = write_objects(tmp_path / "dump.yaml", *resized_objects)
    result = _run("-f", job, "--kubeconfig", contexts, "--member", f"dump={dump}", "-o", "json")
    answer = json.loads(result.stdout)
    assert [fit["cluster"] for fit in answer["fits"]] == ["1.36"]
    assert [rejection["cluster"] for rejection in answer["rejected"]] == ["1.37", "dump"]
    assert "deciding as kube-scheduler 1.36 in 1.36: the API server says so" in result.stderr
    assert "deciding as kube-scheduler 1.37" not in result.stderr


@pytest.mark.parametrize(("minor", "fits"), [("1.36", ["1.36", "1.37", "dump"]), ("1.37", [])])
def test_decide_as_overrides_the_minor_of_every_member(job, contexts, resized_objects, tmp_path, minor, fits):
    dump = write_objects(tmp_path / "dump.yaml", *resized_objects)
    options = ("--kubeconfig", contexts, "--member", f"dump={dump}", "--decide-as", minor, "-o", "json")
    result = _run("-f", job, *options)
    assert sorted(fit["cluster"] for fit in json.loads(result.stdout)["fits"]) == fits
    assert "deciding as" not in result.stderr


def test_a_member_whose_minor_cannot_read_the_configuration_is_left_out(job, contexts, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"plugins": {"podGroupPostFilter": {"disabled": [{"name": "*"}]}}}],
            }
        )
    )
    result = _run("-f", job, "--kubeconfig", contexts, "--config", config, "-o", "json")
    answer = json.loads(result.stdout)
    assert list(answer["without"]) == ["1.36"]
    assert "its API server is of 1.36: " in result.stderr
    assert [rejection["cluster"] for rejection in answer["rejected"]] == ["1.37"]


def test_prices_decide_about_the_cheapest(job, tmp_path):
    label = "node.kubernetes.io/instance-type"
    members = {name: write_objects(tmp_path / f"{name}.yaml", node("n1", labels={label: name})) for name in ("a", "b")}
    prices = tmp_path / "prices.yaml"
    prices.write_text("a: 2\nb: 1.5\n")
    options = [text for name, path in members.items() for text in ("--member", f"{name}={path}")]
    result = _run("-f", job, *options, "--order", "cheapest", "--prices", prices)
    assert "b takes" in result.stdout
    assert "$/HOUR" in result.stdout
    prices.write_text("a: x\n")
    result = _run("-f", job, *options, "--prices", prices)
    assert "prices: a: expected a number from 0 up, got 'x'" in result.stderr
    prices.write_text("- a\n")
    assert "expected one mapping" in _run("-f", job, *options, "--prices", prices).stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give the members with --clusters, --member or --kubeconfig"),
        (["--member", "east"], "--member: expected NAME=FILE, got 'east'"),
        (["--member", "a=x", "--member", "a=y"], "member a is given twice: x and y"),
        (["--clusters", "no-such-directory"], "no-such-directory"),
    ],
)
def test_members_that_are_not_understood_are_refused(job, options, message):
    result = _run("-f", job, *options)
    assert result.exit_code in (1, 2)
    assert message in result.stderr


def test_an_empty_directory_is_refused(job, tmp_path):
    (tmp_path / "none").mkdir()
    result = _run("-f", job, "--clusters", tmp_path / "none")
    assert "it holds neither directories nor files of objects" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give the members in one way: --kubeconfig with --context, or --kubeconfig-dir"),
        (["--kubeconfig", "a", "--kubeconfig-dir", "b"], "give the members in one way"),
        (["--kubeconfig", "no-such-file"], "kubeconfig no-such-file: "),
        (["--kubeconfig-dir", "no-such-directory"], "no-such-directory: "),
        (["--context", "a", "--tls-cert-file", "c"], "--tls-cert-file and --tls-private-key-file go together"),
        (["--context", "a", "--grpc-client-ca-file", "c"], "--grpc-client-ca-file goes with --tls-cert-file"),
        (["--context", "a", "--http-bind-address", ""], "--http-bind-address: expected an address"),
        (["--context", "a", "--prices", "no-such-file"], "no-such-file: "),
    ],
)
def test_a_server_that_is_not_understood_is_not_started(options, message):
    result = run("clusters", "serve", *options)
    assert result.exit_code in (1, 2)
    assert message in result.stderr

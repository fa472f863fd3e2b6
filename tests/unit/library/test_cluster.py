"""The library's cluster: loading, pods by name, workloads, what-if, utilisation, display, and schedulers."""

import gzip
import json
import warnings

import pytest

from podium import Cluster
from podium.engine.errors import ClusterError, ManifestError
from tests.manifests import ZONE, node
from tests.unit.cli.commands import run, write_objects
from tests.unit.insight.room.test_make_room import running, waiting
from tests.unit.library.workloads import deployment, web


def in_namespace(namespace, manifest):
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


def nodes_by_pod(cluster):
    return {pod.key: pod.node_name for pod in cluster.pods}


# ---------------------------------------------------------------- loading


def test_directories_and_several_files_are_loaded(tmp_path):
    folder = tmp_path / "dump"
    (folder / "more").mkdir(parents=True)
    write_objects(folder / "nodes.yaml", node("n1"), node("n2"))
    (folder / "more" / "pods.jsonl.gz").write_bytes(gzip.compress(f"{json.dumps(web('a'))}\n".encode()))
    other_file = write_objects(tmp_path / "other.json", web("b"))
    cluster = Cluster.load(folder)
    assert ([node.name for node in cluster.nodes], nodes_by_pod(cluster)) == (["n1", "n2"], {"default/a": ""})
    assert nodes_by_pod(Cluster.load([folder, str(other_file), web("c")])) == {
        "default/a": "",
        "default/b": "",
        "default/c": "",
    }


def test_an_object_that_is_replaced_by_a_later_one_is_warned_about(tmp_path):
    first, second = (
        write_objects(tmp_path / "a.yaml", node("n1", "1")),
        write_objects(tmp_path / "b.yaml", node("n1", "8")),
    )
    with pytest.warns(UserWarning, match="Node n1: is there with other contents in .*a.yaml: document 1") as warned:
        cluster = Cluster.load([first, second])
    assert warned[0].filename == __file__
    assert cluster.nodes[0].status.allocatable["cpu"] == "8"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Cluster.load([first, first])


def test_a_missing_file_raises_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Cluster.load(tmp_path / "nowhere")
    with pytest.raises(ManifestError, match=r"objects\[1\]: expected an object, got the value 'nowhere'"):
        Cluster.load([node("n1"), "nowhere"])


def test_pods_with_only_a_generate_name_get_names():
    nameless = {**web(""), "metadata": {"generateName": "web-"}}
    cluster = Cluster.load([node("n1"), nameless, nameless])
    cluster.add(nameless)
    names = [pod.metadata.name for pod in cluster.pods]
    assert len(set(names)) == 3
    assert all(len(name) == len("web-x2x4k") and name.startswith("web-") for name in names)
    assert cluster.evaluate(nameless).node == "n1"


def test_the_configuration_may_be_given_as_a_config_map():
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: x}]"
    )
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"config.yaml": text}}
    assert list(Cluster.load([node("n1")], config_map).profiles) == ["x"]


# ---------------------------------------------------------------- pods by name, and workloads


@pytest.mark.parametrize("name", ["shop/report", "report"])
def test_questions_accept_the_name_of_a_pod(name):
    report = in_namespace("shop", web("report", "8"))
    cluster = Cluster.load([node("n1", "4"), node("n2", "16"), report, in_namespace("shop", web("web")), web("web")])
    assert cluster.why(name).pod == "shop/report"
    assert cluster.evaluate(name).node == "n2"
    assert cluster.fixes(name).fits
    assert cluster.capacity(name).fits == 2
    assert cluster.scores(name).node.tolist() == ["n2"]
    assert cluster.place(name).node == "n2"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("web", "there are 2 pods named web: give one of default/web, shop/web"),
        ("shop/reprot", "there is no pod shop/reprot; did you mean shop/report?"),
        ("reprot", "there is no pod reprot; did you mean shop/report?"),
        ("default/report", "there is no pod default/report; did you mean shop/report?"),
        ("nothing-like-it", "there is no pod nothing-like-it$"),
    ],
)
def test_an_unknown_or_ambiguous_pod_name_is_refused_with_suggestions(name, error):
    pods = [in_namespace("shop", web("report")), in_namespace("shop", web("web")), web("web")]
    with pytest.raises(ClusterError, match=error):
        Cluster.load([node("n1"), *pods]).why(name)


def test_questions_about_a_workload_are_about_one_of_its_pods():
    cluster = Cluster.load([node("n1", "4")])
    assert cluster.evaluate(deployment()).node == "n1"
    assert cluster.capacity(deployment()).fits == 4
    assert cluster.why(deployment(cpu="9")).node is None
    assert cluster.headroom(deployment(), 2).fits
    job = {**deployment(), "apiVersion": "batch/v1", "kind": "Job"}
    cron_job = {**job, "kind": "CronJob", "spec": {"jobTemplate": {"spec": job["spec"]}}}
    for workload in (job, cron_job, {**deployment(), "kind": "StatefulSet"}, {**deployment(), "kind": "ReplicaSet"}):
        assert cluster.capacity(workload).fits == 4
    with pytest.raises(ManifestError, match="kind: expected a Pod, got a Node"):
        cluster.evaluate(node("n2"))


def test_a_workload_that_is_added_is_pending():
    cluster = Cluster.load([node("n1", "4")])
    cluster.add(deployment(replicas=2))
    assert len(nodes_by_pod(cluster)) == 2
    assert {placement.node for placement in cluster.place_all()} == {"n1"}
    placements = nodes_by_pod(cluster)
    with pytest.raises(ManifestError, match="Deployment default/web already exists"):
        cluster.add(deployment())
    assert nodes_by_pod(cluster) == placements
    cluster.add(deployment(namespace="shop"))
    assert sum(key.startswith("shop/") for key in nodes_by_pod(cluster)) == 3
    with pytest.raises(ManifestError, match=r"Deployment: metadata.name: required"):
        cluster.add({**deployment(), "metadata": {}})


def test_a_workload_whose_pods_are_refused_is_not_added():
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "default"}}
    limits["spec"] = {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}
    cluster = Cluster.load([node("n1", "4"), limits])
    with pytest.raises(ManifestError, match="must be less than or equal to cpu limit of 1"):
        cluster.add(deployment(cpu="2"))
    assert cluster.pods == ()


def test_a_fork_does_not_see_what_is_added_to_the_original():
    cluster = Cluster.load([node("n1", "4")])
    fork = cluster.fork()
    cluster.add(deployment(replicas=2))
    assert (len(cluster.pods), len(fork.pods)) == (2, 0)


# ---------------------------------------------------------------- what-if


def two_nodes():
    return Cluster.load([node("n1", "4"), node("n2", "4"), web("old", "1", node="n1"), web("waits", "8")])


@pytest.mark.parametrize(
    "ask",
    [
        lambda cluster: cluster.what_if({"drain": "n1"}),
        lambda cluster: cluster.what_if([{"drain": "n1"}]),
        lambda cluster: cluster.what_if(drain="n1"),
        lambda cluster: cluster.what_if(drain=["n1"]),
    ],
)
def test_what_if_gives_the_same_answer_as_the_command_and_changes_nothing(ask, tmp_path):
    objects = [node("n1", "4"), node("n2", "4"), web("old", "1", node="n1"), web("waits", "8")]
    cluster = Cluster.load(objects)
    # Whether a drained pod without a controller comes back may change: the library must only agree with the command.
    answer = json.loads(
        run("what-if", "-f", write_objects(tmp_path / "c", *objects), "--drain", "n1", "-o", "json").stdout
    )
    assert ask(cluster).as_dict() == {name: answer[name] for name in ask(cluster).as_dict()}
    assert nodes_by_pod(cluster) == {"default/old": "n1", "default/waits": ""}


def test_steps_are_carried_out_in_order(tmp_path):
    path = write_objects(tmp_path / "more.yaml", deployment("more", 2))
    outcome = two_nodes().what_if(
        {"addNodes": {"count": 1, "like": "n1"}},
        apply=[deployment("web", 3), web("alone")],
        add_nodes={"count": 1, "like": "n2"},
    )
    assert len(outcome.placed) == 4
    assert [pending.pod for pending in outcome.still_pending] == ["default/waits"]
    assert len(two_nodes().what_if(apply=path).placed) == 2
    assert len(two_nodes().what_if({"apply": deployment("web", 3)}, {"remove": "Node/n2"}).placed) == 3


def test_what_if_can_use_another_configuration():
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}},
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    assert [placement.pod for placement in two_nodes().what_if(config=config).placed] == ["default/waits"]


@pytest.mark.parametrize(
    ("steps", "options", "error"),
    [
        ((), {}, "there are no steps"),
        (({"drian": "n1"},), {}, r"steps\[0\]\.drian: unknown step; did you mean drain\?"),
        (({"drain": 3},), {}, r"steps\[0\].drain: expected a string"),
        ((), {"drain": "n9"}, "there is no node n9"),
        ((), {"apply": []}, "nothing"),
    ],
)
def test_invalid_or_missing_steps_are_refused(steps, options, error):
    with pytest.raises(ClusterError, match=error):
        two_nodes().what_if(*steps, **options)


# ---------------------------------------------------------------- utilisation and display


def test_utilisation_is_by_zone_and_resource():
    objects = [node("n1", "4", labels={ZONE: "a"}), node("n2", "4", labels={ZONE: "b"}), web("old", "1", node="n1")]
    utilisation = Cluster.load(objects).utilisation()
    assert list(utilisation) == ["all", "a", "b"]
    assert (utilisation["all"]["cpu"].requested, utilisation["all"]["cpu"].allocatable) == (1000, 8000)
    assert (utilisation["a"]["cpu"].percent, utilisation["b"]["cpu"].percent) == (25.0, 0.0)


def test_the_repr_of_a_cluster_gives_its_size():
    text = repr(two_nodes())
    assert text == "podium.Cluster(nodes=2, pods=2, pending=1, profiles=['default-scheduler'])"
    assert repr(Cluster.load([])) == "podium.Cluster(nodes=0, pods=0, pending=0, profiles=['default-scheduler'])"


def test_the_notebook_table_escapes_markup_in_names():
    objects = [
        node("n1", "4", labels={ZONE: "<b>a\u202e\x1b"}),
        node("n2", "4", labels={ZONE: "b"}),
        web("old", "1", node="n1"),
    ]
    page = Cluster.load(objects)._repr_html_()
    assert "2 nodes, 1 pods, 0 of them pending; profiles: default-scheduler" in page
    assert "&lt;b&gt;a\\u202e\\x1b<" in page
    assert "<b>a" not in page
    assert '<td title="1 of 4">25.0 %</td>' in page
    assert Cluster.load([])._repr_html_().startswith("<div>")
    nodes = [node(f"n{number}", labels={ZONE: f"zone-{number:02}"}) for number in range(25)]
    assert "and 5 more zones" in Cluster.load(nodes)._repr_html_()


# ---------------------------------------------------------------- schedulers


def pod_of_scheduler(name, **fields):
    return {**(manifest := web("web", **fields)), "spec": {**manifest["spec"], "schedulerName": name}}


def config_for(name="mine"):
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**head, "profiles": [{"schedulerName": name}]}


@pytest.mark.parametrize(
    ("name", "config", "warning"),
    [
        ("podum", None, "No profile serves spec.schedulerName podum: nothing schedules it; did you mean podium?"),
        ("mien-scheduler", config_for("mine-scheduler"), "nothing schedules it; did you mean mine-scheduler?"),
        (
            "volcano",
            config_for(),
            "nothing schedules it, unless another scheduler does; the cluster's configuration serves",
        ),
        ("default-scheduler", config_for(), "kube-scheduler schedules it"),
        ("default-scheduler", None, ""),
        ("podium", None, ""),
        ("mine", config_for(), ""),
    ],
)
def test_why_warns_about_a_pod_that_no_profile_serves(name, config, warning):
    cluster = Cluster.load([node("n1"), pod_of_scheduler(name)], config=config)
    for subject in ("default/web", pod_of_scheduler(name)):
        answer = cluster.why(subject)
        assert (answer.node, answer.pod) == ("n1", "default/web")
        assert warning in answer.warning
        assert bool(answer.warning) == bool(warning) == ("warning" in answer.as_dict())


def test_why_gives_the_same_scheduler_warning_as_the_command(tmp_path):
    items = [node("n1", "1"), pod_of_scheduler("podum", cpu="4")]
    answer = Cluster.load(items).why("web")
    command_answer = json.loads(
        run("why", "web", "-f", write_objects(tmp_path / "c.yaml", *items), "-o", "json").stdout
    )
    assert answer.warning == command_answer["scheduler"]["warning"]
    assert (answer.message, answer.node) == (command_answer["message"], None)


def test_other_questions_about_a_pod_that_no_profile_serves_suggest_a_profile():
    cluster = Cluster.load([node("n1"), pod_of_scheduler("defaultscheduler")])
    for ask in (cluster.evaluate, cluster.capacity, cluster.fixes, cluster.scores):
        with pytest.raises(ClusterError, match="only default-scheduler; did you mean default-scheduler"):
            ask("web")


# ---------------------------------------------------------------- moves and drains


def test_room_is_made_and_drains_are_ordered_without_changing_anything():
    cluster = Cluster.load([node("n1", "4"), node("n2", "2"), running("web-1", "1", "n1"), waiting()])
    answer = cluster.make_room("default/big")
    assert [(step.pod, step.source, step.target) for step in answer.plan.steps] == [("default/web-1", "n1", "n2")]
    order = cluster.drain_order("n1")
    assert [(batch.nodes, [move.target for move in batch.moves]) for batch in order.batches] == [(("n1",), ["n2"])]
    assert nodes_by_pod(cluster) == {"default/web-1": "n1", "default/big": ""}

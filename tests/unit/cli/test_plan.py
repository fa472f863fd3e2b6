import gzip
import json
import random
from functools import partial

import pytest

from podium.objects.quantity import milli_value
from tests.unit.cli.commands import run, write_objects
from tests.unit.provisioner.clusters import (
    TYPES,
    ZONE,
    daemon_set,
    instance_type,
    managed_node,
    node,
    node_claim,
    node_pool,
    pod,
    requirement,
    spread,
)

_run = partial(run, "plan")

CATALOGUE = {"catalogue": "few", "instanceTypes": list(TYPES)}


def _case(name, *objects):
    time = "2026-06-01T12:00:00Z"
    return {"id": name, "kind": "solve", "now": time, "catalogue": "few", "objects": [node_pool(), *objects]}


def _write_lines(path, *lines):
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n")
    return path


def _answers(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_cases_are_answered_in_the_order_of_the_file(tmp_path):
    path = _write_lines(tmp_path / "cases.jsonl", CATALOGUE, _case("b", pod("web")), "", _case("a"))
    result = _run("--cases", path)
    assert (result.exit_code, result.stderr) == (0, "")
    first, second = _answers(result)
    assert list(first) == ["id", "ignored", "skipped", "existing", "claims", "errors"]
    assert (first["id"], first["claims"][0]["pods"]) == ("b", ["default/web"])
    assert second == {"id": "a", "ignored": {}}


def test_compressed_cases_and_cases_from_standard_input_are_read(tmp_path):
    lines = _write_lines(tmp_path / "cases.jsonl", CATALOGUE, _case("a", pod("web"))).read_bytes()
    packed = tmp_path / "cases.jsonl.gz"
    packed.write_bytes(gzip.compress(lines))
    assert _run("--cases", packed).stdout == _run("--cases", "-", stdin=lines.decode()).stdout != ""


def test_a_case_of_many_pods_is_answered_alike_in_whatever_order_its_objects_come(tmp_path):
    pods = [pod(f"p{index}", cpu=str(1 + index % 3)) for index in range(9)]
    first = _run("--cases", _write_lines(tmp_path / "one", CATALOGUE, _case("a", *pods)))
    second = _run("--cases", _write_lines(tmp_path / "other", CATALOGUE, _case("a", *reversed(pods))))
    assert first.stdout == second.stdout


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("{", "not a case: "),
        ("[]", "not a case: expected an object"),
        ({**_case("x"), "kind": "guess"}, 'kind: "guess" is not'),
        ({**_case("x"), "now": "noon"}, 'now: "noon" is not a timestamp'),
        ({**_case("x"), "objects": 3}, "objects: is not a list"),
        ({**_case("x"), "catalogue": "none"}, 'catalogue: "none" is not defined'),
        ({"catalogue": "bad", "instanceTypes": [{"name": 3}]}, "instanceTypes[0].name: 3 is not a text"),
        (_case("x", pod("web", cpu="lots")), 'objects[1].spec.containers[0].resources.requests[cpu]: "lots"'),
        (_case("x", {**pod("web"), "spec": "none"}), "objects[1].spec: expected `object`, got `str`".replace("`", "")),
    ],
)
def test_a_broken_line_is_named_and_does_not_stop_the_others(tmp_path, line, text):
    path = _write_lines(tmp_path / "cases.jsonl", CATALOGUE, _case("a", pod("web")), line, _case("b"))
    result = _run("--cases", path)
    assert result.exit_code == 1
    assert [answer["id"] for answer in _answers(result)] == ["a", "b"]
    (error_line,) = result.stderr.splitlines()
    assert error_line.startswith(f"Error: {path}:3: {text}")


def test_a_wrong_file_is_refused_at_its_first_line(tmp_path):
    path = _write_lines(tmp_path / "dump.yaml", "apiVersion: v1", "kind: List", "items: []")
    result = _run("--cases", path)
    assert result.exit_code == 1
    (error_line,) = result.stderr.splitlines()
    assert error_line.startswith(f"Error: {path}:1: not a case: ")


def test_a_file_without_cases_is_an_error(tmp_path):
    path = _write_lines(tmp_path / "cases.jsonl", CATALOGUE)
    result = _run("--cases", path)
    assert result.exit_code == 1
    assert f"{path}: none of its lines is a case" in result.stderr


def test_a_torn_archive_is_named_after_its_answers(tmp_path):
    lines = "".join(f"{json.dumps(_case(f'c{index}', pod('web')))}\n" for index in range(200))
    path = tmp_path / "cases.jsonl.gz"
    path.write_bytes(gzip.compress(f"{json.dumps(CATALOGUE)}\n{lines}".encode())[:-100])
    result = _run("--cases", path)
    assert result.exit_code == 1
    assert str(path) in result.stderr
    assert _answers(result)[0]["id"] == "c0"


# ------------------------------------------------------------ clusters

_VERSIONS = {"DaemonSet": "apps/v1", "Deployment": "apps/v1", "NodePool": "karpenter.sh/v1"}
CORES = "karpenter.kwok.sh/instance-cpu"


def _cluster(path, *objects):
    return write_objects(path, *({"apiVersion": _VERSIONS.get(item["kind"], "v1"), **item} for item in objects))


def _lines(result):
    return [" ".join(line.split()) for line in result.stdout.splitlines() if line.strip()]


def _json(*arguments):
    result = _run(*arguments, "--output", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def _deployment(name, replicas, **spec):
    template = {"metadata": {"labels": {"app": name}}, "spec": pod(name, **spec)["spec"]}
    return {"kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": replicas, "template": template}}


@pytest.fixture
def types(tmp_path):
    path = tmp_path / "types.json"
    path.write_text(json.dumps(list(TYPES)))
    return path


def test_text_shows_nodes_to_buy_pods_that_go_and_stay_and_utilisation(tmp_path, types):
    small, large = (pod(name, cpu=cpu) for name, cpu in (("few", "1"), ("many", "99")))
    cluster = _cluster(tmp_path / "c", node_pool(), node("n1", cpu="1"), small, large, pod("more", cpu="3"))
    lines = _lines(_run("-f", cluster, "--catalogue", types))
    assert "pool 1 default 2 0.2800 0.2800 1 204.40" in lines
    assert "n1 1 default/few" in lines
    assert any(line.startswith("default/many pool no instance type has enough resources") for line in lines)
    (cpu,) = [line for line in lines if line.startswith("cpu ")]
    assert cpu.startswith("cpu ░")
    assert "0% of 1 cores" in cpu
    assert "82% of 4.9 cores" in cpu
    cost = "0.2800 per hour, 204.40 per month"
    assert lines[-1] == f"1 node to buy for 1 pod: {cost}; 1 pod on existing nodes; 1 pod unplaced"


def test_pods_that_stay_for_the_same_reasons_are_shown_together(tmp_path, types):
    added_file = _cluster(tmp_path / "a", _deployment("web", 9, cpu="99"))
    lines = _lines(_run("-f", _cluster(tmp_path / "c", node_pool()), "--catalogue", types, "--add", added_file))
    (row,) = [line for line in lines if "no instance type has enough resources" in line]
    assert row.startswith("default/web-0, default/web-1, default/web-2 and 6 more pool no instance type")
    assert lines[-1] == "No node to buy; 9 pods unplaced"


def test_json_has_everything(tmp_path, types):
    cluster = _cluster(tmp_path / "c", node_pool(), node("n1", cpu="1"), pod("few"), pod("many", cpu="99"), pod("more"))
    answer = _json("-f", cluster, "--catalogue", types)
    (bought,) = answer["new_nodes"]
    assert (bought["pool"], bought["cheapest_type"], bought["pods"]) == ("pool", "small", ["default/more"])
    assert (bought["instance_types"], bought["price_at_worst"]) == (["small", "default", "arm"], pytest.approx(0.14))
    assert bought["monthly_cost"] == answer["monthly_cost"] == pytest.approx(0.14 * 730)
    assert answer["existing"] == {"n1": ["default/few"]}
    (stays,) = answer["unschedulable"]
    assert (stays["pod"], list(stays["pools"])) == ("default/many", ["pool"])
    assert answer["utilisation"]["before"]["cpu"] == {"requested": "0", "allocatable": "1"}
    assert answer["utilisation"]["after"]["cpu"] == {"requested": "2", "allocatable": "2900m"}


def test_the_plan_is_the_same_in_whatever_order_the_objects_come(tmp_path, types):
    rules = {"topologySpreadConstraints": [spread()]}
    pods = [pod(f"p{n}", cpu=str(1 + n % 3), labels={"app": "web"}, **rules) for n in range(12)]
    objects = [
        node_pool(),
        node_pool("other"),
        *(node(f"n{n}", zone=f"zone-{n}") for n in range(3)),
        daemon_set(),
        *pods,
    ]
    answers = set()
    for seed in range(5):
        random.Random(seed).shuffle(objects)
        cluster = _cluster(tmp_path / "c", *objects)
        answers.add(_run("-f", cluster, "--catalogue", types, "--output", "json").stdout)
        answers.add(_run("-f", cluster, "--catalogue", types, "--output", "json").stdout)
    assert len(answers) == 1


def test_without_a_catalogue_there_are_generic_types_in_the_zones_of_the_nodes(tmp_path):
    cluster = _cluster(tmp_path / "c", node_pool(), pod("web", cpu="3"))
    (bought,) = _json("-f", cluster)["new_nodes"]
    assert (bought["cheapest_type"], bought["price"]) == ("c-4x-amd64-linux", None)
    cluster = _cluster(tmp_path / "c", node_pool(), node(zone="here"), pod("web", cpu="5", nodeSelector={ZONE: "here"}))
    (bought,) = _json("-f", cluster)["new_nodes"]
    assert {"key": ZONE, "operator": "In", "values": ["here"]} in bought["requirements"]


def test_an_older_form_of_the_catalogue_is_read(tmp_path):
    offering = {"capacityType": "on-demand", "zone": "z", "price": 0.5, "available": True}
    old = {"name": "a.large", "architecture": "amd64", "operatingSystems": ["linux"], "offerings": [offering]}
    (tmp_path / "t").write_text(json.dumps([{**old, "resources": {"cpu": "4", "memory": "8Gi"}}]))
    cluster = _cluster(tmp_path / "c", node_pool(), pod("web"))
    (bought,) = _json("-f", cluster, "--catalogue", tmp_path / "t")["new_nodes"]
    assert (bought["cheapest_type"], bought["price"]) == ("a.large", 0.5)


def test_workloads_can_be_added(tmp_path, types):
    cluster = _cluster(tmp_path / "c", node_pool())
    added_file = _cluster(tmp_path / "a", _deployment("web", 3, cpu="1500m"), pod("one", cpu="100m", node="n9"))
    agent = _cluster(tmp_path / "d", daemon_set(cpu="200m"))
    answer = _json("-f", cluster, "--catalogue", types, "--add", added_file, "--add", agent)
    pods = [name for new_node in answer["new_nodes"] for name in new_node["pods"]]
    assert sorted(pods) == ["default/one", "default/web-0", "default/web-1", "default/web-2"]
    # The DaemonSet's pod takes its part of every node.
    requested_milli = sum(milli_value(new_node["requests"]["cpu"]) for new_node in answer["new_nodes"])
    assert requested_milli == 4600 + 200 * len(answer["new_nodes"])


def test_node_pools_can_come_from_a_file_of_their_own_and_need_no_state(tmp_path, types):
    bare = {"kind": "NodePool", "metadata": {"name": "bare"}, "spec": {"template": {"spec": {}}}}
    pools = _cluster(tmp_path / "p", bare)
    cluster = _cluster(tmp_path / "c", node_pool("other"), pod("web"))
    (bought,) = _json("-f", cluster, "--catalogue", types, "--node-pools", pools)["new_nodes"]
    assert bought["pool"] == "bare"


def test_node_pools_of_any_provider_count(tmp_path, types):
    aws = node_pool()
    aws["spec"]["template"]["spec"]["nodeClassRef"] = {
        "group": "karpenter.k8s.aws",
        "kind": "EC2NodeClass",
        "name": "x",
    }
    cluster = _cluster(tmp_path / "c", aws, pod("web"))
    assert len(_json("-f", cluster, "--catalogue", types)["new_nodes"]) == 1


def test_pods_that_nobody_has_tried_are_planned_for_where_that_is_asked_for(tmp_path, types):
    cluster = _cluster(tmp_path / "c", node_pool(), pod("fresh", status={"phase": "Pending"}))
    result = _run("-f", cluster, "--catalogue", types)
    assert "No node to buy" in result.stdout
    assert "1 pod not planned for" in result.stdout
    assert _json("-f", cluster)["not_tried"] == ["default/fresh"]
    assert len(_json("-f", cluster, "--assume-unschedulable")["new_nodes"]) == 1


def test_nodes_without_karpenter_can_be_adopted(tmp_path):
    group = "eks.amazonaws.com/nodegroup"
    labels = {group: "workers", "node.kubernetes.io/instance-type": "m5.large", "kubernetes.io/arch": "amd64"}
    cluster = _cluster(
        tmp_path / "c", node("n1", cpu="2", zone="z1", **labels), pod("web", cpu="2"), pod("two", cpu="2")
    )
    answer = _json("-f", cluster, "--adopt-nodes")
    (bought,) = answer["new_nodes"]
    assert (bought["pool"], bought["cheapest_type"]) == ("workers", "m5.large")
    assert answer["existing"] == {"n1": ["default/web"]}


def test_why_shows_the_answers_of_pools_and_nodes(tmp_path, types):
    taint = {"key": "gpu", "effect": "NoSchedule"}
    nodes = (node("n1", cpu="2"), node("n2", taints=[taint]))
    cluster = _cluster(tmp_path / "c", node_pool(), node_pool("tainted", taints=[taint]), *nodes, pod("web", cpu="99"))
    lines = _lines(_run("-f", cluster, "--catalogue", types, "--why", "web"))
    assert any(line.startswith("pool no instance type has enough resources") for line in lines)
    assert "tainted did not tolerate taint (taint=gpu:NoSchedule)" in lines
    assert 'n1 has {"cpu":"97000m"} too little' in lines
    assert "n2 did not tolerate taint (taint=gpu:NoSchedule)" in lines
    assert any(line.startswith("default/web stays: ") for line in lines)


def test_the_exit_status_says_whether_a_pod_stays_if_asked_for(tmp_path, types):
    cluster = _cluster(tmp_path / "c", node_pool(), pod("web", cpu="99"))
    assert _run("-f", cluster, "--catalogue", types, "--exit-code").exit_code == 3
    assert _run("-f", cluster, "--catalogue", types).exit_code == 0


# ------------------------------------------------------------ bad input


def _offer(**change):
    instance = json.loads(json.dumps(TYPES[0]))
    instance["offerings"][0].update(change)
    return [TYPES[1], {**instance, "offerings": [{k: v for k, v in instance["offerings"][0].items() if v != "gone"}]}]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (_offer(price=-1), "[1].offerings[0].price: -1 is not a price"),
        (_offer(price=1e308), "[1].offerings[0].price: 1e+308 is not a price"),
        (_offer(price="gone"), "[1].offerings[0].price: is missing"),
        (
            _offer(requirements=[requirement(ZONE, "Near")]),
            '[1].offerings[0].requirements[0].operator: "Near" is not one',
        ),
        ({"items": []}, "catalogue: is not a list of instance types"),
        ([3], "[0]: is not an object"),
        ([{"name": "a"}], "[0].resources: is missing"),
    ],
)
def test_a_fault_of_the_catalogue_is_named_by_file_and_field(tmp_path, content, text):
    path = tmp_path / "types.json"
    path.write_text(json.dumps(content))
    result = _run("-f", _cluster(tmp_path / "c", node_pool()), "--catalogue", path)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {path}: {text}")


def test_a_catalogue_that_is_no_json_is_refused(tmp_path):
    (tmp_path / "t").write_text("a: b")
    result = _run("-f", _cluster(tmp_path / "c", node_pool()), "--catalogue", tmp_path / "t")
    assert f"{tmp_path / 't'}: not JSON" in result.stderr


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({**node(), "status": 3}, "Node node-1: status: expected object, got int"),
        ({**node(), "metadata": {}}, "Node: metadata.name: is missing"),
    ],
)
def test_a_fault_of_an_object_is_named_by_file_and_field(tmp_path, item, text):
    path = _cluster(tmp_path / "c.yaml", node_pool("first"), item)
    result = _run("-f", path)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {path}: document 2: {text}")


_CLOSED = ", so nothing is bought from it, and its nodes stay"


@pytest.mark.parametrize(
    ("item", "text", "consequence"),
    [
        (
            node_pool("odd", requirements=[requirement(ZONE, "Near", "z")]),
            'NodePool odd: spec.template.spec.requirements[0].operator: "Near" is not one of In, NotIn,',
            _CLOSED,
        ),
        (
            node_pool("odd", disruption={"consolidationPolicy": "Never"}),
            'NodePool odd: spec.disruption.consolidationPolicy: "Never" is not one of WhenEmpty, WhenEmptyOrUnder',
            _CLOSED,
        ),
        (
            {**node_pool("odd"), "spec": {"template": 7}},
            "NodePool odd: spec.template: expected object, got int",
            _CLOSED,
        ),
        (
            node_pool("odd", disruption={"budgets": [{"nodes": "1", "schedule": "0 0 31", "duration": "1h"}]}),
            "NodePool odd: spec.disruption.budgets[0].schedule: ",
            _CLOSED,
        ),
        (
            pod("web", cpu="lots"),
            "Pod default/web: spec.containers[0].resources.requests[cpu]: ",
            ", so it is left out",
        ),
    ],
)
def test_an_object_that_cannot_be_used_spoils_only_itself(tmp_path, item, text, consequence):
    path = _cluster(tmp_path / "c.yaml", node_pool("first"), item, pod("other"))
    result = _run("-f", path, "-o", "json")
    assert result.exit_code == 0
    assert result.stderr.startswith(f"warning: {path}: document 2: {text}")
    assert result.stderr.strip().endswith(consequence)
    answer = json.loads(result.stdout)
    assert [new["pods"] for new in answer["new_nodes"]] == [["default/other"]]
    assert list(answer["skipped"]) == (["odd"] if consequence is _CLOSED else [])


@pytest.mark.parametrize("schedule", ["0 0 * * 7", "CRON_TZ=Europe/Paris 0 9 * * 1", "TZ=UTC 0 0 * * *", "x y z a b"])
def test_a_schedule_that_only_the_api_server_takes_lets_no_node_go_and_nodes_are_bought(tmp_path, schedule):
    budgets = [{"nodes": "100%", "schedule": schedule, "duration": "1h"}]
    path = _cluster(tmp_path / "c.yaml", node_pool("odd", disruption={"budgets": budgets}), pod("web"))
    result = _run("-f", path, "-o", "json")
    assert [new["pool"] for new in json.loads(result.stdout)["new_nodes"]] == ["odd"]
    assert "NodePool odd: spec.disruption.budgets[0].schedule: " in result.stderr
    assert result.stderr.strip().endswith(", so its nodes stay")


def test_gates_are_karpenters_and_others_are_refused(tmp_path):
    path = _cluster(tmp_path / "c.yaml", node_pool())
    result = _run("-f", path, "--feature-gates", "SpotToSpotConsolidation=true,NodeRepair=true")
    assert (result.exit_code, result.stderr) == (
        0,
        "warning: --feature-gates: what NodeRepair switches on is not planned\n",
    )
    for text, detail in (("Bogus=true", "Bogus: is not one of NodeRepair"), ("NodeRepair=yes", '"yes" is neither')):
        result = _run("-f", path, "--feature-gates", text)
        assert result.exit_code == 2
        assert detail in result.stderr


def test_of_an_object_that_is_there_twice_the_last_one_counts(tmp_path):
    first = _cluster(tmp_path / "one", node_pool(), node("n1"), pod("web"))
    second = _cluster(tmp_path / "other", node("n1"))
    assert _run("-f", first, "-f", second).exit_code == 0
    second = _cluster(tmp_path / "other", node("n1", cpu="8"))
    result = _run("-f", first, "-f", second)
    assert result.exit_code == 0
    assert f"{second}: document 1: Node n1: is there with other contents in {first}: document 2" in result.stderr


@pytest.mark.parametrize("count", [-1, "many", 10**9])
def test_an_unusable_number_of_replicas_is_named(tmp_path, count):
    added_file = _cluster(tmp_path / "a", _deployment("web", count))
    result = _run("-f", _cluster(tmp_path / "c", node_pool()), "--add", added_file)
    assert result.exit_code == 1
    assert f"{added_file}: document 1: spec.replicas: {count!r} is not a number of pods" in result.stderr


def test_the_error_for_a_cluster_without_node_pools_names_the_remedy(tmp_path):
    result = _run("-f", _cluster(tmp_path / "c", node(), pod("web")))
    assert result.exit_code == 1
    assert "--node-pools FILE" in result.stderr
    assert "--adopt-nodes" in result.stderr


def test_without_nodes_there_is_nothing_to_adopt(tmp_path):
    result = _run("-f", _cluster(tmp_path / "c", pod("web")), "--adopt-nodes")
    assert (result.exit_code, "the cluster has no nodes to copy" in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("requirements", "text"),
    [
        (
            [requirement(CORES, "Gt", "8"), requirement(CORES, "Lt", "4")],
            f"the requirements on {CORES} contradict each other",
        ),
        ([requirement(ZONE, "In", "mars")], f"no instance type of the catalogue has {ZONE} In [mars]"),
        (
            [requirement("kubernetes.io/arch", "In", "arm64"), requirement(CORES, "In", "2")],
            "no instance type of the catalogue has all that it requires together",
        ),
    ],
)
def test_a_pool_that_nothing_can_be_bought_from_is_explained(tmp_path, types, requirements, text):
    cluster = _cluster(tmp_path / "c", node_pool(requirements=requirements), pod("web"))
    answer = _json("-f", cluster, "--catalogue", types)
    assert answer["skipped"]["pool"].endswith(text)
    assert [refusal["pod"] for refusal in answer["unschedulable"]] == ["default/web"]


@pytest.mark.parametrize(
    ("change", "text"),
    [({"ready": False}, "NodePool is not ready"), ({"replicas": 2}, "NodePool has a fixed number of replicas")],
)
def test_a_pool_that_is_not_bought_from_is_explained(tmp_path, change, text):
    answer = _json("-f", _cluster(tmp_path / "c", node_pool(**change), pod("web")))
    assert answer["skipped"] == {"pool": text}
    assert answer["unschedulable"][0]["reason"] == "no dynamic nodepools found"


def test_a_pod_that_contradicts_itself_stays_with_the_reason(tmp_path, types):
    selector = {"kubernetes.io/arch": "arm64", CORES: "2"}
    answer = _json("-f", _cluster(tmp_path / "c", node_pool(), pod("web", nodeSelector=selector)), "--catalogue", types)
    assert "no instance type" in answer["unschedulable"][0]["pools"]["pool"]


def test_a_cluster_without_nodes_or_pods_has_an_empty_plan(tmp_path, types):
    answer = _json("-f", _cluster(tmp_path / "c", node_pool()), "--catalogue", types)
    assert (answer["new_nodes"], answer["monthly_cost"]) == ([], 0)
    assert answer["utilisation"]["after"]["cpu"] == {"requested": "0", "allocatable": "0"}
    assert "No node to buy" in _run("-f", _cluster(tmp_path / "c", node_pool()), "--catalogue", types).stdout


@pytest.mark.long
def test_thousands_of_pools_are_all_asked(tmp_path, types):
    pools = [node_pool(f"pool-{index}") for index in range(2000)]
    answer = _json("-f", _cluster(tmp_path / "c", *pools, pod("web", cpu="99")), "--catalogue", types)
    (stays,) = answer["unschedulable"]
    assert len(stays["pools"]) == 2000


def test_an_empty_catalogue_is_explained(tmp_path):
    (tmp_path / "t").write_text("[]")
    answer = _json("-f", _cluster(tmp_path / "c", node_pool(), pod("web")), "--catalogue", tmp_path / "t")
    assert answer["skipped"]["pool"].endswith(": the catalogue is empty")


@pytest.mark.parametrize("name", ["nobody", "web"])
def test_a_pod_to_explain_has_to_be_there_once(tmp_path, name):
    namesake = pod("web", metadata={"namespace": "other"})
    result = _run("-f", _cluster(tmp_path / "c", node_pool(), pod("web"), namesake), "--why", name)
    assert result.exit_code == 1
    assert f"{name}: there " in result.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--cases", "x"], "--cases brings its own clusters"),
        (["--kubeconfig", "x"], "give either files with -f"),
        (["--node-pools", "x", "--adopt-nodes"], "give either --node-pools or --adopt-nodes"),
        (["--adopt-nodes"], "--adopt-nodes is for clusters without NodePools"),
        (["--add", "/no/such/file"], "/no/such/file: No such file"),
    ],
)
def test_mistake_is_named(tmp_path, arguments, text):
    result = _run("-f", _cluster(tmp_path / "c", node_pool()), *arguments)
    assert result.exit_code != 0
    assert text in " ".join(result.stderr.split())


def test_podiums_rules_need_no_node_and_give_the_same_bytes_in_any_order(tmp_path):
    objects = [node_pool(), *(pod(f"web-{index}") for index in range(5))]
    first = _run("-f", _cluster(tmp_path / "one.json", *objects), "--rules", "podium", "-o", "json")
    second = _run("-f", _cluster(tmp_path / "other.json", *reversed(objects)), "--rules", "podium", "-o", "json")
    assert (first.exit_code, first.stdout) == (0, second.stdout)
    assert json.loads(first.stdout)["new_nodes"][0]["name"] == "pool-new-0001"
    assert "to buy for 5 pods" in _run("-f", tmp_path / "one.json", "--rules", "podium").stdout


def test_podiums_rules_heed_a_configuration(tmp_path):
    """Without the filter for resources every pod fits on the node that is full."""
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}\n"
    )
    path = _cluster(tmp_path / "cluster.json", node_pool(), node(cpu="1"), pod("web", cpu="3"))
    plain = json.loads(_run("-f", path, "--rules", "podium", "-o", "json").stdout)
    lax = json.loads(_run("-f", path, "--rules", "podium", "--config", config, "-o", "json").stdout)
    assert (len(plain["new_nodes"]), lax["existing"]) == (1, {"node-1": ["default/web"]})


def test_options_of_podiums_rules_are_refused_with_karpenters(tmp_path):
    path = _cluster(tmp_path / "cluster.json", node_pool(), pod("web"))
    result = _run("-f", path, "--config", "config.yaml")
    assert (result.exit_code, "--config, --plugin and --decide-as are for --rules podium" in result.stderr) == (2, True)
    assert _run("--cases", path, "--rules", "podium").exit_code == 2


def test_an_added_workload_of_an_unknown_kind_is_named(tmp_path):
    farm = {"apiVersion": "example.com/v1", "kind": "Farm", "metadata": {"name": "f"}}
    farm["spec"] = {"parts": [{"spec": {"containers": [{"name": "app"}]}}]}
    added_file = write_objects(tmp_path / "added.yaml", {"apiVersion": "v1", **pod("web")}, farm)
    cluster = _cluster(tmp_path / "cluster.json", node_pool())
    stderr = _run("-f", cluster, "--add", added_file).stderr
    assert (
        f"warning: {added_file}: Farm f is left out: podium does not know where a Farm keeps its pod template" in stderr
    )


def _apart(count, key=ZONE):
    """Replicas of which no two may share a domain."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return [pod(f"web-{index}", labels={"app": "web"}, affinity=affinity) for index in range(count)]


def test_a_plan_is_shown_to_its_end_with_its_passes_told_apart(tmp_path):
    types = tmp_path / "types.json"
    types.write_text(json.dumps(list(TYPES)))
    cluster = ("-f", _cluster(tmp_path / "c.yaml", node_pool(), *_apart(3)), "--catalogue", types)
    answer = _json(*cluster)
    assert [new["pass"] for new in answer["new_nodes"]] == [1, 2, 3]
    assert sorted(name for new in answer["new_nodes"] for name in new["pods"]) == [f"default/web-{i}" for i in range(3)]
    assert (answer["passes"], answer["unschedulable"]) == (3, [])
    result = _run(*cluster, "--exit-code")
    assert result.exit_code == 0
    assert "3 nodes to buy for 3 pods in 3 passes" in result.stdout
    assert _lines(result)[0].startswith("PASS NODEPOOL")
    first_pass = _json(*cluster, "--one-pass")
    assert (len(first_pass["new_nodes"]), len(first_pass["unschedulable"]), "passes" in first_pass) == (1, 2, False)
    assert _run(*cluster, "--one-pass", "--exit-code").exit_code == 3


def test_pods_that_no_pass_places_stay_and_the_status_says_so(tmp_path):
    cluster = ("-f", _cluster(tmp_path / "c.yaml", node_pool(), *_apart(4)))
    (tmp_path / "types.json").write_text(json.dumps(list(TYPES)))
    cluster += ("--catalogue", tmp_path / "types.json")
    answer = _json(*cluster)
    assert (answer["passes"], len(answer["new_nodes"]), len(answer["unschedulable"])) == (3, 3, 1)
    assert _run(*cluster, "--exit-code").exit_code == 3
    why = _json(*cluster, "--why", answer["unschedulable"][0]["pod"])
    assert why["outcome"].startswith("stays: ")
    (last,) = answer["new_nodes"][2]["pods"]
    assert _json(*cluster, "--why", last)["outcome"].endswith(", bought in pass 3")


def test_limits_that_one_pass_counts_too_high_are_filled_by_the_next(tmp_path):
    types = tmp_path / "types.json"
    types.write_text(json.dumps([instance_type("small", 2, "4Gi"), instance_type("large", 8, "16Gi")]))
    pool = node_pool(limits={"cpu": "16"})
    web = [pod(f"web-{index}", cpu="1500m", **_one_per_node()) for index in range(6)]
    cluster = ("-f", _cluster(tmp_path / "c.yaml", pool, *web), "--catalogue", types)
    assert len(_json(*cluster, "--one-pass")["unschedulable"]) > 0
    answer = _json(*cluster)
    assert (answer["unschedulable"], len(answer["new_nodes"])) == ([], 6)
    pool = node_pool(limits={"nodes": "2"})
    cluster = ("-f", _cluster(tmp_path / "n.yaml", pool, *_apart(3)), "--catalogue", types)
    answer = _json(*cluster)
    assert len(answer["new_nodes"]) == 2
    assert answer["unschedulable"][0]["reason"] == "node limits have been exhausted for nodepool (NodePool=pool)"


def _one_per_node():
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "one"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {"labels": {"app": "one"}, "affinity": affinity}


def test_a_limit_is_named_where_it_is_why_nothing_is_large_enough(tmp_path):
    types = tmp_path / "types.json"
    types.write_text(json.dumps(list(TYPES)))
    pool = node_pool(limits={"cpu": "2"})
    path = _cluster(tmp_path / "c.yaml", pool, pod("web", cpu="3"))
    (stay,) = _json("-f", path, "--catalogue", types)["unschedulable"]
    assert stay["reason"].startswith("no instance type has enough resources")
    assert stay["pools"]["pool"].endswith(
        '(the limits of NodePool pool leave {"cpu":"2000m"}; without them it would have a node for the pod)'
    )
    path = _cluster(tmp_path / "d.yaml", pool, pod("web", cpu="300"))
    (stay,) = _json("-f", path, "--catalogue", types)["unschedulable"]
    assert "limits" not in stay["pools"]["pool"]


def test_an_offering_that_is_not_available_is_not_called_missing(tmp_path):
    large, small = instance_type("large", 8, "16Gi"), instance_type("small", 2, "4Gi")
    for offering in large["offerings"]:
        offering["available"] = False
    types = tmp_path / "types.json"
    types.write_text(json.dumps([large, small]))
    path = _cluster(tmp_path / "c.yaml", node_pool(), pod("web", cpu="3"))
    (stay,) = _json("-f", path, "--catalogue", types)["unschedulable"]
    text = "what would help is offered and not available now: large (zone-1, on-demand), large (zone-2, on-demand)"
    assert text in stay["pools"]["pool"]
    types.write_text(json.dumps([large]))
    assert text in _json("-f", path, "--catalogue", types)["skipped"]["pool"]


def test_pods_that_are_not_planned_for_say_why(tmp_path):
    gated_pod = pod("gated", status={"phase": "Pending"}, schedulingGates=[{"name": "g"}])
    nominated_pod = pod("nominated")
    nominated_pod["status"]["nominatedNodeName"] = "n1"
    path = _cluster(tmp_path / "c.yaml", node_pool(), gated_pod, nominated_pod, pod("new", status={"phase": "Pending"}))
    answer = _json("-f", path)
    assert answer["not_tried"] == ["default/gated", "default/new", "default/nominated"]
    assert answer["not_tried_reasons"]["default/gated"] == "has scheduling gates"
    assert answer["not_tried_reasons"]["default/nominated"] == "is nominated to node n1"
    text = " ".join(_run("-f", path).stdout.split())
    for part in ("held by scheduling gates", "nominated to a node", "not found unschedulable by kube-scheduler yet"):
        assert f"1 pod not planned for: {part}" in text


def test_more_requests_than_there_is_are_called_overcommitted(tmp_path):
    path = _cluster(tmp_path / "c.yaml", node_pool(), node("n1", cpu="1"), pod("web", cpu="2", node="n1"))
    shares = _json("-f", path)["utilisation"]["before"]
    assert (shares["cpu"]["overcommitted"], "overcommitted" in shares["memory"]) == (True, False)
    assert "200% of 1 cores, overcommitted" in _run("-f", path).stdout


def test_what_karpenter_does_not_count_yet_is_named(tmp_path):
    claim = {**node_claim("c1", machine=""), "apiVersion": "karpenter.sh/v1"}
    bare = managed_node("n1", machine="")
    path = _cluster(tmp_path / "c.yaml", node_pool(), claim, bare, pod("web"))
    result = _run("-f", path, "-o", "json")
    of_claim, of_node = result.stderr.splitlines()
    assert of_claim.startswith("warning: NodeClaim c1 without a providerID: Karpenter waits until the machine is there")
    assert of_node.startswith("warning: Node n1 of a NodePool without a providerID, or without an instance type")
    answer = json.loads(result.stdout)
    assert (len(answer["new_nodes"]), answer["existing"]) == (1, {})
    bare_nodes = [managed_node(f"n{index}", machine="") for index in range(2, 7)]
    result = _run("-f", _cluster(tmp_path / "d.yaml", node_pool(), *bare_nodes))
    assert result.stderr.startswith("warning: Node n2, n3, n4 and 2 more of a NodePool without a providerID")


def _gang(count, **spec):
    group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "train"}}
    members = [pod(f"train-{index}", cpu="3", schedulingGroup={"podGroupName": "train"}) for index in range(count)]
    return [{**group, "spec": {"schedulingPolicy": {"gang": {"minCount": count}}, **spec}}, *members]


def test_a_gang_that_does_not_start_is_named_with_what_it_lacks(tmp_path, types):
    cluster = _cluster(tmp_path / "c", node_pool(limits={"cpu": "8"}), *_gang(3))
    lines = _lines(_run("-f", cluster, "--catalogue", types, "--rules", "podium"))
    text = "2 of 3 members fit; 1 more default, over the limit of 8 cpu of NodePool pool"
    assert f"default/train 3 of 3 {text}" in lines
    assert lines[-1] == "No node to buy; 3 pods unplaced"


def test_by_karpenters_rules_a_warning_names_the_gang(tmp_path, types):
    cluster = _cluster(tmp_path / "c", node_pool(limits={"cpu": "8"}), *_gang(3))
    result = _run("-f", cluster, "--catalogue", types)
    assert "warning: the gang default/train (scheduling.k8s.io) does not start" in result.stderr
    assert "these new nodes will be idle: 2 default of NodePool pool" in result.stderr


def test_an_exhaustive_search_says_what_it_has_proven(tmp_path, types):
    cluster = _cluster(tmp_path / "c", node_pool(), *_gang(2))
    arguments = ("-f", cluster, "--catalogue", types, "--rules", "podium", "--search", "exhaustive", "--time", "30s")
    assert _lines(_run(*arguments))[-1].startswith("Proven: no purchase")
    assert _json(*arguments)["proof"]["proven"] is True
    assert "--search exhaustive is for --rules podium" in _run("-f", cluster, "--search", "exhaustive").stderr

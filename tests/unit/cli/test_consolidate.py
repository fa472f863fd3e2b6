import json
from functools import partial

import pytest

from tests.unit.cli.commands import run, write_objects
from tests.unit.provisioner.clusters import ZONE, instance_type, node, node_pool, pod, requirement

_run = partial(run, "consolidate")
_KEEP = {"karpenter.sh/do-not-disrupt": "true"}
_OWNED = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1"}]}


def _cluster(path, *objects):
    for item in objects:
        if item["kind"] == "Node":
            item["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    versions = {"NodePool": "karpenter.sh/v1"}
    return write_objects(path, *({"apiVersion": versions.get(item["kind"], "v1"), **item} for item in objects))


@pytest.fixture
def half_empty(tmp_path):
    """Of four nodes one is empty, one holds what has room on another, and one has a pod that must not be disturbed."""
    protected_pod = pod("kept", node="d", cpu="3500m", metadata={**_OWNED, "annotations": _KEEP})
    pods = [pod(name, node=name, cpu="1500m", metadata=_OWNED) for name in ("b", "c")]
    return _cluster(tmp_path / "cluster.yaml", *(node(name, zone="zone-1") for name in "abcd"), *pods, protected_pod)


def _json(*arguments):
    result = _run(*arguments, "-o", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def types(tmp_path):
    """A catalogue that has the type of the nodes."""
    path = tmp_path / "types.json"
    path.write_text(json.dumps([instance_type("4-cores-8-gib", 4, "8Gi")]))
    return path


def test_the_commands_come_in_their_order_with_what_they_save(half_empty, types):
    plan = _json("-f", half_empty, "--adopt-nodes", "--catalogue", types)
    first, second = plan["commands"]
    assert (first["reason"], first["nodes"], first["new_nodes"]) == ("Empty", ["a"], [])
    assert (second["reason"], second["nodes"], list(second["moves"])) == ("Underutilized", ["b"], ["default/b"])
    assert plan["hourly_savings"] == pytest.approx(first["hourly_savings"] + second["hourly_savings"])
    assert plan["blockers"]["d"] == ['Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/kept)']
    output = " ".join(_run("-f", half_empty, "--adopt-nodes", "--catalogue", types).stdout.split())
    assert "1 a empty nothing 0 0.4000 292.00 " in output
    assert "2 nodes to remove, 0 to buy in their place; saves" in output


def test_without_prices_the_same_nodes_go_and_nothing_is_said_of_money(half_empty, types):
    plan, priced = (_json("-f", half_empty, "--adopt-nodes", *options) for options in ((), ("--catalogue", types)))
    assert (plan["hourly_savings"], plan["monthly_savings"]) == (None, None)
    assert [command["nodes"] for command in plan["commands"]] == [command["nodes"] for command in priced["commands"]]
    assert {command[key] for command in plan["commands"] for key in ("hourly_savings", "monthly_savings")} == {None}
    output = " ".join(_run("-f", half_empty, "--adopt-nodes").stdout.split())
    assert "PER HOUR" not in output
    assert output.endswith("0 to buy in their place; what that saves is not known without prices (--catalogue)")
    answer = _json("-f", half_empty, "--adopt-nodes", "--why", "b")
    assert answer["outcome"] == "goes with command 2"


def test_without_prices_no_command_is_known_to_save_enough(half_empty):
    plan = _json("-f", half_empty, "--adopt-nodes", "--min-savings", "0.001")
    assert plan["commands"] == []
    (why,) = plan["blockers"]["b"]
    assert why == "May save less than 0.001 per hour: the catalogue does not have all prices"


def test_a_replacement_has_no_price_either(tmp_path):
    objects = [node_pool(), node("big", cpu="16", zone="test-zone-a"), pod("p", node="big", cpu="1", metadata=_OWNED)]
    labels = {"karpenter.sh/capacity-type": "on-demand", "node.kubernetes.io/instance-type": "c-16x-amd64-linux"}
    objects[1]["metadata"]["labels"] |= labels
    small = node("small", cpu="4", zone="test-zone-a")
    small["metadata"]["labels"] |= {**labels, "node.kubernetes.io/instance-type": "c-4x-amd64-linux"}
    for rules in ("karpenter", "podium"):
        cluster = _cluster(tmp_path / "c", objects[1], small, objects[2], pod("q", node="small", cpu="3"))
        plan = _json("-f", cluster, "--adopt-nodes", "--rules", rules)
        assert plan["commands"]
        for bought in (new for command in plan["commands"] for new in command["new_nodes"]):
            assert (bought["price"], bought["price_at_worst"], bought["monthly_cost"]) == (None, None, None)
        assert plan["hourly_savings"] is None


def test_a_node_that_goes_and_one_that_stays_are_explained(half_empty, types):
    answer = _json("-f", half_empty, "--adopt-nodes", "--why", "b", "--catalogue", types)
    assert answer["outcome"].startswith("goes with command 2, which saves ")
    assert list(answer["moves"]) == ["default/b"]
    stays = _run("-f", half_empty, "--adopt-nodes", "--why", "d").stdout
    assert "do-not-disrupt" in stays
    assert stays.endswith("d stays\n")


@pytest.mark.parametrize(("name", "suggestion"), [("e", ""), ("bb", "; did you mean b?"), ("d2", "; did you mean d?")])
def test_a_node_that_is_not_there_is_named_with_those_that_are_nearest(half_empty, name, suggestion):
    result = _run("-f", half_empty, "--adopt-nodes", "--why", name)
    assert (result.exit_code, result.stderr) == (1, f"Error: {name}: there is no such node{suggestion}\n")


def test_savings_that_are_too_small_are_left(half_empty, types):
    arguments = ("-f", half_empty, "--adopt-nodes", "--catalogue", types)
    assert _json(*arguments, "--min-savings", "1000")["commands"][1:] == []
    assert _json(*arguments, "--search", "greedy", "--allow-m-to-n")["hourly_savings"] > 0


def test_the_same_bytes_come_of_objects_in_any_order(tmp_path):
    objects = [*(node(name) for name in "abc"), *(pod(f"p{name}", node=name, metadata=_OWNED) for name in "ab")]
    first = _run("-f", _cluster(tmp_path / "one", *objects), "--adopt-nodes", "-o", "json")
    second = _run("-f", _cluster(tmp_path / "other", *reversed(objects)), "--adopt-nodes", "-o", "json")
    assert first.stdout == second.stdout != ""


def test_without_node_pools_and_adoption_it_says_what_to_do(half_empty):
    result = _run("-f", half_empty)
    assert (result.exit_code, "--adopt-nodes" in result.stderr) == (1, True)
    assert _run("-f", half_empty, "--adopt-nodes", "--node-pools", half_empty).exit_code == 2
    assert _run("-f", half_empty, "--adopt-nodes", "--min-savings", "-1").exit_code == 2


def test_a_cluster_whose_nodes_are_all_needed_says_so(tmp_path):
    path = _cluster(tmp_path / "full", node("a"), pod("big", node="a", cpu="3500m", metadata=_OWNED))
    assert _run("-f", path, "--adopt-nodes").stdout.endswith("No node to remove\n")


# ---------------------------------------------------------------- bad input


def _types_with_offering(**change):
    offering = {**instance_type("default", 4, "8Gi")["offerings"][0], **change}
    return [{**instance_type("default", 4, "8Gi"), "offerings": [offering]}]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (_types_with_offering(price=-1), "[0].offerings[0].price: -1 is not a price"),
        (_types_with_offering(price="dear"), "[0].offerings[0].price: "),
        (
            _types_with_offering(requirements=[requirement(ZONE, "Near")]),
            '[0].offerings[0].requirements[0].operator: "Near" is not one',
        ),
        ({"items": []}, "catalogue: is not a list of instance types"),
    ],
)
def test_a_fault_of_the_catalogue_is_named_by_file_and_field(half_empty, tmp_path, content, text):
    path = tmp_path / "types.json"
    path.write_text(json.dumps(content))
    result = _run("-f", half_empty, "--adopt-nodes", "--catalogue", path)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {path}: {text}")


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (
            node_pool(requirements=[requirement(ZONE, "Near", "z")]),
            'NodePool pool: spec.template.spec.requirements[0].operator: "Near" is not one of In, NotIn,',
        ),
        (pod("web", cpu="lots", node="a"), "Pod default/web: spec.containers[0].resources.requests[cpu]: "),
    ],
)
def test_a_fault_of_an_object_is_named_by_file_and_field_and_refuses_nothing_else(tmp_path, item, text):
    path = _cluster(tmp_path / "cluster.yaml", node("a"), node_pool("good"), item)
    result = _run("-f", path)
    assert result.exit_code == 0
    assert result.stderr.startswith(f"warning: {path}: document 3: {text}")


def test_an_object_without_a_name_is_refused(tmp_path):
    path = _cluster(tmp_path / "cluster.yaml", node("a"), node_pool("good"), {**node(), "metadata": {}})
    result = _run("-f", path)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {path}: document 3: Node: metadata.name: is missing")


@pytest.mark.parametrize(
    "requirements",
    [
        [requirement(ZONE, "In", "nowhere")],
        [requirement("team", "Exists"), requirement("team", "DoesNotExist")],
        [requirement(ZONE, "In", "zone-1"), requirement(ZONE, "NotIn", "zone-1")],
    ],
    ids=["a zone that no type has", "contradictory", "nothing left"],
)
def test_a_pool_that_nothing_can_be_bought_from_consolidates_what_is_there(tmp_path, requirements):
    path = _cluster(tmp_path / "cluster.yaml", node("a"), node_pool(requirements=requirements))
    assert _json("-f", path)["commands"] == []


def test_a_cluster_without_nodes_has_nothing_that_can_go(tmp_path):
    assert _json("-f", _cluster(tmp_path / "cluster.yaml", node_pool()))["commands"] == []


@pytest.mark.long
def test_thousands_of_pools_are_no_trouble(tmp_path):
    path = _cluster(tmp_path / "cluster.yaml", node("a"), *(node_pool(f"pool-{number}") for number in range(5000)))
    assert _json("-f", path)["commands"] == []


def test_podiums_rules_place_the_pods_of_nodes_that_go(half_empty):
    plan = _json("-f", half_empty, "--adopt-nodes", "--rules", "podium")
    assert [command["nodes"] for command in plan["commands"]] == [["a"], ["b"]]
    assert plan["commands"][1]["moves"] == {"default/b": "c"}


def test_a_waiting_pod_that_fits_is_placed_before_any_node_goes(tmp_path):
    """Podium places it at once, so the node is not empty when the commands are carried out."""
    path = _cluster(tmp_path / "cluster.yaml", node("a", zone="zone-1"), pod("waits", cpu="3", metadata=_OWNED))
    assert [command["nodes"] for command in _json("-f", path, "--adopt-nodes")["commands"]] == [["a"]]
    assert _json("-f", path, "--adopt-nodes", "--rules", "podium")["commands"] == []


_MIRROR = {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n"}]}


def _static_pod(name, node_name, **fields):
    return pod(f"{name}-{node_name}", node=node_name, cpu="10m", metadata={**_MIRROR, **fields})


def _worker(name, **labels):
    return node(name, zone="zone-1", **labels)


def _stays(tmp_path, *items):
    """The JSON of a consolidation of these and of two workers, which are empty."""
    path = _cluster(tmp_path / "c.yaml", *map(_worker, ("w1", "w2")), *items)
    result = _run("-f", path, "--adopt-nodes", "--ignore-budgets", "-o", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_nodes_that_no_plan_may_remove_stay_and_it_is_said_why(tmp_path):
    control_plane = _worker("cp", **{"node-role.kubernetes.io/control-plane": ""})
    answer = _stays(tmp_path, control_plane, _worker("w3"), _static_pod("registry", "w3"))
    assert [command["nodes"] for command in answer["commands"]] == [["w1", "w2"]]
    assert answer["blockers"] == {
        "cp": ["It is a node of the control plane (label node-role.kubernetes.io/control-plane)"],
        "w3": ["Pod default/registry-w3 is a static pod: it runs on this node and nowhere else"],
    }


def test_a_node_that_is_not_ready_cannot_be_judged(tmp_path):
    lost_node = node("lost", zone="zone-1")
    path = _cluster(tmp_path / "c.yaml", lost_node, node("w1", zone="zone-1"))
    documents = path.read_text()
    path.write_text(documents.replace("True", "Unknown", 1))
    answer = json.loads(_run("-f", path, "--adopt-nodes", "--ignore-budgets", "-o", "json").stdout)
    assert answer["blockers"] == {"lost": ["It cannot be judged: it is not ready"]}

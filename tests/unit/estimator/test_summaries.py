import pytest
from msgspec import convert

from podium.estimator.cluster_objects import ResourceModel
from podium.estimator.resource_models import default_models
from podium.estimator.summaries import summarise
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from tests.builders import node, pod


def _models(*grades):
    """Grades of these lists of (name, min)."""
    return [
        convert(
            {"grade": number, "ranges": [{"name": name, "min": low, "max": "1"} for name, low in ranges]}, ResourceModel
        )
        for number, ranges in enumerate(grades)
    ]


def _grades(nodes, pods=(), **options):
    summary = summarise(nodes, pods, default_models(), **options)
    return {model.grade: model.count for model in summary.resources.allocatable_modelings if model.count}


def _pod(node_name="", phase="Running", init=(), **requests):
    containers = [{"name": "c", "resources": {"requests": {name: str(amount) for name, amount in requests.items()}}}]
    inits = [{"name": f"i{number}", "resources": {"requests": amounts}} for number, amounts in enumerate(init)]
    spec = {"containers": containers, "initContainers": inits, "nodeName": node_name or None}
    manifest = {"metadata": {"name": "p"}, "spec": spec, "status": {"phase": phase}}
    if not node_name:
        del spec["nodeName"]
    return convert(manifest, Pod)


def _node(name="n1", conditions=(), **allocatable):
    return convert(
        {
            "metadata": {"name": name},
            "status": {
                "allocatable": {resource.replace("_", "-"): amount for resource, amount in allocatable.items()},
                "conditions": [{"type": kind, "status": status} for kind, status in conditions],
            },
        },
        Node,
    )


@pytest.mark.parametrize(("cpu", "memory", "grade"), [("500m", "2Gi", 0), ("1500m", "10Gi", 1), ("64", "4Gi", 1)])
def test_node_is_of_the_lowest_grade_of_its_resources(cpu, memory, grade):
    assert _grades([node("n1", cpu=cpu, memory=memory)]) == {grade: 1}


def test_running_pods_lower_the_grade_and_a_node_in_debt_has_none():
    nodes = [node("n1", cpu="4", memory="64Gi"), node("n2", cpu="1", memory="64Gi")]
    assert _grades(nodes, [pod("p", cpu="3", node="n1"), pod("big", cpu="2", node="n2")]) == {1: 1}


def test_all_nodes_are_graded_unless_upstreams_fault_is_reproduced():
    nodes = [node("a", pods=1), node("b", cpu="4", memory="64Gi")]
    assert _grades(nodes, [pod(node="a")]) == {3: 1}
    assert _grades(nodes, [pod(node="a")], skips_after_full_node=True) == {}


def test_node_without_pods_is_graded_even_if_it_takes_none():
    assert _grades([node("a", cpu="4", memory="64Gi", pods=0)], skips_after_full_node=True) == {3: 1}


def test_grades_that_do_not_name_the_same_resources_give_none():
    models = _models([("cpu", "0")], [("cpu", "1"), ("memory", "1Gi")])
    assert summarise([node("a")], [], models).resources.allocatable_modelings == ()
    with pytest.raises(FieldError, match=r"resourceModels\[0\].ranges"):
        summarise([node("a")], [], _models([]))


def test_sums_have_the_format_of_the_first_amount_that_is_not_zero():
    nodes = [_node(memory="0", cpu="500m", foo="1"), _node("n2", memory="1Gi", cpu="3500m"), _node("n3", memory="1G")]
    resources = summarise(nodes, [], ()).resources
    assert resources.allocatable == {"memory": "2073741824", "cpu": "4", "foo": "1"}


def test_ready_nodes_are_those_whose_first_condition_says_so():
    nodes = [
        _node(conditions=[("Ready", "True"), ("Ready", "False")]),
        _node("n2"),
        _node("n3", [("Ready", "Unknown")]),
    ]
    summary = summarise(nodes, [], ())
    assert (summary.nodes.total_num, summary.nodes.ready_num) == (3, 1)


def test_bound_and_waiting_pods_are_counted_apart():
    pods = [
        _pod("n1", cpu="1"),
        _pod("n1", phase="Succeeded", cpu="8"),
        _pod(cpu="2", phase="Pending"),
        # Evicted before it had a node.
        _pod(cpu="4", phase="Failed"),
    ]
    resources = summarise([node("n1")], pods, ()).resources
    assert resources.allocated == {"cpu": "1", "pods": "1"}
    assert resources.allocating == {"cpu": "6", "pods": "2"}


def test_init_container_counts_only_above_the_sum_of_everything_before():
    big = _pod("n1", init=[{"cpu": "3"}], cpu="1")
    assert summarise([], [big, _pod("n1", cpu="2")], ()).resources.allocated["cpu"] == "5"
    assert summarise([], [_pod("n1", cpu="2"), big], ()).resources.allocated["cpu"] == "3"


def test_amount_that_cannot_be_read_is_named():
    with pytest.raises(FieldError, match=r"node n1: status.allocatable\[cpu\]"):
        summarise([_node(cpu="many")], [], ())

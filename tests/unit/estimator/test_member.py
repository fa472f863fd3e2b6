"""Accurate answers: what podium would bind in the member, for the workload that is named."""

import msgspec
import pytest

from podium.estimator.errors import EstimateError
from podium.objects.core import Pod
from tests.builders import node, pod
from tests.unit.estimator import members, views
from tests.unit.estimator.members import asking, assumptions, claim, part
from tests.unit.estimator.views import APART, KINDS, reference, result_of_steps, tried_on, workload

NODES = [node(f"n{index}", cpu="4", labels={"kubernetes.io/hostname": f"n{index}"}) for index in range(3)]
ONE_CPU = asking("1", namespace="default", claim=claim())


def _ask(member, requirements=ONE_CPU, of=None, assumptions=()):
    return result_of_steps(member.replicas_in_steps(requirements, assumptions, of))


@pytest.mark.parametrize("kind", KINDS)
def test_named_workload_is_tried_out_with_its_own_template(kind):
    apart = workload(kind, affinity=APART)
    assert _ask(tried_on(*NODES, apart), of=reference(kind)) == 3
    assert _ask(tried_on(*NODES, pod("old", node="n0", labels={"app": "web"}), apart), of=reference(kind)) == 2


@pytest.mark.parametrize("of", [None, reference(name="other"), reference("StatefulSet"), reference("FlinkDeployment")])
def test_workload_that_is_not_there_is_tried_out_as_far_as_the_request_describes_it(of):
    member = tried_on(*NODES, workload(affinity=APART))
    assert _ask(member, of=of) == 12
    assert _ask(member, None, of) == 3 * 110


def test_deployments_newest_replica_set_tells_the_generations_apart():
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["pod-template-hash"],
    }
    fields = {"topologySpreadConstraints": [spread]}
    newest = workload("ReplicaSet", "web-2", owner="uid-web", labels={"pod-template-hash": "2"}, **fields)
    old = pod("old", node="n0", cpu="3", labels={"app": "web", "pod-template-hash": "1"})
    assert _ask(tried_on(*NODES, old, workload(**fields), newest), of=reference()) == 5


def test_changed_requests_and_claims_of_the_question_go_before_those_of_the_template():
    member = tried_on(*NODES, workload(ports=[{"hostPort": 80}]))
    assert _ask(member, of=reference()) == 3
    assert _ask(member, asking("5", claim=claim()), reference()) == 0
    only_one = claim(node_selector={"kubernetes.io/hostname": "n1"})
    assert _ask(member, asking("1", claim=only_one), reference()) == 1


def test_sidecars_count_and_requests_come_from_limits():
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"limits": {"cpu": "1"}}}
    deployment = workload(resources={"limits": {"cpu": "1"}}, initContainers=[sidecar])
    assert _ask(tried_on(*NODES, deployment), None, reference()) == 6


def test_template_that_is_none_of_a_pod_is_as_none():
    assert _ask(tried_on(*NODES, workload(tolerations="all of them")), of=reference()) == 12


def test_pods_that_wait_go_first_until_they_are_gone_or_bound():
    member = tried_on(*NODES)
    waiting = pod("waits", cpu="4")
    member.put_pod(waiting)
    assert _ask(member) == 8
    bound_pod = Pod(metadata=waiting.metadata, spec=waiting.spec, node_name="n0")
    member.put_pod(bound_pod)
    assert _ask(member) == 8
    member.drop_pod(bound_pod)
    assert _ask(member) == 12
    member.put_pod(waiting)
    member.drop_pod(waiting)
    assert _ask(member) == 12


def test_pod_that_waits_for_its_promised_node_is_counted_once():
    promised = pod("waits", cpu="4", nominated="big", priority=5)
    member = tried_on(node("big", cpu="8"), promised)
    assert [_ask(member, asking("2", claim=claim())) for _ in range(2)] == [2, 2]


def test_pod_that_is_bound_while_it_is_tried_out_stays_where_it_is():
    waiting = pod("waits", cpu="4")
    member = tried_on(*NODES, waiting)
    steps = member.replicas_in_steps(ONE_CPU, (), None)
    next(steps)
    member.put_pod(Pod(metadata=waiting.metadata, spec=waiting.spec, node_name="n2"))
    assert result_of_steps(steps) == 8
    assert _ask(member) == 8


def test_closed_estimate_leaves_nothing_behind():
    member = tried_on(*NODES, pod("waits", cpu="4"), workload(ports=[{"hostPort": 80}]))
    steps = member.replicas_in_steps(ONE_CPU, (), reference())
    next(steps)
    next(steps)
    steps.close()
    assert _ask(member, of=reference()) == 2


def test_question_that_is_over_answers_what_has_been_placed():
    member = tried_on(*NODES, workload(ports=[{"hostPort": 80}]))
    turns = iter([False, False, True])
    assert result_of_steps(member.replicas_in_steps(ONE_CPU, (), reference(), lambda: next(turns))) == 2
    member.put_pod(pod("waits", cpu="4"))
    assert result_of_steps(member.replicas_in_steps(ONE_CPU, (), reference(), lambda: True)) == 0


def test_many_that_wait_alike_in_vain_cost_one_attempt():
    member = tried_on(*NODES)
    like = pod("big", cpu="64")
    for number in range(50):
        member.put_pod(
            Pod(metadata=msgspec.structs.replace(like.metadata, name=f"b{number}", uid=f"b{number}"), spec=like.spec)
        )
    cache = member._view._cache
    calls = []
    cache.snapshot, snapshot = lambda: calls.append(1) or snapshot(), cache.snapshot
    assert _ask(member) == 12
    assert len(calls) < 10


def test_assumed_workloads_take_their_place_with_their_gate():
    on_the_way = [assumptions(part(2, "4"), None, part(-1, "4"))]
    assert _ask(tried_on(*NODES, scheduling_overcommit_protection=True), assumptions=on_the_way) == 4
    assert _ask(tried_on(*NODES), assumptions=on_the_way) == 12


def test_amount_that_cannot_be_read_is_an_error():
    with pytest.raises(EstimateError, match=r"^failed to estimate replicas: "):
        _ask(tried_on(*NODES), asking("many"))


def test_a_node_that_is_closed_takes_no_replicas(monkeypatch):
    for module in (views, members):
        monkeypatch.setattr(module, "refuse", lambda item, error: None)
    odd = pod("odd", cpu="lots", node="n0")
    assert _ask(tried_on(*NODES, odd)) == 8
    assert members.member(*NODES, odd).max_available_replicas(ONE_CPU) == 8


def test_summary_counts_pods_that_run_and_pods_that_wait():
    cluster = members.member(node("n1", cpu="4"), pod("web", cpu="1", node="n1"), pod("waiting", cpu="2"))
    resources = cluster.summary(()).resources
    assert (resources.allocated["cpu"], resources.allocating["cpu"]) == ("1", "2")
    cluster.put_pod(pod("waiting", cpu="2", node="n1"))
    cluster.drop_pod(pod("web", cpu="1", node="n1"))
    resources = cluster.summary(()).resources
    assert (resources.allocated["cpu"], resources.allocating) == ("2", {})

"""Requests as clients of three times write them."""

import pytest

from podium.estimator.requirements import NodeClaim, ObjectReference
from podium.estimator.server.messages import (
    CLASSES,
    MessageError,
    PartError,
    read_count,
    read_replicas_request,
    read_sets_request,
    read_unschedulable_request,
    replicas_response,
    sets_response,
    unschedulable_response,
    workload_named,
)
from podium.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.objects.core import Toleration
from tests.unit.estimator.server.wire import ERAS, replicas_request, sets_request

AFFINITY = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}
TOLERATION = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
REQUIREMENTS = {
    "namespace": "shop",
    "priorityClassName": "high",
    "resourceRequest": {"cpu": "100m", "memory": "1Gi"},
    "nodeClaim": {"hardNodeAffinity": AFFINITY, "nodeSelector": {"zone": "a"}, "tolerations": [TOLERATION]},
}
CLAIM = NodeClaim(
    hard_node_affinity=NodeSelector(
        node_selector_terms=(
            NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="disk", operator="In", values=("ssd",)),)),
        )
    ),
    node_selector={"zone": "a"},
    tolerations=(Toleration(**TOLERATION),),
)


@pytest.mark.parametrize("era", ERAS)
def test_request_for_replicas_is_the_same_in_every_era(era):
    request = read_replicas_request(replicas_request("m1", REQUIREMENTS, era))
    assert request.cluster == "m1"
    assert request.requirements is not None
    assert request.requirements.node_claim == CLAIM
    assert request.requirements.resource_request == {"cpu": "100m", "memory": "1Gi"}
    assert (request.requirements.namespace, request.requirements.priority_class_name) == ("shop", "high")


@pytest.mark.parametrize("era", ERAS)
def test_request_for_sets_is_the_same_in_every_era(era):
    parts = [{"name": "c", "replicas": 2, "replicaRequirements": REQUIREMENTS}, {"name": "bare", "replicas": 1}]
    request = read_sets_request(sets_request("m1", parts, era))
    with_needs, bare = request.components
    assert (request.namespace, with_needs.replicas, bare.replica_requirements) == ("default", 2, None)
    assert with_needs.replica_requirements is not None
    assert with_needs.replica_requirements.resource_request == {"cpu": "100m", "memory": "1Gi"}
    assert with_needs.replica_requirements.node_claim == CLAIM


def test_bytes_go_first_field_by_field():
    message = CLASSES["MaxAvailableReplicasRequest"].FromString(replicas_request("m1", REQUIREMENTS, "legacy"))
    needs = message.replicaRequirements
    needs.resourceRequestBytes["cpu"] = CLASSES["Quantity"](string="7").SerializeToString()
    request = read_replicas_request(message.SerializeToString())
    assert request.requirements is not None
    assert request.requirements.resource_request == {"cpu": "7"}
    assert request.requirements.node_claim == CLAIM


def test_numbers_of_fields_are_those_on_karmadas_wire():
    """The bytes of requests are field 5 of a workload's requirements and field 4 of a component's."""
    entry = b"\x0a\x03cpu\x12\x06\x0a\x04100m"
    workload = b"\x0a\x02m1\x12" + bytes([2 + len(entry)]) + b"\x2a" + bytes([len(entry)]) + entry
    request = read_replicas_request(workload)
    assert request.requirements is not None
    assert request.requirements.resource_request == {"cpu": "100m"}
    needs = b"\x22" + bytes([len(entry)]) + entry
    component = b"\x12" + bytes([len(needs)]) + needs + b"\x18\x03"
    (part,) = read_sets_request(b"\x12" + bytes([len(component)]) + component).components
    assert part.replicas == 3
    assert part.replica_requirements is not None
    assert part.replica_requirements.resource_request == {"cpu": "100m"}


def test_empty_texts_that_are_written_out_mean_nothing():
    """As releases before v1.18 write them: tag and length 0."""
    request = read_replicas_request(b"\x0a\x00\x12\x04\x1a\x00\x22\x00")
    assert request.cluster == ""
    assert request.requirements is not None
    assert request.requirements.node_claim is None


def test_absent_requirements_and_an_absent_workload_stay_absent():
    assert read_replicas_request(b"\x0a\x02m1").requirements is None
    assert read_unschedulable_request(b"\x0a\x02m1").workload is None


def test_affinity_without_terms_is_kept_where_its_presence_can_be_seen():
    request = read_replicas_request(b"\x12\x04\x0a\x02\x0a\x00")
    assert request.requirements is not None
    assert request.requirements.node_claim == NodeClaim(hard_node_affinity=NodeSelector())


def test_threshold_is_in_nanoseconds():
    content = CLASSES["UnschedulableReplicasRequest"](
        cluster="m1", resource={"kind": "Deployment", "namespace": "a", "name": "b"}, unschedulableThreshold=300 * 10**9
    ).SerializeToString()
    request = read_unschedulable_request(content)
    assert request.threshold_s == 300.0
    assert request.workload == ObjectReference(kind="Deployment", namespace="a", name="b")


def test_a_malformed_message_and_a_malformed_object_in_one_give_different_errors():
    with pytest.raises(MessageError, match="MaxAvailableReplicasRequest"):
        read_replicas_request(b"\xff\xff\xff")
    malformed = CLASSES["MaxAvailableReplicasRequest"](
        replicaRequirements={"resourceRequestBytes": {"cpu": b"\xff\xff"}}
    ).SerializeToString()
    with pytest.raises(PartError, match="failed to unmarshal resource request cpu"):
        read_replicas_request(malformed)


def test_answers_are_field_one():
    assert replicas_response(5) == sets_response(5) == unschedulable_response(5) == b"\x08\x05"
    assert replicas_response(0) == b""


def test_workload_is_named_beside_the_request():
    assert workload_named("kind=Deployment, name=shop/web") == ObjectReference(
        kind="Deployment", namespace="shop", name="web"
    )
    assert workload_named("kind=Thing, name=/one") == ObjectReference(kind="Thing", name="one")
    assert workload_named("") is None
    assert workload_named("fake") is None


@pytest.mark.parametrize("count", [0, 7, 2**31 - 1, -1, -5])
def test_count_is_read_from_every_response(count):
    for response in (replicas_response, sets_response, unschedulable_response):
        assert read_count(response(count)) == count


def test_count_is_read_beside_fields_of_later_versions():
    assert read_count(replicas_response(7) + b"\x12\x01a") == 7


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x08\x80\x80\x80\x80\x08", "2147483648 has more than 32 bits"),
        (b"\x08\x87\x80\x80\x80\x10", "4294967303 has more than 32 bits"),
        (b"\x08" + b"\x80" * 9 + b"\x01", "-9223372036854775808 has more than 32 bits"),
        (b"\x0a\x017", "its number has another type"),
        (b"\x08\x80", "Error parsing message"),
        (b"\xff\xff", "Error parsing message"),
    ],
)
def test_count_that_is_no_number_of_32_bits_is_refused(content, problem):
    with pytest.raises(MessageError, match=problem):
        read_count(content)

import msgspec
import pytest

from podium.devices import AllocationError
from podium.objects.affinity import NodeSelector
from tests.unit.devices.cluster import (
    DRIVER,
    NEW,
    OLD,
    a_slice,
    allocate,
    allocator,
    answer_of,
    claim,
    device,
    either,
    request,
)


def requirement(key, *values):
    return {"key": key, "operator": "In", "values": list(values)}


def selector(*expressions):
    return {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}


def allocation_result(claims, *slices, labels=None, release=NEW):
    (answer,) = answer_of(allocator(*slices, release=release), [claims], labels=labels)
    return answer


def test_result_carries_what_the_binding_needs():
    tolerations = [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}]
    conditional = device("g0", bindingConditions=["ready"], bindingFailureConditions=["broken"])
    (result,) = allocation_result(
        claim(request(tolerations=tolerations, adminAccess=True)), a_slice("s", conditional)
    ).devices.results
    assert msgspec.json.decode(msgspec.json.encode(result)) == {
        "request": "r",
        "driver": DRIVER,
        "pool": "p",
        "device": "g0",
        "adminAccess": True,
        "tolerations": tolerations,
        "bindingConditions": ["ready"],
        "bindingFailureConditions": ["broken"],
    }


def test_configuration_of_a_class_comes_once_with_all_its_requests():
    tuned = [request(name, deviceClassName="tuned") for name in ("a", "b")]
    config = allocation_result(
        claim(tuned[0], request("x"), either("y", tuned[1])), a_slice("s", "g0", "g1", "g2")
    ).devices.config
    assert [(entry.source, entry.requests) for entry in config] == [("FromClass", ("a", "y/b"))]
    assert config[0].opaque.parameters == {"mtu": 9000}


@pytest.mark.parametrize(
    ("release", "expected_names"),
    [(OLD, [(), ("a", "b"), ("a", "b"), ("c/one",)]), (NEW, [(), ("a", "b"), ("c/one",)])],
    ids=["old", "new"],
)
def test_configuration_of_the_claim_comes_once_or_for_every_request_that_it_names(release, expected_names):
    opaque = {"driver": DRIVER, "parameters": {"n": 0}}
    request_names = [[], ["a", "b"], ["c/one"], ["c/two"]]
    claims = claim(
        request("a"),
        request("b"),
        either("c", request("one"), request("two")),
        config=[{"requests": entry, "opaque": opaque} for entry in request_names],
    )
    config = allocation_result(claims, a_slice("s", "g0", "g1", "g2"), release=release).devices.config
    assert [entry.requests for entry in config] == expected_names


@pytest.mark.parametrize(
    ("requests", "config_names", "old_names", "new_names"),
    [
        ([request("a", deviceClassName="tuned")], [], [("a",)], [()]),
        ([request(name, deviceClassName="tuned") for name in "ab"], [], [("a", "b")], [()]),
        ([request("a"), request("b", deviceClassName="tuned")], [], [("b",)], [("b",)]),
        ([request("a"), request("b")], [["a"], ["b", "a"]], [("a",), ("b", "a"), ("b", "a")], [("a",), ()]),
        ([either("a", request("x"), request("y"))], [["a"], ["a/x"], ["a/y"]], [("a",), ("a/x",)], [(), ()]),
        ([request("a")], [["a", "z"]], [("a", "z")], [()]),
    ],
)
def test_configuration_for_all_requests_names_none_in_newer_minors(requests, config_names, old_names, new_names):
    opaque = {"driver": DRIVER, "parameters": {"n": 0}}
    claims = claim(*requests, config=[{"requests": entry, "opaque": opaque} for entry in config_names])
    for release, expected_names in ((OLD, old_names), (NEW, new_names)):
        config = allocation_result(claims, a_slice("s", "g0", "g1"), release=release).devices.config
        assert [entry.requests for entry in config] == expected_names


def test_device_of_one_node_binds_the_claim_to_it():
    only = {"nodeSelectorTerms": [{"matchFields": [requirement("metadata.name", "n1")]}]}
    for slices in (a_slice("s", "g0"), a_slice("s", device("g0", bindsToNode=True), allNodes=True)):
        assert allocation_result(claim(), slices).node_selector == msgspec.convert(only, NodeSelector)


def test_device_of_all_nodes_binds_the_claim_to_none():
    assert allocation_result(claim(), a_slice("s", "g0", allNodes=True)).node_selector is None


def test_node_selectors_are_merged():
    slices = [
        a_slice("s", "g0", nodeSelector=selector(requirement("zone", "a", "b"))),
        a_slice("t", "g1", pool="q", nodeSelector=selector(requirement("zone", "b", "a"), requirement("gen", "1"))),
    ]
    union = selector(requirement("zone", "a", "b"), requirement("gen", "1"))
    labels = {"zone": "a", "gen": "1"}
    assert allocation_result(claim(request(count=2)), *slices, labels=labels).node_selector == msgspec.convert(
        union, NodeSelector
    )


def test_selector_with_several_terms_is_an_error():
    terms = selector(requirement("zone", "a"))["nodeSelectorTerms"]
    with pytest.raises(AllocationError, match=r"create NodeSelector for claim c: unsupported .* with 2 terms"):
        allocation_result(
            claim(), a_slice("s", "g0", nodeSelector={"nodeSelectorTerms": terms * 2}), labels={"zone": "a"}
        )


def test_ids_of_shares_come_from_the_given_random_source():
    slices = a_slice("s", device("g0", allowMultipleAllocations=True))
    first, second = (allocate(claim(), slices)[0].devices.results[0].share_id for _ in range(2))
    assert first == second
    assert len(first) == 36

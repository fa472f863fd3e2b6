"""Field selectors, as the API server parses, refuses and applies them."""

from __future__ import annotations

from typing import Any

import pytest

from podium.sandbox.errors import ApiError
from podium.sandbox.field_selectors import parse_field_selector
from podium.sandbox.resources import BY_KIND, resource_named
from podium.sandbox.views import to_stored

PODS = resource_named("pods")
CORE_EVENTS, EVENTS = BY_KIND["v1", "Event"], BY_KIND["events.k8s.io/v1", "Event"]

POD = {
    "metadata": {"name": "web-1", "namespace": "default"},
    "spec": {"schedulerName": "podium"},
    "status": {"phase": "Pending", "podIPs": [{"ip": "10.0.0.9"}, {"ip": "fd00::9"}]},
}


def selects(selector: str, obj: dict[str, Any], resource: Any = PODS) -> bool:
    return all(requirement.matches(obj) for requirement in parse_field_selector(selector, resource))


def refusal(selector: str, resource: Any = PODS) -> str:
    with pytest.raises(ApiError) as caught:
        parse_field_selector(selector, resource)
    assert caught.value.code == 400
    return str(caught.value)


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        ("metadata.name=web-1", True),
        ("metadata.name!=web-1", False),
        ("metadata.namespace==default", True),
        ("spec.nodeName=", True),
        ("spec.nodeName!=", False),
        ("spec.host=", True),
        ("spec.schedulerName=podium,status.phase=Pending", True),
        ("spec.schedulerName=podium,status.phase!=Pending", False),
        ("spec.hostNetwork=false", True),
        ("status.podIP=10.0.0.9", True),
        ("status.podIPs=10.0.0.9", False),
        ("status.podIPs=", True),
        (",,", True),
    ],
)
def test_a_field_selector_reads_fields_of_the_pod(selector: str, is_selected: bool) -> None:
    assert selects(selector, POD) is is_selected


def test_a_boolean_field_is_compared_as_text() -> None:
    nodes = resource_named("nodes")
    assert selects("spec.unschedulable=true", {"spec": {"unschedulable": True}}, nodes)
    assert not selects("spec.unschedulable=true", {"spec": {}}, nodes)


def test_a_number_that_is_not_there_is_zero() -> None:
    jobs = resource_named("jobs")
    assert selects("status.successful=0", {"status": {}}, jobs)
    assert selects("status.successful=2", {"status": {"succeeded": 2}}, jobs)


def test_each_event_api_has_labels_of_its_own_for_the_same_fields() -> None:
    event = to_stored(EVENTS, {"regarding": {"name": "web-1"}, "reportingController": "podium"})
    assert selects("regarding.name=web-1,reportingController=podium", event, EVENTS)
    assert selects("involvedObject.name=web-1,reportingComponent=podium", event, CORE_EVENTS)
    assert refusal("reportingComponent=podium", EVENTS) == "field label not supported: reportingComponent"
    assert refusal("regarding.name=web-1", CORE_EVENTS) == "field label not supported: regarding.name"
    assert refusal("source=podium", EVENTS) == "field label not supported: source"


def test_the_source_of_an_event_is_the_component_or_else_what_reports_it() -> None:
    old = {"source": {"component": "kubelet"}, "reportingComponent": "podium"}
    assert selects("source=kubelet", old, CORE_EVENTS)
    assert selects("source=podium", {"reportingComponent": "podium"}, CORE_EVENTS)


def test_an_escaped_comma_belongs_to_the_value() -> None:
    assert selects(r"metadata.name=a\,b\=c\\", {"metadata": {"name": "a,b=c\\"}})


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("spec.priority=1", "field label not supported: spec.priority"),
        ("=x", "field label not supported: "),
        (" metadata.name=a", "field label not supported:  metadata.name"),
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("zz=1,aa", "invalid selector: 'zz=1,aa'; can't understand 'aa'"),
        ("zz=1,aa=1", "field label not supported: aa"),
        ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
        (r"metadata.name=a\x", r"invalid field selector: invalid escape sequence: \x"),
        ("metadata.name=a\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_selector_that_cannot_be_is_a_bad_request(selector: str, message: str) -> None:
    assert refusal(selector) == message


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ("nodes", "field label not supported: metadata.namespace"),
        ("namespaces", "field label not supported: metadata.namespace"),
        (
            "resourceslices",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: metadata.namespace",
        ),
    ],
)
def test_some_kinds_without_namespaces_refuse_to_select_by_one(resource: str, message: str) -> None:
    assert refusal("metadata.namespace=a", resource_named(resource)) == message


def test_each_kind_refuses_in_the_words_of_its_api_version() -> None:
    unknown = '"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"'
    assert refusal("status.replicas=1", resource_named("replicasets")) == unknown
    assert refusal("x=1", resource_named("jobs")) == 'field label "x" not supported for Job'
    group = resource_named("podgroups.scheduling.x-k8s.io")
    assert refusal("x=1", group) == "field label not supported: x"

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.sandbox.errors import ApiError
from podium.sandbox.resources import resource_named
from podium.sandbox.selectors import (
    label_selector_text,
    match_label_selector,
    parse_label_selector,
    selection,
)

PODS = resource_named("pods")


def matches(selector: str, **labels: str) -> bool:
    return all(requirement.matches(labels) for requirement in parse_label_selector(selector))


@pytest.mark.parametrize(
    ("selector", "is_match"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("other!=web", True),
        ("app in (web, api)", True),
        ("app notin (web,api)", False),
        ("other notin (web)", True),
        ("app", True),
        ("!app", False),
        ("!other", True),
        ("app,tier=1", True),
        ("app=web,tier=2", False),
        ("tier>0", True),
        ("tier>1", False),
        ("tier<2", True),
        ("app>1", False),
        ("other>1", False),
        ("empty=", True),
        ("app=", False),
        ("empty in ()", True),
        (" app = web , tier = 1 ", True),
    ],
)
def test_a_label_selector_is_read_as_the_api_server_reads_it(selector, is_match):
    assert matches(selector, app="web", tier="1", empty="") is is_match


def test_a_selector_object_becomes_the_text_of_a_query():
    expressions = [{"key": "tier", "operator": "NotIn", "values": ["b", "a"]}, {"key": "x", "operator": "DoesNotExist"}]
    text = label_selector_text({"matchLabels": {"app": "web"}, "matchExpressions": expressions})
    assert text == "app=web,tier notin (a,b),!x"
    assert all(requirement.matches({"app": "web", "tier": "c"}) for requirement in parse_label_selector(text))


def test_a_prefixed_key_may_be_selected_by():
    assert all(r.matches({"example.com/a": "b"}) for r in parse_label_selector("example.com/a=b"))


@pytest.mark.parametrize(
    "selector", ["a=b,", "=b", "a in", "a in (", "a in (b", "a b", "a!", "-a=b", "a=b=c", ",", "!"]
)
def test_a_broken_label_selector_is_a_bad_request(selector):
    with pytest.raises(ApiError) as caught:
        parse_label_selector(selector)
    assert caught.value.code == 400


@given(st.text(alphabet="ab=!<>,() notin/.-", max_size=20))
def test_any_text_is_a_label_selector_or_a_bad_request(text):
    with contextlib.suppress(ApiError):
        assert isinstance(parse_label_selector(text), tuple)


NAMES = st.text(alphabet="abz019", min_size=1, max_size=6)


@given(NAMES, st.sets(NAMES, min_size=1, max_size=3), NAMES)
def test_notin_is_the_opposite_of_in(key, values, value):
    value_list = ",".join(sorted(values))
    labels = {key: value}
    inside = all(r.matches(labels) for r in parse_label_selector(f"{key} in ({value_list})"))
    outside = all(r.matches(labels) for r in parse_label_selector(f"{key} notin ({value_list})"))
    assert inside is (value in values)
    assert outside is not inside


@pytest.mark.parametrize(
    ("selector", "is_match"),
    [
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "api"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_a_label_selector_object_matches_labels(selector, is_match):
    assert match_label_selector(selector, {"app": "web"}) is is_match


POD = {
    "metadata": {"name": "web-1", "namespace": "default"},
    "spec": {"schedulerName": "podium"},
    "status": {"phase": "Pending"},
}


def test_a_selection_needs_namespace_labels_and_fields_to_match():
    assert selection(PODS, "default", "", "spec.schedulerName=podium").matches(POD)
    assert not selection(PODS, "kube-system").matches(POD)
    assert not selection(PODS, None, "app=web").matches(POD)

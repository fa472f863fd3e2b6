import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.sandbox.errors import ApiError
from podium.sandbox.patches import json_patch, merge_patch

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ],
)
def test_merge_patch_follows_the_examples_of_rfc_7386(target, patch, result):
    assert merge_patch(target, patch) == result


@pytest.mark.long
@given(JSON, JSON)
def test_merge_patch_leaves_its_target_alone_and_repeating_it_changes_nothing(target, patch):
    original = copy.deepcopy(target)
    once = merge_patch(target, patch)
    assert target == original
    assert merge_patch(once, patch) == once


def test_json_patch_applies_operations_in_order():
    target = {"a": [1, 2], "b": {"c/d": 1}}
    operations = [
        {"op": "test", "path": "/a/0", "value": 1},
        {"op": "add", "path": "/a/-", "value": 3},
        {"op": "add", "path": "/a/0", "value": 0},
        {"op": "replace", "path": "/b/c~1d", "value": 2},
        {"op": "copy", "from": "/b", "path": "/e"},
        {"op": "move", "from": "/b/c~1d", "path": "/f"},
        {"op": "remove", "path": "/a/1"},
    ]
    assert json_patch(target, operations) == {"a": [0, 2, 3], "b": {}, "e": {"c/d": 2}, "f": 2}
    assert target == {"a": [1, 2], "b": {"c/d": 1}}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "remove", "path": "/missing"},
        {"op": "replace", "path": "/missing", "value": 1},
        {"op": "add", "path": "/missing/b", "value": 1},
        {"op": "add", "path": "/list/7", "value": 1},
        {"op": "remove", "path": ""},
    ],
)
def test_an_operation_that_cannot_be_carried_out_is_invalid(operation):
    with pytest.raises(ApiError) as caught:
        json_patch({"a": 1, "list": []}, [operation])
    assert caught.value.code == 422


@pytest.mark.parametrize(
    "operations",
    [
        {},
        ["add"],
        [{"op": "grow", "path": "/a"}],
        [{"op": "add", "path": "a", "value": 1}],
        [{"op": "add", "path": "/a"}],
    ],
)
def test_a_malformed_json_patch_is_a_bad_request(operations):
    with pytest.raises(ApiError) as caught:
        json_patch({}, operations)
    assert caught.value.code == 400

import pytest

from podium.insight.json_patch import apply_patch, operation, pointer


@pytest.mark.parametrize(
    ("change", "patched"),
    [
        (operation("add", "/a/b", 2), {"a": {"b": 2, "c/d": 1}, "l": [1, 2]}),
        (operation("remove", "/a/c~1d"), {"a": {}, "l": [1, 2]}),
        (operation("replace", "/l/0", 9), {"a": {"c/d": 1}, "l": [9, 2]}),
        (operation("add", "/l/1", 9), {"a": {"c/d": 1}, "l": [1, 9, 2]}),
        (operation("add", "/l/-", 9), {"a": {"c/d": 1}, "l": [1, 2, 9]}),
        (operation("remove", "/l/0"), {"a": {"c/d": 1}, "l": [2]}),
    ],
)
def test_operations_change_a_copy(change, patched):
    original = {"a": {"c/d": 1}, "l": [1, 2]}
    assert apply_patch(original, [change]) == patched
    assert original == {"a": {"c/d": 1}, "l": [1, 2]}


@pytest.mark.parametrize(
    "change", [operation("replace", "/x", 1), operation("remove", "/x"), operation("add", "/x/y", 1)]
)
def test_a_path_that_does_not_exist_is_an_error(change):
    with pytest.raises(KeyError):
        apply_patch({}, [change])


def test_pointers_escape_slashes_and_tildes():
    assert pointer("metadata", "labels", "a/b~c", 0) == "/metadata/labels/a~1b~0c/0"

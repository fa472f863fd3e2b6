from dataclasses import dataclass

import pytest

from podium.config.document import parse_document
from podium.config.field_errors import ErrorList
from podium.config.scalars import BOOL, FLOAT32, INT32, OPTIONAL_DURATION, STRING
from podium.config.shapes import UNSET, Key, ListOf, MapOf, Plain, Reading, Record


def read(shape, text):
    reading = Reading()
    value = shape.read(parse_document(text, ErrorList()).root, "at", reading)
    return value, [error.text for error in reading.errors.errors]


@pytest.mark.parametrize(
    ("shape", "text", "value"),
    [
        (ListOf(INT32), "[1, 2]", (1, 2)),
        (ListOf(INT32), "[1, null]", (1, 0)),
        (MapOf(STRING), "{a: b}", {"a": "b"}),
        (MapOf(STRING), "{a: null}", {"a": ""}),
    ],
)
def test_lists_and_maps_are_read(shape, text, value):
    assert read(shape, text) == (value, [])


@pytest.mark.parametrize(
    ("shape", "text", "error"),
    [
        (ListOf(INT32), "{a: 1}", "at: expected a list, got an object"),
        (MapOf(STRING), "[a]", "at: expected an object, got a list"),
        (MapOf(STRING), "{a: 1}", "at.a: expected string, got 1"),
    ],
)
def test_lists_and_maps_are_strict(shape, text, error):
    assert read(shape, text)[1] == [error]


@pytest.mark.parametrize("shape", [STRING, BOOL, INT32, FLOAT32, OPTIONAL_DURATION, ListOf(STRING), MapOf(STRING)])
def test_null_leaves_a_field_unset(shape):
    assert read(shape, "null") == (UNSET, [])


@dataclass(frozen=True)
class Point:
    name: str
    weight: int = 7
    tags: tuple[str, ...] = ()


POINT = Record(
    Point,
    Key("name", "name", STRING),
    Key("weight", "weight", INT32, zero_is_default=True),
    Key("tags", "tags", ListOf(STRING), omit_empty=True),
)


def test_absent_field_takes_its_default_or_its_zero():
    assert read(POINT, "{}") == (Point("", 7, ()), [])


def test_zero_takes_the_default_where_upstream_cannot_tell_it_from_absent():
    assert read(POINT, "{name: a, weight: 0}") == (Point("a", 7), [])


def test_every_error_of_a_record_is_found_and_the_rest_is_read():
    value, errors = read(POINT, "{nam: a, weight: x, tags: [1, b], name: c}")
    assert value == Point("c", 7, ("", "b"))
    assert errors == [
        'at.nam: unknown field: did you mean "name"?',
        'at.weight: expected int32, got "x"',
        "at.tags[0]: expected string, got 1",
    ]


def test_list_item_that_cannot_be_read_keeps_its_place():
    value, errors = read(ListOf(POINT), "[5, {name: b}]")
    assert value == (Point(""), Point("b"))
    assert errors == ["at[0]: expected an object, got 5"]


def test_present_fields_are_remembered_with_their_lines():
    reading = Reading()
    POINT.read(parse_document("name: a\nweight: null\ntags: []\n", ErrorList()).root, "", reading)
    assert reading.present == {"name": 1, "tags": 3}


def test_empty_fields_are_written_only_where_upstream_writes_them():
    assert POINT.write(Point("")) == {"name": "", "weight": 7}
    assert POINT.write(Point("a", 0, ("x",))) == {"name": "a", "weight": 0, "tags": ["x"]}


def test_record_without_a_key_for_a_field_is_a_mistake():
    with pytest.raises(AssertionError, match="no key for"):
        Record(Point, Key("name", "name", STRING))


def test_plain_object_stays_json_and_is_strict():
    shape = Plain(Key("key", "key", STRING), Key("values", "values", ListOf(STRING), omit_empty=True))
    assert read(shape, "{key: a, values: []}") == ({"key": "a"}, [])
    assert read(shape, "{}") == ({"key": ""}, [])
    assert read(shape, "{keys: a}")[1] == ['at.keys: unknown field: did you mean "key"?']
    assert read(shape, "[]") == (UNSET, ["at: expected an object, got a list"])

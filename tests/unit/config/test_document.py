import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podium.config.document import Document, child, parse_document
from podium.config.field_errors import ErrorList
from podium.lib.yaml_reader import DEPTH_MAX, Node


def read(text):
    errors = ErrorList()
    document = parse_document(text, errors)
    return (None if document is None else document.root.plain()), [error.text for error in errors.errors]


def line_of(text):
    errors = ErrorList()
    parse_document(text, errors)
    return errors.errors[0].line


def test_quoted_scalars_are_strings():
    assert read("a: 'yes'\nb: \"5\"\nc: !!str 5\nd: |\n  1\n") == (
        {"a": "yes", "b": "5", "c": "5", "d": "1\n"},
        [],
    )


def test_every_value_knows_the_line_of_its_key():
    root = parse_document("a:\n  b:\n  - 1\n  - 2\n", ErrorList()).root
    assert root.value["a"].line == 1
    assert root.value["a"].value["b"].line == 2
    assert [item.line for item in root.value["a"].value["b"].value] == [3, 4]


def test_duplicate_key_in_yaml_is_reported_with_path_and_both_lines():
    value, errors = read("a:\n- b: 1\n  b: 2\n")
    assert value == {"a": [{"b": 2}]}
    assert errors == ["a[0].b: duplicate field: already set on line 2"]
    assert line_of("a:\n- b: 1\n  b: 2\n") == 3


def test_duplicate_keys_are_reported_wherever_they_are_and_in_the_first_document_only():
    text = "a:\n  - - x\n    - b: 1\n      1: 2\n      '1': 3\nc:\n  <<: {d: 1, d: 2}\n---\ne: 1\ne: .nan\n~: 2\n"
    assert read(text)[1] == [
        "a[0][1].1: duplicate field: already set on line 4",
        "c.d: duplicate field: already set on line 7",
    ]


def test_duplicate_key_in_json_is_reported():
    assert read('{"a": {"b": 1, "b": 2}}') == ({"a": {"b": 2}}, ["a.b: duplicate field: already set"])


def test_json_may_be_indented_with_tabs_and_keeps_its_floats():
    assert read('{\n\t"a": 16.0\n}') == ({"a": 16.0}, [])


def test_flow_style_yaml_is_not_mistaken_for_json():
    assert read("{a: [yes, 1]}") == ({"a": [True, 1]}, [])


def test_aliases_and_merge_keys_are_followed_and_own_keys_win():
    text = "base: &b {p: 1, q: 2}\nown:\n  <<: *b\n  q: 3\nboth:\n  <<: [{p: 5}, *b]\n"
    assert read(text)[0]["own"] == {"p": 1, "q": 3}
    assert read(text)[0]["both"] == {"p": 5, "q": 2}


def test_keys_are_text_whatever_they_look_like():
    assert read("1: a\ntrue: b\n")[0] == {"1": "a", "true": "b"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: [1", "yaml: "),
        ("a:\n\t b: 1", "yaml: found character"),
        ("a b\nc: 1", "yaml: mapping values are not allowed in this context"),
        ("? [a]\n: 1", "yaml: a key must be a scalar"),
        ("~: 1", "yaml: a key must not be null"),
        ("a: *nobody", "yaml: found undefined alias"),
        ("a: &a [*a]", "yaml: anchor 'a' contains itself"),
        ("a: .nan", "yaml: .nan is not a number"),
        ("a:\n  <<: 5", "yaml: map merge requires"),
        ('{"a": NaN}', "json: NaN is not a number"),
        ("a: \x00", "yaml: unacceptable character"),
    ],
)
def test_unreadable_text_is_one_error(text, error):
    value, errors = read(text)
    assert value is None
    assert len(errors) == 1
    assert errors[0].startswith(error)


NESTED_BY_ALIASES = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 102))


@pytest.mark.parametrize("text", ["[" * 102 + "]" * 102, "[" * 1500, NESTED_BY_ALIASES, '{"a":' * 1500])
def test_bottomless_text_is_refused(text):
    assert read(text)[1] == [f"nested more than {DEPTH_MAX} levels deep"]


def test_a_small_text_cannot_unfold_into_a_huge_one():
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
    )
    assert read(bomb)[1] == ["more than 10000 values, aliases included"]


def test_a_text_longer_than_any_configuration_is_not_even_looked_at():
    assert read("#" * (256 * 1024 + 1))[1] == ["more than 262144 characters"]


def test_a_key_without_a_name_is_still_shown():
    assert child("", "") == '""'
    assert child("a", "") == 'a.""'


def test_empty_text_is_null_and_later_documents_are_counted():
    assert read("") == (None, [])
    assert parse_document("a: 1\n---\nb: 2\n", ErrorList()) == Document(Node({"a": Node(1, 1)}, 1), 2)


@given(st.text(alphabet=st.sampled_from("ab:- \n\t{}[],\"'#&*!|>%@`0189._+eE<~?\x00é\U0001f600"), max_size=60))
@example("- 0:\n\t- <<:")
def test_any_text_is_a_tree_or_errors_and_never_a_crash(text):
    errors = ErrorList()
    document = parse_document(text, errors)
    assert document is not None or errors.errors

import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podium.lib.yaml_reader import ALIASED_VALUES_MAX, DEPTH_MAX, YamlError, read_documents


def _read(text):
    return list(read_documents(text))


def _error(text):
    with pytest.raises(YamlError) as error:
        _read(text)
    return str(error.value)


def _multiplying(line):
    """Ten lines, each ten times the one before; in all 10**9 values."""
    return "a0: &a0 {k0: 1, k1: 2}\n" + "".join(line(n, ",".join([f"*a{n - 1}"] * 10)) for n in range(1, 10))


@pytest.mark.parametrize(
    "text",
    [
        _multiplying(lambda n, previous: f"a{n}: &a{n} [{previous}]\n"),
        _multiplying(lambda n, previous: f"a{n}: &a{n}\n  <<: [{previous}]\n"),
    ],
    ids=["aliases", "merge keys"],
)
def test_aliases_that_multiply_are_refused_at_the_cost_of_the_text(text):
    began_s = time.process_time()
    assert f"its aliases expand to more than {ALIASED_VALUES_MAX} values" in _error(text)
    assert time.process_time() - began_s < 10


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, "- " * 100_000, "? " * 100_000])
def test_nesting_that_would_use_up_the_stack_is_refused(text):
    assert _error(text) == f"line 1: nested more than {DEPTH_MAX} levels deep"


def test_aliases_that_nest_too_deeply_are_refused():
    text = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} {{b: *a{n - 1}}}\n" for n in range(1, 200))
    assert _error(text) == f"line {DEPTH_MAX}: nested more than {DEPTH_MAX} levels deep"


def test_an_anchor_that_contains_itself_is_refused():
    assert _error("a: &a\n  b: *a\n") == "line 2: anchor 'a' contains itself"
    assert _error("a: &a\n  <<: *a\n") == "line 2: anchor 'a' contains itself"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: *b", "line 1: found undefined alias 'b'"),
        ("a: &x 1\n---\nb: *x", "line 3: found undefined alias 'x'"),
        ("? [a]\n: 1", "line 1: a key must be a scalar"),
        ("a:\n  <<: 5", "line 2: map merge requires map or sequence of maps as the value"),
        ('a: !!python/object/apply:os.system ["ls"]', "line 1: the tag tag:yaml.org,2002:python/object/apply"),
        ("a: !!binary aGk=", "line 1: the tag tag:yaml.org,2002:binary is not read"),
        ("a: \0", "unacceptable character #x0000: control characters are not allowed"),
        (b"\xff\xfe\x00", "incomplete UTF-16 character"),
        (b"a: \xc3\x28", "invalid trailing UTF-8 octet"),
    ],
)
def test_what_cannot_be_read_is_one_line_that_says_why(text, error):
    message = _error(text)
    assert error in message
    assert "\n" not in message


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "f" * 5000, "-" + "7" * 5000, "1e" + "9" * 5000])
def test_numbers_of_thousands_of_digits_are_text(number):
    assert _read(f"{{a: {number}}}") == [{"a": number}]


def test_merge_keys_give_way_to_own_keys_and_to_earlier_ones():
    text = "{x: &x {p: 1, q: 2}, a: {<<: *x, q: 3}, b: {q: 3, <<: [{p: 5}, *x]}, c: [<<], d: <<, '<<': e}"
    assert _read(text) == [
        {"x": {"p": 1, "q": 2}, "a": {"p": 1, "q": 3}, "b": {"p": 5, "q": 3}, "c": ["<<"], "d": "<<", "<<": "e"}
    ]


def test_merging_costs_no_more_than_what_is_merged():
    keys = ", ".join(f"k{n}: 1" for n in range(20_000))
    began_s = time.process_time()
    (document,) = _read(f"{{x: &x {{a: 1}}, z: {{{keys}, <<: [{', '.join(['*x'] * 20_000)}]}}}}")
    assert len(document["z"]) == 20_001
    assert time.process_time() - began_s < 10


def test_explicit_tags_of_plain_values_count():
    assert _read('{a: !!str 5, b: !!int "5", c: !!bool "yes", d: ! 5}') == [{"a": "5", "b": 5, "c": True, "d": "5"}]


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.long
@given(st.lists(_values, max_size=3))
def test_what_is_dumped_is_read(documents):
    assert _read(yaml.safe_dump_all(documents, default_style='"', allow_unicode=True)) == documents

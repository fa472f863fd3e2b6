import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cel import CompileError
from podium.cel.parser import DEPTH_MAX, LENGTH_MAX, parse
from podium.cel.syntax import Call, Ident, Literal, MessageLiteral, Select
from podium.devices.selectors import compile_selector
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "text",
    [
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "7 - 2 - 1 == 4",
        "!true == false",
        "!!true",
        "--1 == 1",
        "-(-1) == 1",
        "true ? true : false",
        "false ? 1 == 2 : true ? true : false",
        "1 < 2 == true",
        "[1, 2,] == [1, 2]",
        "{'a': 1,} == {'a': 1}",
        "1 in [1] && 2 in {2: 3}",
        "true // a comment",
        "\n true \t",
        "-9223372036854775808 < 0",
        "0x1F == 31",
        "1u == 1u",
        "1e3 == 1000.0",
        ".5 == 0.5",
        ".device.driver == device.driver",
        "true || false && false",
    ],
)
def test_expression_is_read_as_it_is_written(text):
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 +",
        "(true",
        "true)",
        "[1",
        "{1",
        "{1: }",
        "a.",
        "a.b(",
        "a.1",
        "true false",
        "1 = 1",
        "a ? b",
        "f(,)",
        "`a`",
        "'a",
        '"\n"',
        "'\\q'",
        "9223372036854775808 > 0",
        "-9223372036854775809 < 0",
        "1e999 > 0.0",
        "18446744073709551616u > 0u",
        "for == 1",
        "a.all(1, true)",
        "has(1)",
        "a.map(x.y, x)",
        "[1].all(i, i, true)",
        "&& true",
        "b'\\u00e9' == b''",
        "'\\ud800' == ''",
        "1..2",
        "#",
        "a.?1",
        "[?]",
    ],
)
def test_mistake_is_a_compile_error(text):
    with pytest.raises(CompileError):
        compile_selector(text)


def test_error_says_where():
    with pytest.raises(CompileError, match=r"^2:9: "):
        compile_selector("true &&\n  1 == (\\)")


def test_chain_of_the_same_logic_is_one_call():
    tree = parse("a && b && c || d")
    assert isinstance(tree, Call)
    assert (tree.function, len(tree.arguments)) == ("_||_", 2)
    assert isinstance(tree.arguments[0], Call)
    assert len(tree.arguments[0].arguments) == 3


def test_minus_belongs_to_the_number():
    assert parse("-1") == Literal(0, -1)


def test_message_differs_from_a_map():
    assert isinstance(parse("a.b{c: 1}"), MessageLiteral)
    assert parse("a.b") == Select(1, Ident(0, "a"), "b")


DEEP = 100_000


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "(" * DEEP + "true" + ")" * DEEP,
        "[" * DEEP,
        "{" * DEEP,
        "!" * DEEP + "(" * 300,
        "-" * DEEP + "a(" * 300,
        "a" + ".b" * 40_000,
        "a" + "[0]" * 30_000,
        "1" + "+1" * 40_000,
        "true?" * 20_000,
        "a(" * 40_000,
        "x.all(y," * 10_000,
        "optional.of(1)" + ".optMap(x,x)" * 5_000,
        "a{" * 40_000,
        "'" * 99_999,
        "has(" * 20_000,
    ],
)
def test_deep_nesting_is_a_compile_error(text):
    with pytest.raises(CompileError):
        compile_selector(text)


def test_ten_megabytes_are_refused_unread():
    for text in ("true" + " " * 10_000_000, '"' + "a" * 10_000_000 + '"', "1" * 10_000_000):
        with pytest.raises(CompileError, match=f"more than the limit of {LENGTH_MAX}"):
            compile_selector(text)


def test_digits_without_end_are_a_compile_error():
    for text in ("9" * 90_000, "0x" + "f" * 90_000, "9" * 90_000 + "u", "9" * 90_000 + ".0"):
        with pytest.raises(CompileError):
            compile_selector(f"{text} == 1")


def test_wide_expressions_compile():
    count = 500
    for text in (" && ".join(["true"] * count), " || ".join(["device.driver == 'x'"] * count), f"1 in {[1] * count}"):
        compile_selector(text)


def test_nesting_up_to_the_limit_compiles():
    depth = DEPTH_MAX - 1
    compile_selector("(" * depth + "true" + ")" * depth)


PIECES = st.sampled_from(
    [
        *(
            "device",
            ".",
            "attributes",
            "[",
            "]",
            "(",
            ")",
            "{",
            "}",
            "a",
            "1",
            "2u",
            "3.5",
            "true",
            "null",
            "&&",
            "||",
            "!",
        ),
        *(
            "==",
            "!=",
            "<",
            "in",
            "+",
            "-",
            "*",
            "/",
            "%",
            "?",
            ":",
            ",",
            "\n",
            "//",
            "\\",
            "`",
            "#",
            ".?",
            "[?",
            "{1:2}",
        ),
        *("'a'", '"["', '"(a|b)*"', 'b"\\xff"', 'r"\\d"', '"%s"', '"1h"', "has", "all", "exists", "map", "filter", "x"),
        *("optional.of", "cel.bind", "ip", "quantity", "semver", "matches", "format", "timestamp", "duration", "size"),
        *("lists.range", "sort", "sortBy", "optMap", "string"),
    ]
)


@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=14).map(" ".join), st.lists(PIECES).map("".join)))
def test_any_text_compiles_or_is_a_compile_error(text):
    with contextlib.suppress(CompileError):
        compile_selector(text)

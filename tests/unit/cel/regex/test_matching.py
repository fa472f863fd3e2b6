import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cel.errors import CostLimitError
from podium.cel.regex import PatternError, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "is_match"),
    [
        ("b", "abc", (1, 2)),
        ("^[ah]100$", "a100", (0, 4)),
        ("a|ab", "ab", (0, 1)),
        ("(?:a|ab)c", "abc", (0, 3)),
        ("a*?b", "aab", (0, 3)),
        ("a+?", "aaa", (0, 1)),
        ("(?U:a+)", "aaa", (0, 1)),
        ("a{2,3}", "aaaa", (0, 3)),
        ("a{,2}", "a{,2}", (0, 5)),
        ("x*", "aaa", (0, 0)),
        ("(|a)*", "aa", (0, 0)),
        ("(a|)+", "aa", (0, 2)),
        (r"\bfoo\b", "a foo b", (2, 5)),
        (r"\Bo", "foo", (1, 2)),
        ("(?m)^b$", "a\nb\nc", (2, 3)),
        ("^b$", "a\nb", None),
        ("a.c", "a\nc", None),
        ("(?s)a.c", "a\nc", (0, 3)),
        ("(?i)straSSE", "STRASSE", (0, 7)),
        ("(?i)k", "\u212a", (0, 1)),
        ("(?i)[^k]", "K", None),
        (r"(?i)\p{Lu}", "a", (0, 1)),
        (r"\d\s\w", "1 _", (0, 3)),
        (r"\D", "\u0661", (0, 1)),
        (r"\pL\p{Lu}\PN", "\u00e9\u00c9x", (0, 3)),
        ("[[:alpha:]-]+", "a-b1", (0, 3)),
        ("[]a]", "]", (0, 1)),
        (r"[\d-x]+", "1-x", (0, 3)),
        ("[a-]+", "-a", (0, 2)),
        (r"\Qa.b\E", "aXb a.b", (4, 7)),
        (r"\x61\x{e9}\101\n", "a\u00e9A\n", (0, 4)),
        ("(?P<n>a)(?<m>b)", "ab", (0, 2)),
        (r"\Aa\z", "a", (0, 1)),
        ("", "a", (0, 0)),
    ],
)
def test_pattern_is_found_where_re2_finds_it(pattern, text, is_match):
    program = compile_pattern(pattern)
    assert program.find(text) == is_match
    assert program.search(text) is (is_match is not None)


@pytest.mark.parametrize(
    "pattern",
    [
        "[",
        "(",
        ")",
        "a**",
        "*",
        "a|*",
        "(?=a)",
        "(?<!a)",
        r"(a)\1",
        r"\8",
        "a{2,1}",
        "a{1001}",
        "(a{100}){11}",
        "[b-a]",
        "\\",
        r"\pX",
        r"\p{Greek}",
        "[[:foo:]]",
        r"\C",
        r"\x{110000}",
        "(?z)",
        "a{3}{2}",
        "(" * 100_000,
        "(?:a{500}b{500}){1000}",
    ],
)
def test_text_that_is_no_pattern_is_refused(pattern):
    with pytest.raises(PatternError):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "limit", "matches"),
    [
        ("[0-9]+", "a1b22", -1, [(1, 2), (3, 5)]),
        ("a*", "baac", -1, [(0, 0), (1, 3), (4, 4)]),
        ("a", "aaa", 2, [(0, 1), (1, 2)]),
        ("a", "aaa", 0, []),
        ("", "ab", -1, [(0, 0), (1, 1), (2, 2)]),
    ],
)
def test_all_matches_do_not_overlap(pattern, text, limit, matches):
    assert list(compile_pattern(pattern).find_all(text, limit)) == matches


@pytest.mark.parametrize(
    "pattern", ["(a*)*b", "(a+)+$", "(a|a)*b", "(.*)*(.*)*(.*)*x", "(a?){500}a{500}", "(?:a|b)*c", "([ab]*a[ab]{12})+c"]
)
def test_pattern_that_makes_others_backtrack_does_not(pattern):
    program = compile_pattern(pattern)
    for text in ("a" * 2_000, "ab" * 1_000):
        with contextlib.suppress(CostLimitError):  # it takes too many steps
            program.search(text)
            program.find(text)


def test_search_remembers_its_states_within_bounds():
    program = compile_pattern("(?:a|b)*a(?:a|b){8}c")
    text = "".join("ab"[(i * i) % 7 % 2] for i in range(3_000))
    assert program.search(text) is False
    assert program.search(text + "abbbbbbbbc") is True


@given(st.text("abc()[]{}*+?|^$.\\dpL-1,:P<>isU", max_size=25), st.text("abc1 \n", max_size=8))
def test_any_text_is_a_pattern_or_refused(pattern, text):
    try:
        program = compile_pattern(pattern)
    except PatternError:
        return
    assert program.search(text) is (program.find(text) is not None)

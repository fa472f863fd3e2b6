import pytest

from podium.cel.errors import CompileError
from podium.cel.lexer import END, place, tokens


def kinds(text):
    return [token.kind for token in tokens(text)]


def test_text_is_split_into_tokens():
    assert kinds("a1 in [1, 2u, .5e1] && !b\"x\" // rest") == [
        *("name", "in", "[", "int", ",", "uint", ",", "float", "]", "&&", "!", "bytes", END)
    ]  # fmt: skip
    assert kinds("x.?y[?0] >= true ? null : r'\\'") == [
        *("name", ".", "?", "name", "[", "?", "int", "]", ">=", "true", "?", "null", ":", "string", END)
    ]  # fmt: skip


def test_keyword_is_a_whole_word():
    assert kinds("inside trueish") == ["name", "name", END]


@pytest.mark.parametrize("text", ["'a", '"\n"', "@", "a & b", "`a", "``", "`a$`", "'\\z'", "\u00e9"])
def test_what_is_no_token_is_refused(text):
    with pytest.raises(CompileError, match="unexpected character"):
        tokens(text)


def test_place_counts_lines_and_columns_from_one():
    assert place("ab\ncd", 0) == "1:1"
    assert place("ab\ncd", 4) == "2:2"

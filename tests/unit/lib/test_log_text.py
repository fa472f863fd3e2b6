import pytest

from podium.lib.log_text import printable_value, without_middle, without_user_info
from podium.lib.printable import printable


@pytest.mark.parametrize("text", ["default/web-1", "\x1b[2J\x07", "one\ntwo\r", "\u202egpj.exe\u2028", "\udcff"])
def test_value_is_escaped_at_any_depth(text):
    assert printable_value(text) == printable(text)
    assert printable_value([text]) in ([text], printable(repr([text])))
    assert "\x1b" not in str(printable_value({text: text}))


def test_an_object_with_a_text_of_its_own_is_escaped_too():
    class Odd:
        def __repr__(self):
            return "\x1b[31modd"

    assert printable_value(Odd()) == "\\x1b[31modd"


def test_a_text_that_is_too_long_loses_its_middle():
    assert without_middle("abcdef", 6) == "abcdef"
    assert without_middle("abcdefgh", 4) == "ab\n... 4 characters left out ...\ngh"


@pytest.mark.parametrize(
    ("text", "text_after"),
    [
        ("https://ann:s3cr3t@host:6443: refused", "https://[redacted]@host:6443: refused"),
        ("by http://ann:s3/cr3t@proxy and http://b:c@d", "by http://[redacted]@proxy and http://[redacted]@d"),
        ("https://token@host/path", "https://[redacted]@host/path"),
        ("https://host/path and a@b", "https://host/path and a@b"),
    ],
)
def test_urls_lose_their_users(text, text_after):
    assert without_user_info(text) == text_after

import json

import pytest

from podium.telemetry.log_text import (
    printable,
    printable_json,
    printable_lines,
    printable_value,
    without_middle,
    without_user_info,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("default/web-1", "default/web-1"),
        ("Zürich 東京", "Zürich 東京"),
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("one\ntwo\r", "one\\ntwo\\r"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("\u202egpj.exe\u2028", "\\u202egpj.exe\\u2028"),
        ("\udcff", "\\udcff"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text, shown):
    assert printable(text) == shown
    assert printable_value([text]) in ([text], printable(repr([text])))
    assert "\x1b" not in str(printable_value({text: text}))


def test_an_object_with_a_text_of_its_own_is_escaped_too():
    class Odd:
        def __repr__(self):
            return "\x1b[31modd"

    assert printable_value(Odd()) == "\\x1b[31modd"


def test_lines_of_a_traceback_stay_lines_but_begin_no_entry():
    assert printable_lines("Traceback\n\tfile\x1b\nValueError: 12:00 [info] fake") == (
        "Traceback\n        file\\x1b\n    ValueError: 12:00 [info] fake"
    )


def test_a_text_that_is_too_long_loses_its_middle():
    assert without_middle("abcdef", 6) == "abcdef"
    assert without_middle("abcdefgh", 4) == "ab\n... 4 characters left out ...\ngh"


def test_json_says_the_same_without_what_a_terminal_would_obey():
    entry = {"path": "\x9b2J\u202e Zürich \U000e0001"}
    document = printable_json(json.dumps(entry, ensure_ascii=False).encode())
    assert json.loads(document) == entry
    assert document.decode().isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://ann:s3cr3t@host:6443: refused", "https://[redacted]@host:6443: refused"),
        ("by http://ann:s3/cr3t@proxy and http://b:c@d", "by http://[redacted]@proxy and http://[redacted]@d"),
        ("https://token@host/path", "https://[redacted]@host/path"),
        ("https://host/path and a@b", "https://host/path and a@b"),
    ],
)
def test_urls_lose_their_users(text, shown):
    assert without_user_info(text) == shown

import json

import pytest

from podium.lib.printable import printable, printable_json, printable_layout, printable_lines, printable_values


@pytest.mark.parametrize(
    ("text", "text_after"),
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
def test_what_a_terminal_would_obey_is_escaped(text, text_after):
    assert printable(text) == text_after


def test_lines_of_a_traceback_stay_lines_but_begin_no_entry():
    assert printable_lines("Traceback\n\tfile\x1b\nValueError: 12:00 [info] fake") == (
        "Traceback\n        file\\x1b\n    ValueError: 12:00 [info] fake"
    )


def test_line_breaks_of_a_layout_stay():
    assert printable_layout("one\n  two\x1b\n") == "one\n  two\\x1b\n"


def test_values_are_escaped_at_any_depth():
    value = {"a\x9b": ["\u202e", {"b": "c\n"}, 5, None, True]}
    assert printable_values(value) == {"a\\x9b": ["\\u202e", {"b": "c\\n"}, 5, None, True]}


def test_json_says_the_same_without_what_a_terminal_would_obey():
    entry = {"path": "\x9b2J\u202e Zürich \U000e0001\x7f"}
    document = printable_json(json.dumps(entry, ensure_ascii=False).encode())
    assert json.loads(document) == entry
    assert document.decode().isprintable()


def test_json_of_ascii_says_the_same_without_del():
    assert json.loads(printable_json(b'["\x7f"]')) == ["\x7f"]
    assert printable_json(b'["\x7f"]').decode().isprintable()

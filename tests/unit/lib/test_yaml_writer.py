from random import Random

import yaml

from podium.lib.yaml_writer import to_yaml

ODD = [
    "\x1b[2J",
    "\x85",
    "\x9b",
    "\u202e",
    "\u2066",
    "\u2028",
    "\ufeff",
    "\U000e0001",
    "\x7f",
    "\n",
    "\t",
    " ",
    "a",
    "ü",
    "\u00a0",
]
ODD += ['"', "'", "\\", ": ", "#", "- ", "{", "😀"]


def test_whatever_is_written_is_read_as_it_was_and_printable():
    random = Random(5)
    for _ in range(500):
        texts = ["".join(random.choices(ODD, k=random.randrange(12))) for _ in range(4)]
        value = {texts[0]: [texts[1], 5, None], "a": {texts[2]: texts[3]}}
        text = to_yaml(value)
        assert yaml.safe_load(text) == value
        assert text.replace("\n", "").isprintable()


def test_line_break_of_a_text_begins_no_line():
    assert to_yaml({"why": "no\nadd the rule"}) == 'why: "no\\nadd the rule"\n'


def test_what_is_printable_is_written_as_ever():
    value = {"kind": "Pod", "names": ["web-1", "Zürich", "5", "true", ""], "empty": {}, "n": 5}
    assert to_yaml(value) == yaml.safe_dump(value, sort_keys=False, allow_unicode=True)

from tests.unit.python_text import comments_and_code, identifiers


def test_comments_are_told_from_strings() -> None:
    text = "a = \"#\"  # why\n# noqa\n\nb = '''\n# text\n\n'''  # type: ignore\nc = \"\\\"#\"\n"
    assert comments_and_code(text) == (["# why", "# noqa", "# type: ignore"], {1, 4, 5, 6, 7, 8})


def test_identifiers_are_names_in_code_but_those_of_attributes() -> None:
    text = 'def f(a): return a.b(c="d" + f"{e} {(g := 1)}")  # h\n'
    assert identifiers(text) == {"def", "f", "a", "return", "c", "e", "g"}

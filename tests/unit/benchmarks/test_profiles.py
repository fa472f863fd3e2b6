import pytest

from benchmarks.profiles import place


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (("~", 0, "<built-in method len>"), "<built-in method len>"),
        (("/home/me/podium/podium/framework/cycle/search.py", 12, "search"), "framework/cycle/search.py:12 search"),
        (("/venv/lib/python3.11/site-packages/anyio/_core.py", 5, "run"), "anyio/_core.py:5 run"),
        (("/usr/lib/python3.11/asyncio/tasks.py", 3, "create_task"), "asyncio/tasks.py:3 create_task"),
        (("/elsewhere/script.py", 1, "main"), "script.py:1 main"),
    ],
)
def test_functions_are_named_by_where_they_are(code: tuple[str, int, str], text: str) -> None:
    assert place(code) == text

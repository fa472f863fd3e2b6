"""The answers in README and docs are those that podium gives now, and each is made by something."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from tests.shown_answers import ROOT, blocks, faults, live_answers, pages, remake

LONG = pytest.mark.long
MCP_PAGE = "docs/mcp.md"
"""Its code starts a server, and asks it."""


@pytest.fixture(autouse=True)
def _in_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("page", [pytest.param(page, marks=LONG if page == MCP_PAGE else ()) for page in pages()])
def test_a_page_shows_what_is_printed(page: str) -> None:
    text = Path(page).read_text()
    with warnings.catch_warnings(action="ignore"):
        assert remake(page, text) == text, "run: python -m tests.shown_answers"


def test_everything_that_pages_show_is_made_by_something() -> None:
    assert [fault for page in pages() for fault in faults(page, Path(page).read_text())] == []


def test_answers_are_found_in_pages() -> None:
    by_page = {page: [block for block in blocks(page, Path(page).read_text()) if block.is_answer] for page in pages()}
    pages_with_answers = {page for page, answers in by_page.items() if answers}
    assert pages_with_answers >= {
        "docs/answers.md",
        "docs/library.md",
        "docs/questions.md",
        "docs/queue.md",
        "docs/shadow.md",
    }
    assert live_answers().keys() == {"queue", "shadow"}


@pytest.mark.parametrize(
    "block",
    [
        "```console\n$ kubectl get pods\nNAME   READY\n```\n",
        "```console\n$ podium capacity -f a.yaml\n12 more fit\n$ podium config defaults\n```\n",
        "```\n0/3 nodes are available\n```\n",
        "1. Ask:\n\n   ```console\n   $ curl localhost\n   ok\n   ```\n",
        "```python\ncluster = 1\n```\n\n```text\n12\n```\n",
    ],
)
def test_an_answer_that_nothing_makes_is_a_fault(block: str) -> None:
    (fault,) = faults("page.md", f"Words.\n\n{block}")
    assert fault.endswith(": nothing makes this answer")


def test_python_has_to_show_what_it_prints() -> None:
    code = "```python\nprint(1)\n```\n"
    assert list(faults("page.md", f"{code}\n```text\n1\n```\n")) == []
    (fault,) = faults("page.md", f"{code}\n```yaml\na: 1\n```\n")
    assert fault.startswith("page.md:1: it prints something")
    assert list(faults("page.md", "```python\ndef shown(): print(1)\n```\n")) == []


def test_commands_alone_are_no_answer() -> None:
    text = "```console\n$ podium run\n$ podium plan \\\n    -f a.yaml   # what to buy\n```\n"
    (block,) = blocks("page.md", text)
    assert not block.is_answer
    assert block.commands == ["podium run", "podium plan \\\n    -f a.yaml"]
    assert list(faults("page.md", text)) == []


def test_what_is_printed_now_takes_the_place_of_what_was() -> None:
    text = (
        "```python\nnumber = 2\n```\n\n  ```python\n  print(number + 1)\n  ```\n\n  ```text\n  4\n  5\n  ```\n\nEnd.\n"
    )
    assert remake("page.md", text) == text.replace("  4\n  5\n", "  3\n")
    version = "```console\n$ podium --version\npodium 0\n```\n"
    assert "podium 0\n" not in remake("page.md", version)
    assert remake("page.md", version).startswith("```console\n$ podium --version\npodium")


def test_an_answer_of_a_running_podium_is_left_to_its_own_test() -> None:
    text = "<!-- answer: queue -->\n```console\n$ podium why web\nnothing\n```\n"
    assert remake("page.md", text) == text
    assert list(faults("page.md", text)) == []
    assert [block.name for block in blocks("page.md", text)] == ["queue"]

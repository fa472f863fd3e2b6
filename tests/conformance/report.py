"""docs/conformance.md: a table of recorded questions, and a row for each part with what came of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import podium
from podium.config import RELEASES
from tests.conformance.parts import PARTS, ROOT, Part, corpora

PAGE: Final = ROOT / "docs/conformance.md"

_HEAD: Final = """\
# Conformance report

What podium {version} was held against, and what came of it: the output of `python -m tests.conformance`. It decides as
kube-scheduler {releases}. Each row names the commit that it was run on, and says so where a part was not run or needs
what the machine does not have. `python -m tests.conformance PART` runs a part again and keeps the other rows.

## Parts

| part | what holds | outcome | commit | Python | `python` … |
|---|---|---|---|---|---|
"""
_CORPORA: Final = """
## Recorded questions

Files in `tests/parity/data`, answered by upstream's own code. The part `recorded` compares every answer.

| file | version asked | questions | SHA-256 |
|---|---|--:|---|
"""
_NOT_RUN: Final = "not run"
_ROW: Final = re.compile(
    r"^\| `(?P<name>[\w-]+)` \| [^|]* \| (?P<outcome>[^|]*) \| (?P<commit>[^|]*) \| (?P<python>[^|]*) \|"
)


class Outcome(NamedTuple):
    """What came of a part.

    Attributes:
        text: "passed", "FAILED" or "not run", and the numbers.
        commit: of the tree that was tested; "" if the part was not run.
        python: the version of Python that ran it.
    """

    text: str
    commit: str = ""
    python: str = ""


def page(outcomes: Mapping[str, Outcome]) -> str:
    """Return the page with these outcomes by the name of the part."""
    releases = " and ".join(RELEASES)
    rows = [_row(part, outcomes.get(part.name, Outcome(_NOT_RUN))) for part in PARTS]
    files = [
        f"| `{corpus.name}` | {corpus.version or '–'} | {corpus.questions:,} | `{corpus.sha256}` |"
        for corpus in corpora()
    ]
    head = _HEAD.format(version=podium.__version__, releases=releases)
    return head + "\n".join(rows) + "\n" + _CORPORA + "\n".join(files) + "\n"


def _row(part: Part, outcome: Outcome) -> str:
    columns = (f"`{part.name}`", part.claim, outcome.text, outcome.commit, outcome.python, f"`{part.arguments}`")
    return f"| {' | '.join(column or '–' for column in columns)} |"


def outcomes_of(text: str) -> dict[str, Outcome]:
    """Return the outcomes that a page shows."""
    matches = (_ROW.match(line) for line in text.splitlines())
    return {
        match["name"]: Outcome(*(match[column].replace("–", "") for column in ("outcome", "commit", "python")))
        for match in matches
        if match is not None
    }


def outcome_text(is_success: bool, output: str) -> str:
    """Return the outcome of a command in words: its last lines have the numbers."""
    lines = [line.strip().strip("=").strip() for line in output.splitlines() if line.strip()]
    numbers = [line for line in lines if re.search(r"\d", line)]
    last = numbers[-1] if numbers else ""
    cell = last.replace("|", "/").replace(str(ROOT), ".")[:240]
    return f"{'passed' if is_success else 'FAILED'}: {cell}"


def read(file: Path = PAGE) -> dict[str, Outcome]:
    """Return the outcomes that the page shows, none if there is no page."""
    return outcomes_of(file.read_text()) if file.exists() else {}

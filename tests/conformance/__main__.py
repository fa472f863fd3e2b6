"""`python -m tests.conformance`: run every part of the conformance report, and write docs/conformance.md.

Takes one to two hours on 2 cores, with Go's binaries built before. What cannot be run here is named on the page.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import time

import click

from tests.conformance.parts import PARTS, ROOT, Part
from tests.conformance.report import PAGE, Outcome, outcome_text, page, read
from tests.control_plane import catalogue
from tests.control_plane.locate import evaluate_all


@click.command(help=__doc__)
@click.argument("parts", nargs=-1, type=click.Choice([part.name for part in PARTS]))
def main(parts: tuple[str, ...]) -> None:
    outcomes = read()
    for part in PARTS:
        if parts and part.name not in parts:
            continue
        outcomes[part.name] = _run(part)
        click.echo(f"{part.name}: {outcomes[part.name].text}")
        # Each part may take long: what is known by now is kept.
        PAGE.write_text(page(outcomes))
    sys.exit(any(outcome.text.startswith("FAILED") for outcome in outcomes.values()))


def _run(part: Part) -> Outcome:
    if part.needs_control_plane and (missing := _missing_binaries()):
        return Outcome(f"not run: this machine has no {', '.join(missing)}")
    started_s = time.monotonic()
    result = subprocess.run(
        [sys.executable, *part.command], cwd=ROOT, capture_output=True, text=True, errors="replace", check=False
    )
    if result.returncode:
        click.echo(result.stdout[-3000:] + result.stderr[-3000:], err=True)
    text = outcome_text(result.returncode == 0, result.stdout or result.stderr)
    text = f"{text} ({time.monotonic() - started_s:.0f} s)"
    return Outcome(text, _commit(), platform.python_version())


def _missing_binaries() -> list[str]:
    locations = evaluate_all().locations
    return [tool.name for tool in catalogue.TOOLS if tool.name not in locations]


def _commit() -> str:
    commit = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return commit.stdout.strip()


if __name__ == "__main__":
    main()

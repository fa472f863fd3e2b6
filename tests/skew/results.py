"""What pytest reports of one topic on one release, and the table of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET


@dataclass(frozen=True, slots=True)
class Result:
    """How many tests ended how."""

    passes: int = 0
    failures: int = 0
    skips: int = 0

    @property
    def is_good(self) -> bool:
        """Whether tests ran, and all that did have passed."""
        return self.passes > 0 and self.failures == 0

    def __str__(self) -> str:
        if self == Result():
            return "nothing ran"
        parts = {"passed": self.passes, "failed": self.failures, "skipped": self.skips}
        return ", ".join(f"{count} {name}" for name, count in parts.items() if count)


def read_result(report: Path) -> Result:
    """Reads a report in JUnit's form. Without one, because pytest did not get so far, nothing ran."""
    if not report.is_file():
        return Result()
    cases = [{part.tag for part in case} for case in ET.parse(report).iter("testcase")]
    failures = sum(bool(parts & {"failure", "error"}) for parts in cases)
    skips = sum("skipped" in parts for parts in cases)
    return Result(len(cases) - failures - skips, failures, skips)


def table(results: Mapping[str, Mapping[str, Result]], topics: Sequence[str]) -> str:
    """The results by version and topic: a row for each topic, a column for each version."""
    rows = [["", *results], *([topic, *(str(result[topic]) for result in results.values())] for topic in topics)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)

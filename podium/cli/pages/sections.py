"""The sections of a page, as values. `page.js` draws each kind of section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final, TypeAlias

ROWS_MAX: Final = 500
"""The number of rows that a table shows."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values."""

    kind: ClassVar[str] = "facts"
    title: str
    facts: Mapping[str, str]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts and numbers.

    Attributes:
        marked: the rows that stand out, by index.
    """

    kind: ClassVar[str] = "table"
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | int | float | None]]
    marked: Sequence[int] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """Values over the page's `times_s`; None at times without a value."""

    kind: ClassVar[str] = "lines"
    title: str
    unit: str
    series: Mapping[str, Sequence[float | None]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Heat:
    """Nodes over the page's `times_s`.

    Attributes:
        nodes: for each node its name, its zone, and for CPU and memory the requested shares in percent, as two
            hexadecimal digits for each time; ff at times when the node did not exist.
    """

    kind: ClassVar[str] = "heat"
    title: str
    nodes: Sequence[tuple[str, str, str, str]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Pairs of bars: a name, and the values before and after."""

    kind: ClassVar[str] = "bars"
    title: str
    unit: str
    pairs: Sequence[tuple[str, float, float]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """Points with several values, of which the reader chooses two.

    Attributes:
        axes: the headings of the values, by name.
        points: for each point its name, whether it stands out, and its values.
    """

    kind: ClassVar[str] = "plot"
    title: str
    axes: Mapping[str, str]
    points: Sequence[tuple[str, bool, Mapping[str, float | None]]]
    note: str = ""


Section: TypeAlias = Facts | Table | Lines | Heat | Bars | Plot


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Attributes:
        headline: the answer in a sentence.
        times_s: the times of `Lines` and `Heat`, in seconds since `started_s`.
        started_s: in seconds since the epoch; None if unknown.
    """

    title: str
    headline: str
    sections: Sequence[Section]
    times_s: Sequence[float] = ()
    started_s: float | None = None

    def as_value(self) -> dict[str, Any]:
        """Return the page as JSON values."""
        return {**asdict(self), "sections": [{"kind": section.kind, **asdict(section)} for section in self.sections]}


def capped_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str | int | float | None]], note: str = ""
) -> Table:
    """Build a table of the first rows, with the number of further ones in its note."""
    if len(rows) > ROWS_MAX:
        note = f"{note} {len(rows) - ROWS_MAX} more are left out.".strip()
    return Table(title, columns, rows[:ROWS_MAX], note=note)

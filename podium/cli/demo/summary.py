"""The summary of a demo: the pods by zone, the nodes by utilisation, and the reasons of pods without a node."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from rich.text import Text

from podium.cli.demo.devices import ClaimUse, DeviceUse
from podium.cli.demo.outcome import NodeUse, Outcome, pods_per_zone
from podium.lib.plurals import count_of

_WIDTH_MIN, _WIDTH_MAX = 60, 100
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BINS = 10
_EXTREMES = 3
_NAMES_MAX = 8
_CLAIMS_MAX = 12
_AFTER_FILTERS = re.compile(
    r"(, pod group preemption: .*| ((no new claims to deallocate|still not schedulable)\b,? ?)?(preemption: .*)?)$"
)
_CPU, _MEMORY = "cyan", "magenta"
_TITLES = (("cpu", 0.0), ("memory", 0.0))
_BIN_WIDTH = 10
_NODE_WIDTH = 30
_NUMBER_WIDTH = 8


def lines(outcome: Outcome, width: int, *, ascii_only: bool = False) -> Iterator[Text]:
    """Yield the lines of the summary. None is longer than the width, or than 60 if the width is less.

    Args:
        ascii_only: the output cannot show block characters.
    """
    width = min(max(width, _WIDTH_MIN), _WIDTH_MAX)
    page = _Page(width, ascii_only=ascii_only)
    yield from page.verdict(outcome)
    yield from page.zones(outcome.nodes)
    yield from page.histogram(outcome.nodes)
    yield from page.extremes(outcome.nodes)
    if outcome.devices is not None:
        yield from page.devices(outcome.devices)
    yield from page.unschedulable(outcome)


def failure(outcome: Outcome, timeout_s: float) -> str:
    """Say what went wrong, with the names of the pods.

    A pod that cannot fit is bound only if the configuration disables the plugin that would reject it.
    """
    parts = []
    if outcome.unbound:
        parts.append(
            f"{len(outcome.unbound)} of {outcome.pods} pods that can fit were not bound within {timeout_s:g} s"
        )
        parts[-1] += f": {_some(outcome.unbound)}"
    if outcome.misreported:
        parts.append(f"these pods cannot fit, but were not reported unschedulable: {_some(outcome.misreported)}")
    if outcome.devices is not None and outcome.devices.twice:
        parts.append(f"these devices were allocated twice: {_some(outcome.devices.twice)}")
    return "\n".join(parts)


def bar(share: float, width: int, *, ascii_only: bool = False) -> str:
    """Draw a bar for a fraction from 0 to 1, exact to an eighth of a character and padded to the width."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    # Something must be seen of a share above zero.
    if share > 0:
        eighths = max(eighths, 1)
    full, remainder = divmod(eighths, 8)
    if ascii_only:
        return ("#" * (full + (remainder >= 4))).ljust(width)
    return (_EIGHTHS[8] * full + (_EIGHTHS[remainder] if remainder else "")).ljust(width)


def _some(names: Sequence[str]) -> str:
    name_list = ", ".join(names[:_NAMES_MAX])
    return name_list if len(names) <= _NAMES_MAX else f"{name_list} and {len(names) - _NAMES_MAX} more"


class _Page:
    """The sections, laid out for one width."""

    def __init__(self, width: int, *, ascii_only: bool) -> None:
        self._width = width
        self._ascii_only = ascii_only

    def verdict(self, outcome: Outcome) -> Iterator[Text]:
        good = not outcome.unbound
        quantity = "All" if good else f"{outcome.bound_count} of"
        yield Text.assemble(
            (f"{quantity} {outcome.pods} pods that fit are bound", "bold green" if good else "bold red"),
            f" in {outcome.duration_s:.2f} s: {outcome.pods_per_s:,.0f} pods/s",
        )

    def zones(self, nodes: Sequence[NodeUse]) -> Iterator[Text]:
        rows = pods_per_zone(nodes)
        pods_max = max(pods for _, _, pods in rows)
        yield from self._heading("Pods per zone")
        for zone, size, pods in rows:
            label = f"  {zone:<10} {size:>5} nodes {pods:>6} pods  "
            # What the label leaves, so that no line is wider than asked for.
            room = self._width - len(label)
            yield _trim(Text.assemble(label, (self._bar(pods / pods_max if pods_max else 0.0, room), "green")))

    def histogram(self, nodes: Sequence[NodeUse]) -> Iterator[Text]:
        cpu, memory = (_histogram(shares) for shares in zip(*((n.cpu, n.memory) for n in nodes), strict=True))
        # Empty bins at both ends would only make the page longer.
        used_bins = [index for index in range(_BINS) if cpu[index] or memory[index]]
        count_max = max(*cpu, *memory)
        yield from self._heading("Nodes by how much of them the pods request")
        yield self._two_bars(" " * _BIN_WIDTH, _TITLES)
        for index in range(used_bins[0], used_bins[-1] + 1):
            cells = [(str(counts[index] or ""), counts[index] / count_max) for counts in (cpu, memory)]
            bounds = f"{index * 10}-{index * 10 + 10}%"
            yield self._two_bars(f"{bounds:>{_BIN_WIDTH}}", cells)

    def extremes(self, nodes: Sequence[NodeUse]) -> Iterator[Text]:
        by_cpu = sorted(nodes, key=lambda node: (-node.cpu, -node.memory, node.name))
        # If there are few nodes, do not list one twice.
        emptiest = by_cpu[_EXTREMES:][-_EXTREMES:]
        yield from self._heading("Fullest and emptiest nodes")
        yield self._two_bars(" " * _NODE_WIDTH, _TITLES)
        for node in (*by_cpu[:_EXTREMES], *emptiest):
            label = f"  {node.name:<11} {node.instance_type:<7}{node.pods:>4} pods"
            yield self._two_bars(label, [(f"{share:.0%}", share) for share in (node.cpu, node.memory)])

    def devices(self, use: DeviceUse) -> Iterator[Text]:
        total = sum(use.total.values())
        yield from self._heading(f"{use.in_use} of {total} devices are in use ({', '.join(sorted(use.total))})")
        sample = _one_of_each(use.claims)
        rows = [("pod", "node", "devices", "asked for"), *(_cells(claim) for claim in sample)]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        for row in rows:
            padded = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False))
            line = Text("  " + "  ".join((*padded, row[-1])), "bold" if row is rows[0] else "")
            line.truncate(self._width)
            yield _trim(line)
        if remaining_count := len(use.claims) - len(sample):
            yield Text(f"  and {count_of(remaining_count, 'more claim')}")

    def unschedulable(self, outcome: Outcome) -> Iterator[Text]:
        if not outcome.unschedulable:
            return
        count = len(outcome.unschedulable)
        yield from self._heading(f"{count} pod{'s fit' if count > 1 else ' fits'} on no node")
        for name, message in outcome.unschedulable[:_NAMES_MAX]:
            label = f"  {name:<16} "
            # Wrapped by hand, since the label must not repeat on later lines.
            for index, part in enumerate(textwrap.wrap(_reason(message), self._width - len(label)) or [""]):
                yield Text.assemble((label if index == 0 else " " * len(label), "bold yellow"), part)
        if count > _NAMES_MAX:
            yield Text(f"  and {count - _NAMES_MAX} more")

    def _heading(self, text: str) -> Iterator[Text]:
        yield Text("")
        yield Text(text, "bold")

    def _two_bars(self, label: str, cells: Sequence[tuple[str, float]]) -> Text:
        """Lay out a row with the label, and for cpu and memory a number with a bar, or the title of the column."""
        room = (self._width - len(label)) // 2 - _NUMBER_WIDTH
        row = Text(label)
        for (text, share), colour in zip(cells, (_CPU, _MEMORY), strict=True):
            if text.isalpha():
                row.append(f"{'':<8}{text:<{room + _NUMBER_WIDTH - 8}}", colour)
            else:
                row.append(f"{text:>7} ", "bold").append(self._bar(share, room), colour)
        return _trim(row)

    def _bar(self, share: float, width: int) -> str:
        return bar(share, width, ascii_only=self._ascii_only)


def _reason(message: str) -> str:
    """Cut the message's part on preemption, which cannot help: these pods do not fit even on an empty node."""
    return _AFTER_FILTERS.sub("", message)


def _one_of_each(claims: Sequence[ClaimUse]) -> list[ClaimUse]:
    """Choose a few claims of each kind, so that the table stays short."""
    # By kind: a demo has hundreds of claims, which ask for only a few kinds of devices.
    kinds: dict[str, list[ClaimUse]] = {}
    for claim in claims:
        kinds.setdefault(claim.asked_for, []).append(claim)
    claims_per_kind = max(_CLAIMS_MAX // max(len(kinds), 1), 1)
    return [claim for claims_of_kind in kinds.values() for claim in claims_of_kind[:claims_per_kind]]


def _cells(claim: ClaimUse) -> tuple[str, str, str, str]:
    names = claim.pods[0] if claim.pods else ""
    suffix = f" +{len(claim.pods) - 1}" if len(claim.pods) > 1 else ""
    return names + suffix, claim.node, " ".join(claim.devices), claim.asked_for


def _trim(row: Text) -> Text:
    row.rstrip()
    return row


def _histogram(shares: Sequence[float]) -> list[int]:
    counts = [0] * _BINS
    for share in shares:
        # A share of 100 % belongs to the last bin.
        counts[min(int(share * _BINS), _BINS - 1)] += 1
    return counts

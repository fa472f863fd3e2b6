"""What kube-scheduler's log tells of its scores at verbosity 10."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_FIELD = re.compile(r'(\w+)=(?:"([^"]*)"|(\S+))')
_OF_PLUGIN, _FINAL = '"Plugin scored node for pod"', '"Calculated node\'s final score for pod"'


@dataclass(slots=True)
class Scores:
    """The scores of one pod: weighted ones by plugin and node, and their sums by node; none with one feasible node."""

    by_plugin: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    total: dict[str, int] = field(default_factory=dict)

    @property
    def top(self) -> set[str]:
        """The nodes of the highest score."""
        highest = max(self.total.values(), default=0)
        return {node for node, score in self.total.items() if score == highest}

    def of(self, node: str) -> dict[str, int]:
        """The node's score by plugin."""
        return {plugin: scores[node] for plugin, scores in self.by_plugin.items() if node in scores}


class ScoreLog:
    """A log file that grows, read from where the last reading ended."""

    def __init__(self, path: Path) -> None:
        self._file = path.open(encoding="utf-8", errors="replace")
        self._unfinished = ""

    def close(self) -> None:
        self._file.close()

    def scores(self, pod: str) -> Scores:
        """Return the new lines of the log about the pod, `<namespace>/<name>`."""
        scores = Scores()
        for line in self._lines():
            is_final = _FINAL in line
            if not is_final and _OF_PLUGIN not in line:
                continue
            entry = {match[1]: match[2] if match[2] is not None else match[3] for match in _FIELD.finditer(line)}
            if entry["pod"] != pod:
                continue
            if is_final:
                scores.total[entry["node"]] = int(entry["score"])
            else:
                scores.by_plugin[entry["plugin"]][entry["node"]] = int(entry["score"])
        return scores

    def _lines(self) -> Iterator[str]:
        *lines, self._unfinished = (self._unfinished + self._file.read()).split("\n")
        return iter(lines)

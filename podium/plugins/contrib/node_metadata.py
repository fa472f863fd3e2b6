"""NodeMetadata: prefers nodes by a number or a time in one of their labels or annotations.

Runs at: Score.
Verdict: none.
Requeue: none.
Cost: one gather, and one parse for each node that has changed.
Source: sigs.k8s.io/scheduler-plugins pkg/nodemetadata/node_metadata.go (for Kubernetes 1.35).
Differs: all nodes are aged at the same instant. Ranges above 9.3e16 are scaled exactly; upstream's overflow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework import contract as fwk
from podium.lib.go_time import parse_go_time
from podium.objects.core import Node, Pod, PodSpec
from podium.objects.quantity import INT64_MAX, INT64_MIN
from podium.plugins.contrib.calculations import min_max
from podium.plugins.contrib.plugin_args import PluginArgs, invalid

_LABEL: Final = "Label"
_ANNOTATION: Final = "Annotation"
_STRATEGIES: Final = {"Number": ("Highest", "Lowest"), "Timestamp": ("Newest", "Oldest")}
_RFC_3339: Final = "2006-01-02T15:04:05Z07:00"
_INVALID: Final = INT64_MIN
_AGE_S_MAX: Final = INT64_MAX // 10**9
_DECIMAL: Final = re.compile(
    r"[+-]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+(?:_\d+)*)?", re.ASCII
)
_HEXADECIMAL: Final = re.compile(
    r"[+-]?0[xX](?:_?[\da-fA-F]+(?:_[\da-fA-F]+)*(?:\.(?:[\da-fA-F]+(?:_[\da-fA-F]+)*)?)?|\.[\da-fA-F]+(?:_[\da-fA-F]+)*)"
    r"[pP][+-]?\d+(?:_\d+)*",
    re.ASCII,
)


class NodeMetadataArgs(PluginArgs, frozen=True, kw_only=True):
    """The plugin's args; names and defaults are upstream's.

    Attributes:
        metadata_key: the key of the label or annotation.
        metadata_source: `Label` or `Annotation`.
        metadata_type: `Number` or `Timestamp`.
        scoring_strategy: `Highest` or `Lowest` for numbers, `Newest` or `Oldest` for timestamps.
        timestamp_format: a layout of Go, RFC 3339 by default.
    """

    metadata_key: str = ""
    metadata_source: str = ""
    metadata_type: str = ""
    scoring_strategy: str = ""
    timestamp_format: str = ""

    def problems(self) -> Iterable[str]:
        """Return fields that are missing, unknown values, and a strategy for the other type."""
        lines = []
        if not self.metadata_key:
            lines.append(invalid("metadataKey", "", "metadataKey cannot be empty"))
        if self.metadata_source not in (_LABEL, _ANNOTATION):
            text = 'metadataSource must be either "Label" or "Annotation"'
            lines.append(invalid("metadataSource", self.metadata_source, text))
        if self.metadata_type not in _STRATEGIES:
            text = 'metadataType must be either "Number" or "Timestamp"'
            lines.append(invalid("metadataType", self.metadata_type, text))
        home = next((kind for kind, strategies in _STRATEGIES.items() if self.scoring_strategy in strategies), None)
        if home is None:
            text = 'scoringStrategy must be one of "Highest", "Lowest", "Newest", or "Oldest"'
            lines.append(invalid("scoringStrategy", self.scoring_strategy, text))
        elif self.metadata_type in _STRATEGIES and self.metadata_type != home:
            text = 'scoringStrategy "{}" and "{}" are only valid for metadataType "{}"'.format(*_STRATEGIES[home], home)
            lines.append(invalid("scoringStrategy", self.scoring_strategy, text))
        if lines:
            yield "invalid NodeMetadataArgs: " + (lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]")


class NodeMetadata(fwk.TableScorePlugin, fwk.ScorePlugin):
    """Scores by the number, or by the age of the timestamp."""

    Args = NodeMetadataArgs

    def __init__(self, args: NodeMetadataArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self._key = args.metadata_key
        self._is_label = args.metadata_source == _LABEL
        self._has_times = args.metadata_type == "Timestamp"
        self._layout = args.timestamp_format or _RFC_3339
        self._sign = -1 if args.scoring_strategy in ("Lowest", "Newest") else 1
        self._values = _NodeValues(self._value, np.float64 if self._has_times else np.int64)

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Score with the number or the age in whole seconds, or their negative."""
        values = self._values.of(snapshot).take(rows)
        if self._has_times:
            ages_s = np.clip(self.handle.clock.now() - values, -_AGE_S_MAX, _AGE_S_MAX)
            is_valid = ~np.isnan(ages_s)
            numbers = np.trunc(np.where(is_valid, ages_s, 0)).astype(np.int64)
        else:
            is_valid, numbers = values != _INVALID, values
        return np.where(is_valid, self._sign * numbers, _INVALID)

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Score as `score_rows`, for one node."""
        value = self._value(node.node)
        if self._has_times:
            age_s = self.handle.clock.now() - value
            return _INVALID if math.isnan(age_s) else self._sign * int(max(-_AGE_S_MAX, min(age_s, _AGE_S_MAX)))
        return _INVALID if value == _INVALID else self._sign * int(value)

    def normalize_scores(self, state: fwk.CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Scale to 1..MAX_NODE_SCORE; nodes without a value that can be read get 0."""
        is_valid = scores != _INVALID
        normalized = np.zeros_like(scores)
        normalized[is_valid] = min_max(scores[is_valid], lowest=1)
        return normalized

    def score_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return NODE for numbers, CLUSTER for timestamps, since ages depend on the clock."""
        return fwk.Scope.CLUSTER if self._has_times else fwk.Scope.NODE

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register no event: the plugin rejects no node."""
        return ()

    def _value(self, node: Node) -> float:
        """Return the number, or the time in seconds since the epoch; `_INVALID` or NaN if it cannot be read."""
        metadata = node.metadata
        text = (metadata.labels if self._is_label else metadata.annotations).get(self._key)
        if not self._has_times:
            return _INVALID if text is None else _whole_number(text)
        try:
            return math.nan if text is None else parse_go_time(self._layout, text)
        except ValueError:
            return math.nan


class _NodeValues:
    """A value of each node by row, which is computed again only where nodes have changed.

    Cost: 1 us for each node that has changed, or of another snapshot than before.
    """

    def __init__(self, value_of: Callable[[Node], float], dtype: type[np.int64 | np.float64]) -> None:
        self._value_of = value_of
        self._values = np.zeros(0, dtype)
        self._snapshot: Snapshot | None = None
        self._seen = 0

    def of(self, snapshot: Snapshot) -> NDArray[Any]:
        """Return the values.

        Shape: one entry for each row of the snapshot; rows without a node hold anything.
        """
        missing = max(0, len(snapshot.nodes) - len(self._values))
        self._values = np.append(self._values, np.zeros(missing, self._values.dtype))
        changes = snapshot.node_changes.since(self._seen) if snapshot is self._snapshot else None
        self._snapshot, self._seen = snapshot, snapshot.node_changes.end
        for row in range(len(snapshot.nodes)) if changes is None else set(changes):
            node = snapshot.nodes[row]
            if node is not None:
                self._values[row] = self._value_of(node)
        return self._values


@lru_cache(maxsize=65536)
def _whole_number(text: str) -> int:
    """Return the number without its fraction, as Go parses it; `_INVALID` if it is none, or too large for an int64."""
    try:
        if _DECIMAL.fullmatch(text):
            number = int(float(text.replace("_", "")))
        elif _HEXADECIMAL.fullmatch(text):
            number = int(float.fromhex(text.replace("_", "")))
        else:
            return _INVALID
    except OverflowError:
        return _INVALID
    return number if INT64_MIN <= number <= INT64_MAX else _INVALID

"""The result of a replay: its counts and digests, and the first point at which it differs from the recording."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from podium.recording.entries import Decision

Scores: TypeAlias = Mapping[str, Mapping[str, int]]
"""Weighted scores by node and plugin."""


class Diverged(BaseException):
    """The replay cannot follow the recording. Not an `Exception`: handlers around plugin calls must not catch it."""


@dataclass(slots=True)
class Divergence:
    """The first point at which a replay differs from the recording.

    Attributes:
        entry: its index in the recording.
        event: the last watch event before it.
        detail: what differs.
        recorded, replayed: the two decisions; None if something other than a decision differs.
        recorded_scores, replayed_scores: the scores behind them, where available.
    """

    entry: int
    event: str
    detail: str
    recorded: Decision | None = None
    replayed: Decision | None = None
    recorded_scores: Scores = field(default_factory=dict)
    replayed_scores: Scores = field(default_factory=dict)


@dataclass
class ReplayOutcome:
    """The progress and the result of a replay.

    Attributes:
        attempts: the number of replayed decisions.
        digest, recorded_digest: over the replayed and the recorded decisions. One object until they differ.
        started_s, ended_s: the first and the last reading of the recorded clock.
    """

    attempts: int = 0
    digest: Any = field(default_factory=hashlib.sha256)
    divergence: Divergence | None = None
    started_s: float | None = None
    ended_s: float = 0.0

    def __post_init__(self) -> None:
        self.recorded_digest = self.digest

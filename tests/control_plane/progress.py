"""Phase lines with elapsed time, so that nobody waits minutes in front of a silent terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO


@dataclass(slots=True)
class Progress:
    """Prints `control plane [ 12.3 s] text` lines; `tick` prints at most one line every `interval_s`."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    interval_s: float = 5.0
    clock: Callable[[], float] = time.monotonic
    _started_s: float = field(init=False)
    _last_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._started_s = self._last_s = self.clock()

    @property
    def elapsed_s(self) -> float:
        return self.clock() - self._started_s

    def phase(self, text: str) -> None:
        """Always printed: something began or ended."""
        self._last_s = self.clock()
        print(f"control plane [{self.elapsed_s:6.1f} s] {text}", file=self.stream, flush=True)

    def tick(self, text: str) -> None:
        """Printed only when the last line is old enough."""
        if self.clock() - self._last_s >= self.interval_s:
            self.phase(text)

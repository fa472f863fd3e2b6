"""What a long run holds, sample by sample, and whether it grows."""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

RSS_GROWTH_MAX: Final = 1.05
WARM_UP_PODS: Final = 20_000
"""After so many pods the bounded caches are full: a thousand classes of pods, thousands of changes and of Events."""
_CONNECTIONS: Final = 4
"""By so many more descriptors nothing has grown: idle connections come and go."""
_PAGE_BYTES: Final = resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Sample:
    """A process at rest after so many pods."""

    seconds: float
    pods: int
    rss_mib: float
    tasks: int
    threads: int
    descriptors: int

    def __str__(self) -> str:
        return (
            f"{self.seconds:9.0f} {self.pods:10,} {self.rss_mib:9.1f} {self.tasks:6} {self.threads:8} "
            f"{self.descriptors:12}"
        )


HEADING: Final = "  seconds       pods   RSS MiB  tasks  threads  descriptors"


def sample(process: int, *, seconds: float, pods: int, tasks: int) -> Sample:
    """Look at a process through /proc."""
    place = Path(f"/proc/{process}")
    pages = int((place / "statm").read_text().split()[1])
    threads, descriptors = len(os.listdir(place / "task")), len(os.listdir(place / "fd"))
    return Sample(seconds, pods, pages * _PAGE_BYTES / 2**20, tasks, threads, descriptors)


def growth(samples: Sequence[Sample]) -> list[str]:
    """What has grown, each in a sentence, from where a fifth of the pods had gone through to the end."""
    last = samples[-1]
    first = next(candidate for candidate in samples if candidate.pods >= last.pods / 5)
    if first.pods < WARM_UP_PODS:
        first = next((candidate for candidate in samples if candidate.pods >= WARM_UP_PODS), last)
    if first is last:
        return [f"{last.pods:,} pods are too few to tell: caches fill until there have been {WARM_UP_PODS:,}"]
    findings = []
    if last.rss_mib > first.rss_mib * RSS_GROWTH_MAX:
        findings.append(f"RSS has grown by {last.rss_mib / first.rss_mib - 1:.1%}, from {first.rss_mib:.1f} MiB")
    for name, slack in (("tasks", 0), ("threads", 0), ("descriptors", _CONNECTIONS)):
        was, latest = getattr(first, name), getattr(last, name)
        if latest > was + slack:
            findings.append(f"{name} have grown from {was} to {latest}")
    return findings

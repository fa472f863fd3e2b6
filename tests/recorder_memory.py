"""`python -m tests.recorder_memory`: a flight recorder that hears of a million attempts stays within its memory."""

from __future__ import annotations

import argparse
import gc
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from podium.engine.flight_recorder import FlightRecorder
from podium.framework.cycle.scored import Scored
from podium.framework.profile.score_history import ScoreHistory
from tests.unit.engine.flight_recorder.recording import (
    FULL,
    TAINTED,
    Cluster,
    numbered_pod,
    place,
    reject,
    rejection,
    scores,
)

_LOOKED_AT_EVERY = 1_000
_NODES_FOUND = 100
_SIGNATURES = 8


@dataclass(frozen=True, slots=True)
class Memory:
    """The maximum of the bytes that the recorder counted, and of those that it allocated."""

    counted_bytes_max: int
    traced_bytes_max: int
    attempts: int


def measure(
    attempts: int, nodes: int, memory_bytes: int, seed: int, tell: Callable[[int], None] = lambda _: None
) -> Memory:
    """Let a recorder hear of pods that are placed and pods that fit nowhere, in a cluster whose nodes come and go.

    Args:
        tell: hears now and then how many attempts there were.
    """
    random, names = Random(seed), [f"node-{number}" for number in range(nodes)]
    cluster, all_rows = Cluster(*names), np.arange(nodes)
    counted_bytes = traced = 0
    gc.collect()
    tracemalloc.start()
    recorder = FlightRecorder(memory_bytes)
    table = np.zeros((nodes, 2), np.int8)
    histories = [ScoreHistory(table) for _ in range(_SIGNATURES)]
    try:
        for number in range(attempts):
            if random.random() < 0.001:
                names[random.randrange(1, nodes)] = f"new-{number}"
                cluster.change(*names)
            pod, first = numbered_pod(number), random.randrange(nodes)
            if random.random() < 0.2:
                reject(recorder, cluster, pod, rejection(all_rows[:first], FULL), rejection(all_rows[first:], TAINTED))
            else:
                rows = all_rows[first : first + _NODES_FOUND]
                decision_scores = scores(rows, Fit=rows, Spread=rows)
                if random.random() < 0.5:
                    signature = random.randrange(_SIGNATURES)
                    if not histories[signature].note(first, [0, 0]):
                        histories[signature] = ScoreHistory(table)
                    history = histories[signature]
                    decision_scores = Scored(rows, {}, history, history.version, {"Fit": 1, "Spread": 1})
                place(recorder, cluster, pod, 0, scores=decision_scores)
                recorder.on_bound(pod, 0.1)
            counted_bytes = max(counted_bytes, recorder.nbytes)
            if number % _LOOKED_AT_EVERY == _LOOKED_AT_EVERY - 1:
                traced = max(traced, tracemalloc.get_traced_memory()[0])
                tell(number + 1)
        return Memory(counted_bytes, traced, recorder.attempts)
    finally:
        tracemalloc.stop()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Returns 1 if the recorder has taken more than it may."""
    arguments = argparse.ArgumentParser("python -m tests.recorder_memory", description=__doc__)
    arguments.add_argument("--attempts", type=int, default=1_000_000)
    arguments.add_argument("--nodes", type=int, default=5_000)
    arguments.add_argument("--mebibytes", type=int, default=32)
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()
    limit = options.mebibytes << 20

    def tell(number: int) -> None:
        if number % 50_000 == 0:
            _say(f"{number:,} attempts")

    memory = measure(options.attempts, options.nodes, limit, options.seed, tell)
    counted_mib, traced = memory.counted_bytes_max / 2**20, memory.traced_bytes_max / 2**20
    _say(f"at most {counted_mib:.1f} MiB counted and {traced:.1f} MiB traced")
    return int(max(memory.counted_bytes_max, memory.traced_bytes_max) > limit)


if __name__ == "__main__":
    raise SystemExit(main())

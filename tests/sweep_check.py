"""Compares a sweep of 200 combinations on a local Dask cluster with one in a pool, and kills a worker meanwhile.

    python -m tests.sweep_check [--rows 200]

Needs the extra `sweep`. Exits with 1 if the tables differ.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import click
from distributed import Client, KilledWorker, LocalCluster

from podium.config import effective
from podium.lib.lifeline import end_with_pool_owner
from podium.recording.sweep import Combination, Result, grid_documents, sweep, table
from tests.simulation.calm import record_calm
from tests.simulation.observed import configuration

REFERENCES = ("tests.simulation.observed:Ledger", "tests.simulation.observed:Hesitation")
AFTER = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as directory:
        day = Path(directory) / "day"
        record_calm(day, pods=20)
        grid = {"NodeResourcesFit": range(1, 21), "ImageLocality": range(1, rows // 20 + 1)}
        documents = list(grid_documents(effective(configuration()), grid))[:rows]
        combinations = [Combination(str(day), name, text, REFERENCES) for name, text in documents]
        pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=end_with_pool_owner)
        in_process = list(sweep(combinations, lambda: pool, {}))
        on_dask = list(_on_dask(combinations))
    is_same = table(in_process) == table(on_dask)
    missing = sum(result.outcomes is None for result in on_dask)
    click.echo(f"{len(on_dask)} combinations, {missing} without outcomes; one process and Dask agree: {is_same}")
    return 0 if is_same and not missing else 1


def _on_dask(combinations: list[Combination]) -> Iterator[Result]:
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as cluster:

        @contextmanager
        def connect() -> Iterator[Executor]:
            with Client(cluster) as client, client.get_executor(pure=False) as executor:
                yield executor

        victim = next(iter(cluster.workers.values())).pid
        for number, result in enumerate(sweep(combinations, connect, {}, loss_errors=(KilledWorker,)), 1):
            if number == AFTER:
                threading.Thread(target=os.kill, args=(victim, signal.SIGKILL)).start()
                click.echo(f"killed the worker {victim} after {number} results")
            yield result


if __name__ == "__main__":
    sys.exit(main())

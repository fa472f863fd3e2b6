"""`podium sweep`: replays recorded days under many configurations and compares the outcomes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from podium.cli.exit_codes import EXIT_FAILED
from podium.cli.interrupts import exit_at_sigint
from podium.cli.options.configuration import plugin_option, usable
from podium.cli.options.html import html_option, write_page
from podium.cli.options.releases import as_the_newest
from podium.cli.output import TEXT, as_json, output_option, print_value, say
from podium.lib import log
from podium.lib.lifeline import end_with_pool_owner

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from podium.recording.sweep import Combination, MakeExecutor, Result

_RESULT_BEGINS = b'{"key":'
_COLUMNS = {
    "configuration": "CONFIGURATION",
    "placed": "PLACED",
    "pending": "PENDING",
    "bind_s_p50": "BIND P50 S",
    "bind_s_p99": "BIND P99 S",
    "cpu": "CPU",
    "memory": "MEMORY",
    "fragmentation": "FRAGMENTED",
    "spread": "SPREAD",
    "preemptions": "PREEMPTED",
}


def _weights(
    context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Parse each plugin and its weights, of the form `NodeResourcesFit=1,2,5`."""
    del context, option
    grid = []
    for text in texts:
        plugin, _, weight_list = text.partition("=")
        weights = tuple(int(weight) for weight in weight_list.split(",") if weight.isdecimal() and int(weight) > 0)
        # As many weights as parts, so that none was dropped for being no number.
        if not plugin or len(weights) != len(weight_list.split(",")):
            raise click.BadParameter(f"{text!r} is not of the form PLUGIN=WEIGHT,WEIGHT…, with weights from 1")
        grid.append((plugin, tuple(dict.fromkeys(weights))))
    return tuple(grid)


@click.command()
@click.argument("directories", type=click.Path(path_type=Path), metavar="DIR...", nargs=-1, required=True)
@click.option(
    "--config", "configs", type=click.Path(path_type=Path), multiple=True, help="A configuration to try. Repeatable."
)
@click.option(
    "--grid",
    "grid",
    callback=_weights,
    multiple=True,
    metavar="PLUGIN=WEIGHT,...",
    help="Score weights to try in every configuration. With several, all combinations are tried. Repeatable.",
)
@plugin_option
@as_the_newest
@click.option("--workers", type=click.IntRange(min=1), help="The number of processes. By default one for each CPU.")
@click.option("--dask", metavar="ADDRESS", help="Use the Dask cluster with this scheduler; needs podium[sweep].")
@click.option(
    "--resume",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Keep results in this file, a JSON line each, and skip those that it already has.",
)
@html_option("the table, and any two numbers of each configuration as a point")
@output_option()
def command(
    directories: tuple[Path, ...],
    configs: tuple[Path, ...],
    grid: tuple[tuple[str, tuple[int, ...]], ...],
    plugins: tuple[str, ...],
    workers: int | None,
    dask: str | None,
    resume: Path | None,
    html: Path | None,
    output: str,
) -> None:
    """Replay recordings to their ends with many configurations, and compare the results.

    Without --config, the recorded configuration is varied. A star marks the Pareto front: what no other configuration
    beats.
    """
    click.get_current_context().with_resource(exit_at_sigint())
    click.get_current_context().with_resource(log.hidden())
    from podium.recording.segments import RecordingError
    from podium.recording.sweep import SweepError, sweep, table

    if not configs and not grid:
        raise click.UsageError("Give --config or --grid: there is nothing to compare.")
    try:
        combinations = list(_combinations(directories, configs, dict(grid), plugins))
        results_by_key = {} if resume is None else _read_results(resume)
        pool = _local(workers) if dask is None else _on_dask(dask)
        results = []
        for result in sweep(combinations, pool.executor, results_by_key, loss_errors=pool.death_errors, run=pool.run):
            results.append(result)
            # Appended at once, since a sweep may run for hours and end at any time.
            if resume is not None and result.key not in results_by_key:
                _keep(resume, result)
            say(f"{len(results)} of {len(combinations)} combinations", err=True, head="\r", nl=False)
        say(err=True)
    except (RecordingError, SweepError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or dask}: {error.strerror or error}") from None
    # The same recording lacks the same in every combination, so it is said once.
    for recording, left_out in dict.fromkeys((result.recording, result.left_out) for result in results):
        if left_out:
            say(f"{recording}: {left_out}", err=True)
    rows = table(results)
    if html is not None:
        from podium.cli.pages.sweep import page_of

        write_page(html, page_of(rows, _COLUMNS))
    if output == TEXT:
        _print(rows)
    else:
        for row in rows:
            print_value(row, output)
    if any(row["error"] for row in rows):
        raise SystemExit(EXIT_FAILED)


def _combinations(
    directories: Sequence[Path], configs: Sequence[Path], grid: Mapping[str, Sequence[int]], plugins: tuple[str, ...]
) -> Iterator[Combination]:
    from podium.cli.replay import recorded_configuration
    from podium.config import effective
    from podium.recording.replay import checked_segments, recorded_gates, recorded_release
    from podium.recording.sweep import Combination, fingerprint_of, grid_documents

    for directory in directories:
        description = checked_segments(directory).description
        gates, release = recorded_gates(description), recorded_release(description)
        if configs:
            bases = [(str(path), usable(path, plugins, gates, to_run=False, release=release)) for path in configs]
        else:
            bases = [("", recorded_configuration(description, plugins))]
        for name, good in bases:
            for weights, document in grid_documents(effective(good.config), grid):
                label = " ".join(filter(None, (name, weights)))
                # Absolute, since workers may have another directory.
                place = str(directory.absolute())
                yield Combination(
                    place, label, document, plugins, gates, fingerprint_of(directory), good.config.release.minor
                )


def _read_results(file: Path) -> dict[str, Result]:
    """Read the results in the file. Remove a last line that was cut off; complete one that lacks only its end.

    Raises:
        SweepError: a line is no result; nothing is changed.
    """
    from podium.recording.sweep import SweepError

    *lines, last = (file.read_bytes() if file.exists() else b"").split(b"\n")
    results = [_result(line, file, number) for number, line in enumerate(lines, 1)]
    if last:
        try:
            results.append(_result(last, file, len(lines) + 1))
        except SweepError:
            # The end of a line that was being written when the process ended; anything else is another file.
            if not last.startswith(_RESULT_BEGINS[: len(last)]):
                raise
            os.truncate(file, file.stat().st_size - len(last))
        else:
            _append(file, b"\n")
    # What failed is tried again: the reason may have been the machine.
    return {result.key: result for result in results if not result.error}


def _result(line: bytes, file: Path, number: int) -> Result:
    import json

    from podium.recording.sweep import SweepError, result_of

    try:
        return result_of(json.loads(line))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise SweepError(f"{file}: line {number} is not a result of podium sweep") from None


def _keep(file: Path, result: Result) -> None:
    _append(file, as_json(result.as_value()) + b"\n")


def _append(file: Path, content: bytes) -> None:
    with file.open("ab") as output:
        output.write(content)


class _Workers(NamedTuple):
    """The workers that compute results.

    Attributes:
        death_errors: the exceptions that the death of a worker raises.
        run: computes the result of a combination in a worker.
    """

    executor: MakeExecutor
    death_errors: tuple[type[Exception], ...]
    run: Callable[[Combination], Result]


def _local(workers: int | None) -> _Workers:
    """Use a pool of processes on this machine, which end with this one."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from podium.recording.sweep import run_combination

    # A new process looks for modules in the current directory first, which may be that of a recording.
    os.environ["PYTHONSAFEPATH"] = "1"
    count = workers or os.cpu_count() or 1

    def pool() -> Executor:
        # A forked process would inherit threads in whatever state they are.
        return ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=end_with_pool_owner)

    return _Workers(pool, (BrokenExecutor,), run_combination)


def _on_dask(address: str) -> _Workers:
    """Use the workers of a Dask cluster, which stop when this process ends."""
    from podium.recording.sweep import run_on_dask

    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise click.ClickException("--dask needs the extra: pip install 'podium[sweep]'") from None

    @contextmanager
    def connect() -> Iterator[Executor]:
        with Client(address) as client, client.get_executor(pure=False) as executor:
            yield executor

    return _Workers(connect, (KilledWorker,), run_on_dask)


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    for recording in dict.fromkeys(row["recording"] for row in rows):
        say(recording)
        good = [row for row in rows if row["recording"] == recording and "placed" in row]
        lines = [["", *_COLUMNS.values()]]
        lines += [["*" if row["on_front"] else "", *(_cell(row[name]) for name in _COLUMNS)] for row in good]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        for row in rows:
            if row["recording"] == recording and row["error"]:
                say(f"{row['configuration']}: {row['error']}")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)

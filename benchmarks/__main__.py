"""`python -m benchmarks [what] [options]`: measures, prints a table and writes JSON."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks import api_server, in_process, machine, profiles, report
from benchmarks.measure import Run, StallError
from benchmarks.schedulers import STARTERS
from benchmarks.workloads import WORKLOADS
from tests.control_plane import catalogue
from tests.control_plane.builder import BuildError, obtain
from tests.control_plane.progress import Progress

RESULTS: Final = Path(__file__).parent / "results"
BOTH: Final = "both"

_console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    options = parser().parse_args(arguments)
    # So that a run which is told to end takes its servers with it: they are in process groups of their own.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        COMMANDS[options.what](options)
    except (BuildError, StallError) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line. What to do comes first, since sizes are many words."""
    arguments = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    arguments.add_argument(
        "what",
        nargs="?",
        default="api-server",
        choices=COMMANDS,
        help="api-server: podium and kube-scheduler on a real API server; in-process: podium's engine alone; "
        "profile: where podium's time goes (default: %(default)s)",
    )
    arguments.add_argument("--workload", nargs="+", default=["plain"], choices=WORKLOADS, help="kinds of pods")
    arguments.add_argument("--nodes", nargs="+", type=positive, help="sizes of the cluster")
    arguments.add_argument("--pods", type=positive, default=3000, help="pods of each run (default: %(default)s)")
    arguments.add_argument("--repeat", type=positive, default=3, help="runs of each kind (default: %(default)s)")
    arguments.add_argument("--scheduler", default=BOTH, choices=[*STARTERS, BOTH])
    arguments.add_argument("--json", type=Path, help="where to write the figures, by default benchmarks/results/")
    return arguments


def positive(text: str) -> int:
    """For argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return number


def measure_on_api_server(options: argparse.Namespace) -> None:
    """Both schedulers in turn, or one of them."""
    schedulers = list(STARTERS) if options.scheduler == BOTH else [options.scheduler]
    nodes = options.nodes or [1_000, 5_000]
    plan = api_server.Plan(options.workload, nodes, options.pods, options.repeat, schedulers)
    binaries = obtain(Progress())
    versions = {tool.name: catalogue.required_version(tool) for tool in catalogue.TOOLS if tool.name != "kubectl"}
    where = machine.describe(versions)
    runs: list[Run] = []
    for run in api_server.measure(plan, binaries, _tell):
        runs.append(run)
        # After each, so that a run that fails late does not take the others with it.
        _write(report.as_json(runs, where), options.json or RESULTS / "api-server.json")
    figures = report.medians(runs)
    _console.print(report.table(figures, machine.cores()))
    _console.print(f"{where['cpu']}, {where['cores']} cores; {plan.pods:,} pods, medians of {plan.repeat}")
    for note in report.notes(figures):
        _console.print(f"! {note}")


def measure_in_process(options: argparse.Namespace) -> None:
    """The engine alone."""
    rates = []
    for name in options.workload:
        for nodes in options.nodes or in_process.NODES:
            runs = [in_process.measure(WORKLOADS[name], nodes, options.pods) for _ in range(options.repeat)]
            rates.append(in_process.median_rate(runs))
    _console.print(in_process.table(rates))
    content = {"machine": machine.describe(), "rates": [_rate(each) for each in rates]}
    _write(content, options.json or RESULTS / "in-process.json")


def _rate(each: in_process.Rate) -> dict[str, Any]:
    return {
        "workload": each.workload,
        "nodes": each.nodes,
        "attempts": each.attempts,
        "attempts_per_s": each.attempts_per_s,
    }


def profile(options: argparse.Namespace) -> None:
    """The engine alone, then the daemon."""
    for name in options.workload:
        for nodes in options.nodes or [5_000]:
            workload, about = WORKLOADS[name], f"{name}, {nodes:,} nodes"
            engine = profiles.engine_profile(workload, nodes, options.pods)
            _console.print(profiles.table(f"The engine alone, {about}", engine, options.pods))
            daemon = profiles.daemon_profile(workload, nodes, options.pods, obtain(Progress()))
            _console.print(profiles.table(f"The daemon, {about}", daemon, options.pods))


COMMANDS: Final[Mapping[str, Callable[[argparse.Namespace], None]]] = {
    "api-server": measure_on_api_server,
    "in-process": measure_in_process,
    "profile": profile,
}


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _write(content: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks [what] [options]`: measures, prints a table and writes JSON."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rich.console import Console

from benchmarks import (
    api_server,
    burst,
    claims,
    estimates,
    fleets,
    forks,
    gang_plans,
    growth,
    in_process,
    instructions,
    light_server,
    machine,
    make_room,
    million,
    neighbours,
    outlook,
    policy_cost,
    profiles,
    provisioning,
    recorder,
    recording,
    report,
    results,
    shards,
    start_up,
    storm,
    subsystems,
    targets,
)
from benchmarks.endpoints import NotReadyError
from benchmarks.etcd import EtcdError
from benchmarks.measure import Run, StallError
from benchmarks.schedulers import PEER, PODIUM, STARTERS, Start, start_peer
from benchmarks.workloads import WORKLOADS, Place
from tests.control_plane import catalogue
from tests.control_plane.builder import BuildError, obtain
from tests.control_plane.locate import Binaries
from tests.control_plane.processes import StartError
from tests.control_plane.progress import Progress
from tests.karmada import binaries as karmada
from tests.karpenter import binaries as karpenter

DOCS: Final = Path(__file__).parent.parent / "docs"
BOTH: Final = "both"
ALL: Final = "all"

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ResultT = TypeVar("ResultT", bound="DataclassInstance")

_console = Console(highlight=False, width=None if sys.stdout.isatty() else 180)


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    options = parser().parse_args(arguments)
    # So that a run which is told to end takes its servers with it: they are in process groups of their own.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        COMMANDS[options.what](options)
    except (BuildError, StartError, NotReadyError, StallError, EtcdError, results.ResultsError) as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted; what was measured before is in the file of results.", file=sys.stderr)
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line. What to do comes first, since sizes are many words."""
    arguments = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    arguments.add_argument(
        "what",
        nargs="?",
        default="api-server",
        choices=COMMANDS,
        help="; ".join(f"{name}: {command.__doc__}" for name, command in COMMANDS.items()) + " Default: %(default)s.",
    )
    arguments.add_argument("--workload", nargs="+", choices=[*WORKLOADS, ALL], metavar="NAME", help=_workload_help())
    arguments.add_argument("--nodes", nargs="+", type=positive, help="sizes of the cluster")
    arguments.add_argument("--pods", type=positive, help="pods of each run, by default as many as suit the workload")
    arguments.add_argument("--repeat", type=positive, default=3, help="runs of each kind (default: %(default)s)")
    arguments.add_argument("--scheduler", default=BOTH, choices=[*STARTERS, BOTH])
    arguments.add_argument(
        "--peer-binary",
        type=Path,
        metavar="PATH",
        help="another scheduler with kube-scheduler's options, to run in its place: such as that of scheduler-plugins",
    )
    arguments.add_argument("--json", type=Path, help="where to write the figures, by default benchmarks/results/")
    return arguments


def _workload_help() -> str:
    return "; ".join(f"{workload.name}: {workload.about}" for workload in WORKLOADS.values()) + f"; or {ALL}"


def positive(text: str) -> int:
    """For argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return number


# ------------------------------------------------------------ on a real API server


def sizes(options: argparse.Namespace) -> list[api_server.Size]:
    """Those that have targets, unless told otherwise."""
    if options.workload is None and options.nodes is None:
        return [
            api_server.Size(target.workload, target.nodes, options.pods)
            for target in targets.TARGETS
            if not target.is_measured_alone
        ]
    return [
        api_server.Size(name, nodes, options.pods)
        for nodes in options.nodes or [5_000]
        for name in workload_names(options, Place.API_SERVER, ["plain"])
    ]


def workload_names(options: argparse.Namespace, place: Place, default: list[str]) -> list[str]:
    """The names of the workloads."""
    requested_names = options.workload or default
    return [
        name
        for name, workload in WORKLOADS.items()
        if (name in requested_names or ALL in requested_names) and place in workload.places
    ]


def schedulers(options: argparse.Namespace) -> list[str]:
    """Those to run."""
    return list(STARTERS) if options.scheduler == BOTH else [options.scheduler]


def starters(options: argparse.Namespace) -> dict[str, Start]:
    """What starts those to run, by name."""
    if options.peer_binary is not None:
        return {PODIUM: STARTERS[PODIUM], PEER: start_peer(options.peer_binary)}
    return {name: STARTERS[name] for name in schedulers(options)}


def measure_on_api_server(options: argparse.Namespace) -> None:
    """Both schedulers in turn on a real API server."""
    plan = api_server.Plan(sizes(options), options.repeat, starters(options))
    # Of their own, so that the figures of all workloads beside kube-scheduler stay.
    is_gangs = options.workload == ["gangs"]
    name = "peer" if options.peer_binary is not None else "gangs" if is_gangs else "api-server"
    figures, where, failures = _runs(options, name, plan)
    _console.print(report.table(figures, where["cores"]))
    _console.print(f"{where['cpu']}, {where['cores']} cores; medians of {plan.repeat}")
    for note in report.notes(figures):
        _console.print(f"! {note}")
    _show(list(targets.on_api_server(figures, where["cores"])))
    _raise_for(failures)


def measure_recording(options: argparse.Namespace) -> None:
    """Podium with no recorder, with its flight recorder and with --record in turn, on a real API server."""
    plan = recording.plan((options.nodes or [recording.NODES])[0], options.pods, options.repeat)
    figures, _, failures = _runs(options, "recording", plan)
    _console.print(recording.table(figures))
    _show(list(recording.checks(figures)))
    _raise_for(failures)


def _runs(
    options: argparse.Namespace, name: str, plan: api_server.Plan
) -> tuple[list[report.Figures], dict[str, Any], list[api_server.Failure]]:
    """The medians of the plan's runs, what they were run on, and those that came to nothing."""
    binaries, where = _control_plane()
    runs: list[Run] = []
    failures: list[api_server.Failure] = []
    for run in api_server.measure(plan, binaries, _tell):
        if isinstance(run, api_server.Failure):
            failures.append(run)
            continue
        runs.append(run)
        # After each, so that a run that fails late does not take the others with it.
        _write(options, name, report.as_json(runs, where))
    return report.medians(runs), where, failures


def _raise_for(failures: Sequence[api_server.Failure]) -> None:
    if failures:
        raise StallError(
            "\n".join(f"{failure.workload}, {failure.nodes:,} nodes: {failure.problem}" for failure in failures)
        )


def _control_plane() -> tuple[Binaries, dict[str, Any]]:
    """Return the binaries, and a description of the machine."""
    versions = {tool.name: catalogue.required_version(tool) for tool in catalogue.TOOLS if tool.name != "kubectl"}
    return obtain(Progress()), machine.describe(versions)


def _write_each(
    options: argparse.Namespace, name: str, key: str, where: Mapping[str, Any], measured: Iterable[ResultT]
) -> list[ResultT]:
    """Return the results, written after each: one that fails late does not take the others with it."""
    measured_results: list[ResultT] = []
    for result in measured:
        measured_results.append(result)
        _write(options, name, {"machine": where, key: [asdict(result) for result in measured_results]})
    return measured_results


def measure_start_up(options: argparse.Namespace) -> None:
    """Both schedulers' sync with large clusters and their rate there, in turn."""
    plans = [
        start_up.Plan(nodes, pods, options.repeat, schedulers(options))
        for nodes, pods in start_up.sizes(options.nodes, options.pods)
    ]
    binaries, where = _control_plane()
    starts = chain.from_iterable(start_up.measure(plan, binaries, _tell) for plan in plans)
    figures = start_up.medians(_write_each(options, "start-up", "starts", where, starts))
    _console.print(start_up.table(figures))
    _show(list(start_up.checks(figures)))


def measure_storm(options: argparse.Namespace) -> None:
    """Both schedulers under a storm of node updates, with thousands of pods that fit nowhere."""
    plan = start_up.Plan(
        (options.nodes or [storm.NODES])[0], options.pods or storm.PODS, options.repeat, schedulers(options)
    )
    binaries, where = _control_plane()
    figures = storm.medians(_write_each(options, "storm", "phases", where, storm.measure(plan, binaries, _tell)))
    _console.print(storm.table(figures))
    for note in storm.notes(figures):
        _console.print(f"! {note}")
    _show(list(storm.checks(figures)))


def measure_neighbours(options: argparse.Namespace) -> None:
    """Podium and kube-scheduler at once on the same nodes: what they do wrong, without and with --avoid-conflicts."""
    plan = neighbours.Plan((options.nodes or [neighbours.NODES])[0], options.repeat)
    binaries, where = _control_plane()
    figures = neighbours.sums(
        _write_each(options, "neighbours", "fillings", where, neighbours.measure(plan, binaries, _tell))
    )
    _console.print(neighbours.table(figures))
    _show(list(neighbours.checks(figures)))


def measure_estimates(options: argparse.Namespace) -> None:
    """Podium's and Karmada's estimator servers in turn, asked by Karmada's client."""
    nodes, pods = (options.nodes or [estimates.NODES])[0], options.pods or estimates.PODS
    binaries, where = _control_plane()
    progress = Progress()
    tools = estimates.Tools(karmada.obtain(karmada.CLIENT, progress), karmada.obtain(karmada.SERVER, progress))
    where["karmada"] = karmada.version()
    measured = estimates.measure(estimates.Plan(nodes, pods, options.repeat), binaries, tools, _tell)
    figures = estimates.medians(_write_each(options, "estimator", "estimates", where, measured))
    _console.print(estimates.table(figures))
    _show(list(estimates.checks(figures)))


def measure_bursts(options: argparse.Namespace) -> None:
    """Pods created at once on a light API server: podium's own limit."""
    workload, binary = burst.workload(options.workload), light_server.obtain(Progress())
    bursts = burst.measure(
        options.nodes or burst.NODES, workload, options.pods or burst.PODS, options.repeat, binary, _tell
    )
    figures = burst.medians(_write_each(options, "burst", "bursts", machine.describe(), bursts))
    _console.print(burst.table(figures))
    for note in burst.notes(figures):
        _console.print(f"! {note}")
    _show(list(burst.checks(figures)))


def measure_shards(options: argparse.Namespace) -> None:
    """One, two and three members of a group of shards on a light API server."""
    nodes, pods = (options.nodes or [shards.NODES])[0], options.pods or shards.PODS
    where = machine.describe()
    bursts = shards.measure(nodes, pods, options.repeat, light_server.obtain(Progress()), _tell)
    figures = shards.medians(_write_each(options, "shards", "bursts", where, bursts))
    _console.print(shards.table(figures))
    for note in shards.notes(figures, where["cores"]):
        _console.print(f"! {note}")
    _show(list(shards.checks(figures)))


# ------------------------------------------------------------ the engine alone


def measure_in_process(options: argparse.Namespace) -> None:
    """Podium's engine alone."""
    rates = []
    for name in workload_names(options, Place.ENGINE, [ALL]):
        for nodes in options.nodes or in_process.NODES:
            attempts = options.pods or in_process.ATTEMPTS
            rates.append(in_process.measure(WORKLOADS[name], nodes, attempts, options.repeat))
            _tell(f"{name}, {nodes:,} nodes: {rates[-1].attempts_per_s:,.0f} attempts/s")
    _console.print(in_process.table(rates))
    _show(in_process.checks(rates))
    _write(options, "in-process", _rates(rates))


def measure_recorder(options: argparse.Namespace) -> None:
    """Measure the cost of the flight recorder per attempt."""
    rates = recorder.measure((options.nodes or [recorder.NODES])[0], options.pods or recorder.ATTEMPTS)
    _console.print(recorder.table(rates))
    _show(recorder.checks(rates))
    _write(options, "recorder", _rates(rates))


def measure_growth(options: argparse.Namespace) -> None:
    """The engine's cost in larger and larger clusters."""
    workloads = [WORKLOADS[name] for name in workload_names(options, Place.ENGINE, [ALL])]
    growths = []
    for rates in growth.measure_all(workloads, options.pods or growth.ATTEMPTS, options.repeat, _tell):
        growths.append(rates)
        _write(options, "growth", _rates([rate for rates in growths for rate in rates]))
    _console.print(growth.table(growths))
    _show(list(growth.checks(growths)))


def measure_claims(options: argparse.Namespace) -> None:
    """The engine's cost for a pod with a claim beside more and more allocated claims."""
    nodes, attempts = (options.nodes or [claims.NODES])[0], options.pods or claims.ATTEMPTS
    rates = claims.measure(nodes, attempts=attempts)
    _console.print(claims.table(rates))
    _show(claims.checks(rates))
    _write(options, "claims", _rates(rates))


def measure_policies(options: argparse.Namespace) -> None:
    """What quotas, NUMA nodes and measured loads add to an attempt of the engine."""
    rates = policy_cost.measure((options.nodes or [policy_cost.NODES])[0], options.pods or policy_cost.ATTEMPTS)
    _console.print(policy_cost.table(rates))
    _show(policy_cost.checks(rates))
    _write(options, "policies", _rates(rates))


def measure_fleets(options: argparse.Namespace) -> None:
    """Many watched members: how long it takes to find those that take a whole workload, and their memory."""
    nodes = (options.nodes or [fleets.NODE_COUNT])[0]
    costs = fleets.measure(nodes=nodes, pods=options.pods or fleets.POD_COUNT)
    _console.print(fleets.table(costs))
    _show(fleets.checks(costs))
    _write(options, "fleets", {"machine": machine.describe(), "costs": asdict(costs)})


def measure_million(options: argparse.Namespace) -> None:
    """As many plain pods as nodes, 100,000 in one shard and a million in 16: time, and memory of a node."""
    sizes_asked = million.sizes(options.nodes, options.pods)
    costs = _write_each(options, "million", "costs", machine.describe(), million.measure(sizes_asked, _tell))
    _console.print(million.table(costs))
    _show(list(million.checks(costs)))


def measure_forks(options: argparse.Namespace) -> None:
    """Worlds: what a fork costs in time and memory, until it is written to and then, and a preemption's many."""
    costs, victims = forks.measure(), forks.measure_victims()
    _console.print(forks.table(costs, victims))
    _show(forks.checks(costs, victims))
    _write(options, "forks", {"machine": machine.describe(), "costs": asdict(costs), "victims": asdict(victims)})


def measure_make_room(options: argparse.Namespace) -> None:
    """Moves that make room in large clusters: time, memory, and whether they were proved to be the fewest."""
    costs = make_room.measure()
    _console.print(make_room.table(costs))
    _show(make_room.checks(costs))
    _write(options, "make-room", {"machine": machine.describe(), "costs": [asdict(cost) for cost in costs]})


def measure_outlook(options: argparse.Namespace) -> None:
    """Outlooks of pods in a large cluster whose forecast is made: the time of half and of 99 of 100 answers."""
    costs = outlook.measure()
    _console.print(outlook.table(costs))
    _show(outlook.checks(costs))
    _write(options, "outlook", {"machine": machine.describe(), "costs": [asdict(cost) for cost in costs]})


def measure_provisioning(options: argparse.Namespace) -> None:
    """Plans of nodes to buy, by podium and by Karpenter's own simulated scheduling in turn, and how podium's grow."""
    planner, where = karpenter.obtain(Progress()), machine.describe({"karpenter": karpenter.version()})
    measured = provisioning.measure(provisioning.QUESTIONS, options.repeat, planner, _tell)
    plans = _write_each(options, "provisioning", "plans", where, measured)
    figures = provisioning.medians(plans)
    _console.print(provisioning.table(figures))
    for note in provisioning.notes(plans):
        _console.print(f"! {note}")
    _show(list(provisioning.checks(figures)))


def measure_gang_plans(options: argparse.Namespace) -> None:
    """A plan of nodes to buy for many gangs, by podium's own rules."""
    plan = gang_plans.measure()
    _console.print(gang_plans.table(plan))
    _show(list(gang_plans.checks(plan)))
    _write(options, "gang-plans", {"machine": machine.describe(), "plan": asdict(plan)})


def _rates(rates: list[in_process.Rate]) -> dict[str, Any]:
    rate_fields = [{**asdict(rate), "attempts_per_s": rate.attempts_per_s} for rate in rates]
    return {"machine": machine.describe(), "rates": rate_fields}


def profile(options: argparse.Namespace) -> None:
    """Where podium's time goes: by subsystem on the light API server; by function the engine alone, and the daemon."""
    split_by_subsystem(options)
    for name in options.workload or ["plain"]:
        for nodes in options.nodes or [5_000]:
            workload, about = WORKLOADS[name], f"{name}, {nodes:,} nodes"
            pods = workload.pods_that_fit(nodes, options.pods)
            if Place.ENGINE in workload.places:
                engine = profiles.engine_profile(workload, nodes, pods)
                _console.print(profiles.table(f"The engine alone, {about}", engine, pods))
            daemon = profiles.daemon_profile(workload, nodes, pods, obtain(Progress()))
            _console.print(profiles.table(f"The daemon, {about}", daemon, pods))


def split_by_subsystem(options: argparse.Namespace) -> None:
    """What a bound pod costs, by subsystem, on the light API server."""
    binary, names = light_server.obtain(Progress()), workload_names(options, Place.API_SERVER, subsystems.DEFAULT)
    costs, lines = [], []
    for nodes in options.nodes or [subsystems.NODES]:
        for name in names:
            cost, split = subsystems.measure(
                subsystems.workload_named(name), nodes, options.pods, options.repeat, binary
            )
            costs.append(cost)
            lines += [f"{name}, {nodes:,} nodes, {line}" for line in subsystems.dearest_functions(split, cost.pods)]
            _tell(f"{name}, {nodes:,} nodes: {cost.cpu_ms_per_pod:.3f} CPU ms per pod")
            _write(options, "subsystems", {"machine": machine.describe(), "costs": [asdict(cost) for cost in costs]})
    _console.print(subsystems.table(costs))
    for line in lines:
        _console.print(line)
    _show(list(subsystems.checks(costs)))


def count_instructions(options: argparse.Namespace) -> None:
    """The instructions that podium executes for each pod, counted by valgrind, to compare two commits."""
    nodes, pods = (options.nodes or [instructions.NODES])[0], options.pods or instructions.PODS
    binaries, where = _control_plane()
    measured = (
        instructions.measure(WORKLOADS[name], nodes, pods, binaries)
        for name in workload_names(options, Place.API_SERVER, ["plain"])
    )
    _console.print(instructions.table(_write_each(options, "instructions", "counts", where, measured)))


def write_page(options: argparse.Namespace) -> None:
    """docs/performance.md and its plots, from all that was measured."""
    del options
    # Drawing is for those who write the page.
    from benchmarks import page

    print(page.write(results.DIRECTORY, DOCS))


COMMANDS: Final[Mapping[str, Callable[[argparse.Namespace], None]]] = {
    "api-server": measure_on_api_server,
    "start-up": measure_start_up,
    "storm": measure_storm,
    "burst": measure_bursts,
    "shards": measure_shards,
    "neighbours": measure_neighbours,
    "estimator": measure_estimates,
    "in-process": measure_in_process,
    "recorder": measure_recorder,
    "recording": measure_recording,
    "growth": measure_growth,
    "claims": measure_claims,
    "policies": measure_policies,
    "fleets": measure_fleets,
    "million": measure_million,
    "forks": measure_forks,
    "make-room": measure_make_room,
    "outlook": measure_outlook,
    "provisioning": measure_provisioning,
    "gang-plans": measure_gang_plans,
    "subsystems": split_by_subsystem,
    "profile": profile,
    "instructions": count_instructions,
    "report": write_page,
}


def _write(options: argparse.Namespace, name: str, content: dict[str, Any]) -> None:
    results.write(options.json or results.DIRECTORY / f"{name}.json", {"command": command(options), **content})


def command(options: argparse.Namespace) -> str:
    """Return the command that measures the same again."""
    words = ["python -m benchmarks", options.what]
    for name in ("workload", "nodes", "pods", "repeat", "scheduler", "peer_binary"):
        value = getattr(options, name)
        if value != parser().get_default(name):
            words += [f"--{name.replace('_', '-')}", *map(_word, value if isinstance(value, list) else [value])]
    return " ".join(words)


def _word(value: object) -> str:
    """Return an option's value, without the folders of a path, which are those of one machine."""
    return value.name if isinstance(value, Path) else str(value)


def _show(checks: list[targets.Check]) -> None:
    if checks:
        _console.print(targets.table(checks))


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""`podium clusters`: which of many clusters takes a whole workload, asked once, or served."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from podium.cli import files
from podium.cli.clusters_serve import serve
from podium.cli.exit_codes import EXIT_FAILED, EXIT_NO
from podium.cli.groups import CommandGroup
from podium.cli.interrupts import exit_130_at_once
from podium.cli.options.configuration import plugin_option
from podium.cli.options.paths import FILE, FOLDER
from podium.cli.options.releases import decide_as_option
from podium.cli.options.time_limit import start_time_limit, time_limit_option, warn_of_time_limit
from podium.cli.output import TEXT, output_option, print_value, say
from podium.config import NEWEST

if TYPE_CHECKING:
    from podium.fleets.answers import FleetFit
    from podium.fleets.loading import LoadedFleet

_BROKEN_SHOWN_MAX = 10


@click.group(cls=CommandGroup)
def command() -> None:
    """Find the clusters whose scheduler would bind a whole workload, and serve such answers."""


@command.command()
@click.option(
    "-f", "--workload", "workloads", multiple=True, required=True, type=FILE, help="The workload. Repeatable."
)
@click.option(
    "--clusters", "folders", multiple=True, type=FOLDER, help="A directory with a dump per member. Repeatable."
)
@click.option("--member", "members", multiple=True, metavar="NAME=FILE", help="The dump of one member. Repeatable.")
@click.option("--kubeconfig", type=FILE, help="A kubeconfig; each of its contexts is a member.")
@click.option("--context", "contexts", multiple=True, help="Use only this context as a member. Repeatable.")
@click.option(
    "--order",
    type=click.Choice(["emptiest", "cheapest"]),
    default="emptiest",
    show_default=True,
    help="Which members to show first.",
)
@click.option("--prices", type=FILE, help="Hourly prices by instance type, or by CLUSTER/TYPE, for the cheapest.")
@click.option(
    "--most", "clusters_max", type=click.IntRange(min=1), metavar="N", help="Stop when N members take the workload."
)
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration, YAML or JSON.")
@plugin_option
@decide_as_option(f"that of each running member, and for dumps {NEWEST.minor}")
@click.option("--proof", is_flag=True, help="Show the node of each pod.")
@click.option(
    "--exit-code", "tells_by_status", is_flag=True, help=f"Exit with {EXIT_NO} if no member takes the workload."
)
@output_option()
@time_limit_option
def fit(
    workloads: tuple[str, ...],
    folders: tuple[str, ...],
    members: tuple[str, ...],
    kubeconfig: str | None,
    contexts: tuple[str, ...],
    order: str,
    prices: str | None,
    clusters_max: int | None,
    config: Path | None,
    plugins: tuple[str, ...],
    proof: bool,
    tells_by_status: bool,
    output: str,
) -> None:
    """Show which members would bind every pod of the workload, the emptiest or the cheapest first.

    \b
    podium clusters fit -f job.yaml --clusters dumps/
    podium clusters fit -f web.yaml --member east=east.yaml --member west=west.yaml --proof
    podium clusters fit -f job.yaml --kubeconfig ~/.kube/config --context east --context west

    Each file or directory in the directory of --clusters is a member of that name, with the objects that kubectl get
    prints. Each member's pending pods are placed first, and nothing is preempted. Nothing changes in any cluster.
    """  # noqa: D301
    click.get_current_context().with_resource(exit_130_at_once())
    if not folders and not members and kubeconfig is None and not contexts:
        raise click.UsageError("give the members with --clusters, --member or --kubeconfig")
    from podium.cli.asking import errors_shown
    from podium.cli.cluster_source import objects_in
    from podium.cli.clusters_table import print_fleet_fit
    from podium.cli.fleet_source import member_files, objects_of_members, prices_in
    from podium.cli.options.configuration import readable_as_any, usable
    from podium.fleets.loading import load_fleet
    from podium.fleets.ordering import Order
    from podium.fleets.search import FleetQuestion, ask_all
    from podium.fleets.workload import read_workload
    from podium.lib.system_clock import SystemClock

    dumps = member_files(folders, members)
    files.demand_one_stdin((*workloads, *dumps.values(), config, prices))
    # The newest release decides in dumps, and has to read the configuration for them.
    good = (
        usable(config, plugins, to_run=False)
        if dumps
        else readable_as_any(lambda release: usable(config, plugins, to_run=False, release=release))
    )
    with errors_shown():
        workload = read_workload(objects_in(workloads))
        fleet_objects = objects_of_members(dumps, kubeconfig, contexts)
        configs = fleet_objects.configurations(good)
        fleet = load_fleet(fleet_objects.objects, good.config, good.plugins, SystemClock().now(), configs)
        question = FleetQuestion(workload, Order(order), prices_in(prices), clusters_max)
        answer = ask_all(question, fleet.members, fleet_objects.without | fleet.without, start_time_limit())
    _warn(fleet, answer)
    warn_of_time_limit(output)
    if output == TEXT:
        print_fleet_fit(answer, proof=proof)
    else:
        print_value(answer.as_dict(), output)
    if not answer and answer.without:
        # A member that could not be asked may take it.
        raise SystemExit(EXIT_FAILED)
    if tells_by_status and not answer:
        raise SystemExit(EXIT_NO)


def _warn(fleet: LoadedFleet, answer: FleetFit) -> None:
    """Name on standard error what the answer is without."""
    from podium.cli.cluster_source import warn_of_missing

    for name, reason in answer.without.items():
        say(f"warning: the answer is without {name}: {reason}", err=True)
    # The dumps of a fleet may hold thousands of such objects.
    for text in fleet.read_errors[:_BROKEN_SHOWN_MAX]:
        say(f"warning: {text}", err=True)
    if (more_count := len(fleet.read_errors) - _BROKEN_SHOWN_MAX) > 0:
        say(f"warning: and {more_count} more such objects", err=True)
    warn_of_missing(fleet.missing_kinds())


command.add_command(serve)

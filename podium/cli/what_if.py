"""`podium what-if`: what moves where if nodes, pods or the configuration change?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli import files
from podium.cli.asking import errors_shown, load_cluster
from podium.cli.interrupts import exit_130_at_once
from podium.cli.options.cluster import cluster_options
from podium.cli.options.configuration import plugin_option, usable
from podium.cli.options.html import html_option, write_page
from podium.cli.options.paths import FILE
from podium.cli.options.releases import as_the_cluster, take_release_of
from podium.cli.options.time_limit import start_time_limit, warn_of_time_limit
from podium.cli.output import TEXT, output_option, print_value

if TYPE_CHECKING:
    from podium.config import KubeSchedulerConfiguration
    from podium.insight import Cluster
    from podium.insight.steps import Step

_IN_ORDER = "podium.cli.what_if.in_order"


class _InOrder(click.Option):
    """An option whose position among the others matters: it records its uses in the order of the command line."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Record each use before the option takes its value."""
        super().add_to_parser(parser, ctx)
        # click groups values by option, and drops the order of different options.
        for flag in self.opts:
            option = parser._long_opt[flag]
            option.process = _recording(option.process, flag, ctx)


def _recording(process: Callable[[Any, Any], None], flag: str, ctx: click.Context) -> Callable[[Any, Any], None]:
    def record_and_process(value: Any, state: Any) -> None:
        ctx.meta.setdefault(_IN_ORDER, []).append((flag, value))
        process(value, state)

    return record_and_process


@click.command()
@cluster_options
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration, YAML or JSON.")
@plugin_option
@as_the_cluster
@click.option("--steps", cls=_InOrder, multiple=True, type=FILE, help="A file of steps, see docs/questions.md.")
@click.option("--drain", cls=_InOrder, multiple=True, metavar="NODE", help="Cordon a node and move its pods.")
@click.option(
    "--add-nodes", cls=_InOrder, multiple=True, metavar="N", help="Add N nodes; the next --like names the node to copy."
)
@click.option("--like", cls=_InOrder, multiple=True, metavar="NODE", help="The node that the added ones copy.")
@click.option(
    "--apply", cls=_InOrder, multiple=True, type=FILE, help="Add or replace the objects of a file or directory."
)
@click.option("--scale", cls=_InOrder, multiple=True, metavar="NS/KIND/NAME=N", help="Scale a workload to N pods.")
@click.option("--remove", cls=_InOrder, multiple=True, metavar="KIND/[NS/]NAME", help="Delete an object.")
@click.option(
    "--use-config", cls=_InOrder, multiple=True, type=FILE, help="Use another configuration from this step on."
)
@click.option("--order", "in_batches", is_flag=True, help="With --drain a,b,c: the order and batches to drain them in.")
@html_option("utilisation and pods by zone before and after, and what becomes of pods")
@output_option()
def command(
    clusters: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    config: Path | None,
    plugins: tuple[str, ...],
    in_batches: bool,
    html: Path | None,
    output: str,
    **steps: tuple[str, ...],
) -> None:
    """Show what would move, become pending or be preempted. Changes nothing in any cluster.

    \b
    podium what-if -f cluster.yaml --drain node-1
    podium what-if -f cluster.yaml --add-nodes 3 --like node-2 --scale shop/Deployment/web=20
    podium what-if --kubeconfig FILE --steps steps.yaml
    podium what-if -f cluster.yaml --drain node-1,node-2,node-3 --order

    The steps are carried out in the order given. After each, pending pods are placed as the scheduler would place them.
    """  # noqa: D301
    ctx = click.get_current_context()
    ctx.with_resource(exit_130_at_once())
    in_order: list[tuple[str, str]] = ctx.meta.get(_IN_ORDER, [])
    if not in_order:
        raise click.UsageError("give steps, such as --drain NODE or --steps FILE")
    if in_batches:
        _demand_only_drains(in_order, html)
        _print_order(clusters, (kubeconfig, context), config, plugins, _names(in_order), output)
        return
    files.demand_one_stdin((*clusters, config, *steps["apply"], *steps["steps"], *steps["use_config"]))
    # The steps first: their files are read before a cluster, which takes longer.
    with errors_shown():
        from podium.insight.steps import Apply, carry_out_steps, pods_applied
        from podium.insight.what_if import outcome_of

        # Configurations among the steps are read by its rules as well.
        take_release_of(clusters, kubeconfig, context)
        steps_in_order = _Steps(plugins, any_scheduler=config is None).of(in_order)
        load_result = load_cluster(clusters, (kubeconfig, context), config, plugins, pods_applied(steps_in_order))

        trial = carry_out_steps(load_result.cluster, steps_in_order, start_time_limit())
        outcome = outcome_of(trial)
    from podium.cli.cluster_source import warn_of_left_out, warn_of_missing

    for step in steps_in_order:
        if isinstance(step, Apply):
            warn_of_left_out(step.objects, step.name)
    warn_of_missing(load_result.missing_kinds())
    warn_of_time_limit(output)
    texts = [step.text for step in steps_in_order]
    if html is not None:
        from podium.cli.pages.what_if import page_of

        write_page(html, page_of(texts, outcome))
    if output == TEXT:
        from podium.cli.what_if_table import print_outcome

        print_outcome(texts, outcome)
    else:
        print_value({"steps": texts, **outcome.as_dict(), **load_result.basis()}, output)


def _demand_only_drains(in_order: list[tuple[str, str]], html: Path | None) -> None:
    if html is not None or any(flag != "--drain" for flag, _ in in_order):
        raise click.UsageError("--order needs --drain, and no other step")


def _names(in_order: list[tuple[str, str]]) -> list[str]:
    """Return the nodes to drain, of which one option may name several."""
    return [name for _, value in in_order for name in value.split(",") if name]


def _print_order(
    clusters: tuple[str, ...],
    live: tuple[str | None, str | None],
    config: Path | None,
    plugins: tuple[str, ...],
    names: list[str],
    output: str,
) -> None:
    """Print the order in which the nodes are drained."""
    files.demand_one_stdin((*clusters, config))
    with errors_shown():
        from podium.insight.room.drain_order import drain_order

        load_result = load_cluster(clusters, live, config, plugins)
        order = drain_order(load_result.cluster, names, start_time_limit())
    from podium.cli.cluster_source import warn_of_missing

    warn_of_missing(load_result.missing_kinds())
    warn_of_time_limit(output)
    if output == TEXT:
        from podium.cli.room_table import print_drain_order

        print_drain_order(order)
    else:
        print_value(order.as_dict() | load_result.basis(), output)


class _Steps:
    """Builds steps from options and files."""

    def __init__(self, plugins: tuple[str, ...], *, any_scheduler: bool) -> None:
        self._plugins = plugins
        self._any_scheduler = any_scheduler

    def of(self, in_order: list[tuple[str, str]]) -> list[Step]:
        """Build the steps of the command line.

        Raises:
            click.UsageError: --add-nodes and --like do not form pairs, or a value has another form.
            ClusterError: a file cannot be read.
        """
        from podium.engine.errors import ClusterError
        from podium.insight.steps import NODES_MAX, Drain, add_nodes_of, number_in, remove_of, scale_of

        steps: list[Step] = []
        count: int | None = None
        of_text: dict[str, Callable[[str], Step]] = {"--scale": scale_of, "--remove": remove_of}
        of_file: dict[str, Callable[[str], Step]] = {"--apply": self._apply, "--use-config": self._use_config}
        for flag, value in in_order:
            # The two belong together, and several of such pairs may be given.
            if (flag == "--like") != (count is not None):
                raise click.UsageError("give --add-nodes N and --like NODE one after the other")
            if flag == "--add-nodes":
                count = number_in(value, NODES_MAX)
                if not count:
                    raise click.UsageError(f"--add-nodes: expected a number from 1 to {NODES_MAX:,}, got {value!r:.40}")
            elif flag == "--like":
                steps.append(add_nodes_of({"count": count, "like": value}))
                count = None
            elif flag == "--steps":
                steps += self._file(value)
            elif flag == "--drain":
                if not (names := _names([(flag, value)])):
                    raise click.UsageError("--drain: expected the name of a node")
                steps += map(Drain, names)
            elif flag in of_file:
                steps.append(of_file[flag](value))
            else:
                try:
                    steps.append(of_text[flag](value))
                except ClusterError as error:
                    raise click.UsageError(f"--{error}") from error
        if count is not None:
            raise click.UsageError("give --add-nodes N and --like NODE one after the other")
        return steps

    def _file(self, name: str) -> list[Step]:
        from podium.engine.errors import ClusterError
        from podium.insight.steps import read_steps
        from podium.lib.yaml_reader import YamlError, read_documents

        try:
            documents = [document for document in read_documents(files.content(name)) if document is not None]
            if len(documents) != 1:
                raise ClusterError(f"expected one document, found {len(documents)}")
            return read_steps(documents[0], {"apply": self._apply, "config": self._use_config})
        except (ClusterError, YamlError) as error:
            raise ClusterError(f"{name}: {error}") from error

    def _apply(self, names: str | list[str]) -> Step:
        from podium.cli.cluster_source import objects_in
        from podium.insight.steps import Apply

        file_names = _demand_names("apply", [names] if isinstance(names, str) else names)
        return Apply(", ".join(file_names), objects_in(file_names))

    def _use_config(self, name: str) -> Step:
        from podium.insight.steps import UseProfiles

        (name,) = _demand_names("config", [name])
        good = usable(Path(name), self._plugins, to_run=False)

        def rebuild(cluster: Cluster, config: KubeSchedulerConfiguration) -> Cluster:
            if self._any_scheduler:
                # Pods of other schedulers go on being scheduled, as if theirs had the first profile's rules.
                names = {*cluster.profiles, *(pod.spec.scheduler_name for pod in cluster.pods)} - {
                    profile.scheduler_name for profile in config.profiles
                }
                extra_profiles = (replace(config.profiles[0], scheduler_name=name) for name in sorted(names))
                config = replace(config, profiles=(*config.profiles, *extra_profiles))
            return type(cluster)(config, cluster.store.fork(), good.plugins, admission=cluster.admission)

        return UseProfiles(name, good.config, rebuild)


def _demand_names(step: str, names: Any) -> list[str]:
    """Refuse values that do not name files. Raises: ClusterError."""
    from podium.engine.errors import ClusterError

    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ClusterError(f"{step}: expected a string" + (" or a list of them" if step == "apply" else ""))
    return names

"""`podium evaluate`: chooses the node of a pod and explains the choice. No scheduler needs to run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import orjson

from podium.cli import files
from podium.cli.asking import errors_shown
from podium.cli.exit_codes import EXIT_NO
from podium.cli.interrupts import exit_at_sigint
from podium.cli.options.cluster import cluster_options, demand_one_cluster
from podium.cli.options.configuration import Usable, plugin_option, usable
from podium.cli.options.paths import FILE
from podium.cli.options.releases import OF_THE_CLUSTER, decide_as_option, release_asked, take_release_of
from podium.cli.options.time_limit import note_size, start_time_limit, warn_of_time_limit
from podium.cli.output import TEXT, output_option, print_value, write_json_line
from podium.config import EVALUATED, FIRST, default_configuration, default_gates

if TYPE_CHECKING:
    from podium.insight.evaluate import PodAnswer

TOP: Final = 10
"""The number of rows of a table without `--top`."""


@click.command()
@click.argument("scenarios", nargs=-1, type=FILE, metavar="[SCENARIOS]...")
@cluster_options
@click.option("--pod", "pod_file", type=FILE, help="The pod, or the workload with a pod template, to schedule.")
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration, YAML or JSON.")
@plugin_option
@decide_as_option(
    OF_THE_CLUSTER,
    EVALUATED,
    f" {next(iter(EVALUATED))}, that of scheduler-plugins, changes only scores; the rest is as {FIRST.minor}.",
)
@click.option("--exit-code", "tells_by_status", is_flag=True, help=f"Exit with {EXIT_NO} if the pod fits on no node.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Show N rows of each table; nodes with equal verdicts share a row if there are more.  [default: {TOP}]",
)
@click.option("--all", "shows_all", is_flag=True, help="Show every node on a row of its own.")
@output_option()
def command(
    scenarios: tuple[str, ...],
    clusters: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    pod_file: str | None,
    config: Path | None,
    plugins: tuple[str, ...],
    tells_by_status: bool,
    top: int | None,
    shows_all: bool,
    output: str,
) -> None:
    """Show where a pod would be scheduled, and why. Changes nothing in any cluster.

    \b
    podium evaluate --pod pod.yaml
    podium evaluate --kubeconfig FILE --context NAME --pod deployment.yaml
    podium evaluate -f cluster.yaml --pod pod.yaml

    These read a running cluster, or one from files and directories: YAML documents, JSON, or what `kubectl get -o yaml`
    prints; - is standard input. Every node is filtered, and every feasible node is scored.

    \b
    podium evaluate scenarios.jsonl.gz

    This answers recorded scenarios: one JSON object per line, with the objects, the configuration and the pod.
    Without --decide-as, a scenario whose configuration enables plugins of scheduler-plugins is answered as 1.35.
    """  # noqa: D301
    # From here on: reading a large cluster takes long, and Ctrl-C must end it without a traceback.
    click.get_current_context().with_resource(exit_at_sigint())
    is_live = kubeconfig is not None or context is not None
    if scenarios and (pod_file is not None or clusters or is_live):
        raise click.UsageError("give either files of scenarios, or a cluster and a pod with --pod")
    demand_one_cluster(clusters, kubeconfig, context)
    if top is not None and shows_all:
        raise click.UsageError("give either --top or --all")
    if not scenarios and pod_file is None:
        raise click.UsageError("give the pod with --pod, or files of scenarios")
    files.demand_one_stdin((*clusters, pod_file, config))
    if pod_file is not None:
        take_release_of(clusters, kubeconfig, context)
    good = usable(config, plugins, to_run=False)
    if pod_file is None:
        _answer_scenarios(scenarios, good)
        return
    answer = _answer_to(clusters, (kubeconfig, context), pod_file, good, any_scheduler=config is None)
    warn_of_time_limit(output)
    if output == TEXT:
        from podium.cli.evaluate_table import print_table

        print_table(answer, None if shows_all else top or TOP)
    else:
        print_value(answer.to_json() | {"decidesAs": good.config.release.minor}, output)
    if tells_by_status and answer.evaluation.node is None:
        raise SystemExit(EXIT_NO)


def _answer_scenarios(names: tuple[str, ...], good: Usable) -> None:
    from podium.insight.evaluate import Evaluator
    from podium.lib.system_clock import SystemClock

    # A scenario does not say which program answered it. Of one about plugins of scheduler-plugins there is only one.
    ported = default_configuration(default_gates(EVALUATED["1.35"])) if release_asked() is None else None
    evaluator = Evaluator(good.plugins, good.config, SystemClock().now(), ported=ported)
    for name in names:
        answer_count = 0
        for number, line in _scenarios_in(name):
            answer = evaluator.answer_line(line, f"{name}:{number}")
            # One line at a time, so that a program may read the answers while others are still worked out.
            write_json_line(answer)
            answer_count += "error" not in answer
        # A few bad lines are answered each; if all are bad, the file is the mistake.
        if not answer_count:
            raise click.ClickException(f"{name}: none of its lines is a scenario that can be answered")


def _scenarios_in(name: str) -> Iterable[tuple[int, bytes]]:
    """Read the lines of a file of scenarios.

    Raises:
        click.ClickException: the file contains Kubernetes objects instead.
    """
    lines = files.lines(name)
    first = next(lines, None)
    if first is None:
        return ()
    try:
        # The mistake is common: objects where scenarios are expected. One look at the first line tells.
        if "kind" not in orjson.loads(first[1]):
            return chain([first], lines)
    except (orjson.JSONDecodeError, TypeError):
        pass
    all_lines = [first, *lines]
    kinds = _kinds_in(b"".join(line for _, line in all_lines), name)
    if not kinds:
        return all_lines
    pod, cluster = (name, "cluster.yaml") if len(kinds) == 1 else ("pod.yaml", name)
    raise click.ClickException(
        f"{name} holds Kubernetes objects ({', '.join(kinds[:3])}), not scenarios: give a pod with --pod and a cluster "
        f"with -f, such as podium evaluate -f {cluster} --pod {pod}"
    )


def _kinds_in(text: bytes, name: str) -> list[str]:
    """Return the kind of each object in a file; empty if the file does not contain Kubernetes objects."""
    from podium.engine.errors import ManifestError
    from podium.engine.files import read_objects

    try:
        return [document.manifest["kind"] for document in read_objects(text, name)]
    except ManifestError:
        return []


def _answer_to(
    clusters: Sequence[str],
    live: tuple[str | None, str | None],
    pod_file: str,
    good: Usable,
    *,
    any_scheduler: bool,
) -> PodAnswer:
    """Read the cluster and the pod, and choose its node."""
    from podium.cli.cluster_source import objects_in, objects_of_cluster, warn_of_left_out, warn_of_missing
    from podium.insight.evaluate import Question
    from podium.lib.system_clock import SystemClock
    from podium.objects import resource_types
    from podium.objects.resource_types import NODES, PODS

    with errors_shown():
        pod = objects_in([pod_file])
        if clusters:
            question = Question.read(objects_in(clusters), pod, pod_file)
        else:
            kinds = resource_types.WITHOUT_GATES
            question = Question.read(objects_of_cluster(*live, kinds), pod, pod_file, complete_kinds=kinds)
        question.store.now_s = SystemClock().now()
        note_size(len(question.store.objects(NODES)), len(question.store.objects(PODS)))
        answer = question.ask(good.config, good.plugins, any_scheduler=any_scheduler, limit=start_time_limit())
    warn_of_left_out(pod, pod_file)
    warn_of_missing(answer.missed)
    return answer

"""`podium why`: why is a pod pending, or where it is, and what would make it fit?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from podium.cli import files
from podium.cli.asking import errors_shown, load_cluster
from podium.cli.interrupts import exit_130_at_once, printed_whole
from podium.cli.options.cluster import cluster_options
from podium.cli.options.configuration import plugin_option, usable
from podium.cli.options.paths import FILE
from podium.cli.options.running_podium import RunningPodium, running_podium_options, take_running_podium
from podium.cli.options.time_limit import current_time_limit, warn_of_time_limit
from podium.cli.output import EXIT_FITS_NOWHERE, TEXT, output_option, print_value, write_json_line

if TYPE_CHECKING:
    from podium.insight import Fixes, Why
    from podium.insight.loading import Loaded


@click.command()
@click.argument("pod", required=False)
@click.option("-n", "--namespace", default="default", show_default=True, help="The namespace of the pod.")
@cluster_options
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration, YAML or JSON.")
@plugin_option
@running_podium_options
@click.option("--node", metavar="NAME", help="Also say why the pod is not there, or how that node compares.")
@click.option("--fix", is_flag=True, help="Find the smallest sets of edits after which the pod fits.")
@click.option("--cases", type=FILE, help="With --fix: answer recorded scenarios, one JSON object per line.")
@click.option(
    "--exit-code", "tells_by_status", is_flag=True, help=f"Exit with {EXIT_FITS_NOWHERE} if the pod fits on no node."
)
@output_option()
def command(
    pod: str | None,
    namespace: str,
    clusters: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    config: Path | None,
    plugins: tuple[str, ...],
    node: str | None,
    fix: bool,
    cases: str | None,
    tells_by_status: bool,
    output: str,
    **given: Any,
) -> None:
    """Show why a pod is pending, or why it is where it is. Changes nothing in any cluster.

    \b
    podium why web-7d4 -n shop -f cluster.yaml
    podium why web-7d4 -n shop --kubeconfig FILE --fix
    podium why web-7d4 -n shop -f cluster.yaml --node node-3
    podium why web-7d4 -n shop --url https://localhost:10259 --token-file FILE

    POD is the name of a pod in the cluster; for a pod that is not there, see podium evaluate. Every blocker of every
    node is shown, not only the first one. A bound pod is asked about as if it were pending, in the cluster as it is.
    With --url a running podium tells what its last attempts found, and when it tries again.

    \b
    podium why --cases FILE --fix -o json

    This answers recorded scenarios: one JSON object per line, with the objects, the configuration and the pod.
    """  # noqa: D301
    click.get_current_context().with_resource(exit_130_at_once())
    if (pod is None) == (cases is None):
        raise click.UsageError("give the name of a pod, or recorded scenarios with --cases")
    if cases is not None and (clusters or kubeconfig or context or node or not fix):
        raise click.UsageError("--cases goes with --fix, and brings its own clusters and pods")
    running = take_running_podium(given)
    if running is not None and (clusters or kubeconfig or context or config or plugins or fix or cases is not None):
        raise click.UsageError("--url asks a running podium, which has its own cluster and configuration, and no fixes")
    files.demand_one_stdin((*clusters, config))
    if cases is not None:
        _answer_cases(cases, config, plugins)
        return
    assert pod is not None
    if running is not None:
        _tell_story(running, pod, namespace, node or "", output, tells_by_status=tells_by_status)
        return
    with errors_shown():
        loaded = load_cluster(clusters, (kubeconfig, context), config, plugins)
        found, fixes = _ask(loaded, pod, namespace, node or "", fix=fix)
    warn_of_time_limit(output)
    _print(loaded, found, fixes, output)
    if tells_by_status and (found.node is None or (found.gang is not None and not found.gang.fits)):
        raise SystemExit(EXIT_FITS_NOWHERE)


def _tell_story(
    running: RunningPodium, pod: str, namespace: str, node: str, output: str, *, tells_by_status: bool
) -> None:
    """Print what a running podium knows about the pod."""
    from podium.cli.running_podium import story_of
    from podium.cli.story import print_story, read_story

    answer = story_of(running, pod, namespace, node)
    try:
        story = read_story(answer)
    except ValueError as error:
        raise click.ClickException(f"{running.url}: the answer is not that of a podium like this: {error}") from error
    if output == TEXT:
        print_story(story, node)
    else:
        print_value(orjson.loads(answer), output)
    if tells_by_status and story.fits_nowhere:
        raise SystemExit(EXIT_FITS_NOWHERE)


def _ask(loaded: Loaded, pod: str, namespace: str, node: str, *, fix: bool) -> tuple[Why, Fixes | None]:
    from podium.insight.loading import node_named, pod_named

    asked = pod_named(loaded.cluster, pod, namespace)
    if node:
        node_named(loaded.cluster, node)
    found = loaded.cluster.why(asked, node)
    wants_fixes = fix and not found.error
    return found, loaded.cluster.fixes(asked, limit=current_time_limit()) if wants_fixes else None


def _print(loaded: Loaded, found: Why, fixes: Fixes | None, output: str) -> None:
    from podium.cli.cluster_source import warn_of_missing

    warn_of_missing(loaded.missed())
    if output == TEXT:
        from podium.cli.why_table import print_why

        print_why(found, fixes)
        return
    more: dict[str, Any] = {} if fixes is None else fixes.as_dict(explain=True)
    print_value(found.as_dict() | more | loaded.unknown(), output)


def _answer_cases(name: str, config: Path | None, plugins: tuple[str, ...]) -> None:
    from podium.insight.cases import CaseAnswers

    good = usable(config, plugins, to_run=False)
    answers = CaseAnswers(good.plugins, good.config)
    answered = 0
    for number, line in files.lines(name):
        answer = answers.answer_line(line, f"{name}:{number}")
        with printed_whole():
            write_json_line(answer)
            sys.stdout.buffer.flush()
        answered += "error" not in answer
    if not answered:
        raise click.ClickException(f"{name}: no line of it is a scenario that can be answered")

"""`podium why`: explains why a pod is pending, or on its node, and finds edits that would make it fit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson
from click.core import ParameterSource

from podium.cli import files
from podium.cli.asking import errors_shown, load_cluster
from podium.cli.exit_codes import EXIT_NO
from podium.cli.interrupts import exit_130_at_once, printed_whole
from podium.cli.new_nodes import check_new_node_options, new_node_options, new_nodes_in, pool_resources
from podium.cli.options.cluster import cluster_options
from podium.cli.options.configuration import plugin_option, usable
from podium.cli.options.names import demand_name
from podium.cli.options.paths import FILE
from podium.cli.options.releases import as_the_cluster, release_asked
from podium.cli.options.running_podium import RunningPodium, running_podium_options, take_running_podium
from podium.cli.options.time_limit import start_time_limit, warn_of_time_limit
from podium.cli.output import TEXT, output_option, print_value, write_json_line

if TYPE_CHECKING:
    from podium.cli.story import Story
    from podium.config import KubeSchedulerConfiguration
    from podium.insight.edits import Edit
    from podium.insight.loading import LoadResult
    from podium.insight.pod_answer import PodAnswer
    from podium.objects.core import Pod


@click.command()
@click.argument("pod", required=False)
@click.option(
    "-n",
    "--namespace",
    help="The namespace of the pod.  [default: the context's, or default, or that of the only pod of that name]",
)
@cluster_options
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration, YAML or JSON.")
@plugin_option
@as_the_cluster
@running_podium_options
@click.option("--node", metavar="NAME", help="Also say why the pod is not on this node, or how the node compares.")
@click.option("--fix", is_flag=True, help="Find the smallest sets of edits after which the pod fits.")
@new_node_options
@click.option("--cases", type=FILE, help="With --fix: answer recorded scenarios, one JSON object per line.")
@click.option("--exit-code", "tells_by_status", is_flag=True, help=f"Exit with {EXIT_NO} if the pod fits on no node.")
@output_option()
def command(
    pod: str | None,
    namespace: str | None,
    clusters: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    config: Path | None,
    plugins: tuple[str, ...],
    node: str | None,
    fix: bool,
    catalogues: tuple[str, ...],
    node_pools: str | None,
    cases: str | None,
    tells_by_status: bool,
    output: str,
    **options: Any,
) -> None:
    """Show why a pod is pending, or why it is where it is. Changes nothing in any cluster.

    \b
    podium why web-7d4 -n shop -f cluster.yaml
    podium why web-7d4 -n shop --kubeconfig FILE --fix
    podium why web-7d4 -n shop -f cluster.yaml --node node-3
    podium why web-7d4 -n shop --url https://localhost:10259 --token-file FILE

    POD is the name of a pod in the cluster, or NAMESPACE/NAME; for a pod that does not exist, use podium evaluate.
    Every blocker of every node is shown, not only the first one. A bound pod is evaluated as if it were pending in
    today's cluster. With --url, a running podium reports what its last attempts found, and when it tries again.

    \b
    podium why --cases FILE --fix -o json

    This answers recorded scenarios: one JSON object per line, with the objects, the configuration and the pod.
    """  # noqa: D301
    click.get_current_context().with_resource(exit_130_at_once())
    if (pod is None) == (cases is None):
        raise click.UsageError("give the name of a pod, or recorded scenarios with --cases")
    if cases is not None and (clusters or kubeconfig or context or node or not fix):
        raise click.UsageError("--cases goes with --fix, and brings its own clusters and pods")
    lease = take_lease(options, goes_with_cluster=not clusters and cases is None and options["url"] is None)
    running = take_running_podium(options)
    if running is not None and (clusters or kubeconfig or context or config or plugins or fix or cases is not None):
        raise click.UsageError("--url asks a running podium about its own cluster and configuration, without --fix")
    check_new_node_options(catalogues, node_pools)
    if catalogues and (not fix or cases is not None):
        raise click.UsageError("--catalogue goes with --fix, and not with --cases")
    # Standard input can be read only once.
    files.demand_one_stdin((*clusters, *catalogues, node_pools, config))
    if cases is not None:
        _answer_cases(cases, config, plugins)
        return
    assert pod is not None
    name = PodName.read(pod, namespace)
    if running is not None:
        _tell_story(running, name, node or "", output, tells_by_status=tells_by_status)
        return
    name = name.in_context(clusters, kubeconfig, context)
    leader, ask = Leader(), partial(ask_running_podium, (kubeconfig, context), lease, node=node or "")
    # With files, or a configuration or minor of one's own, the running podium would answer another question.
    if not clusters and config is None and not plugins and lease:
        leader = ask(name)
        if release_asked() is None and leader.answers_alone(fix=fix, is_text=output == TEXT):
            _show_story(leader, node or "", output, tells_by_status=tells_by_status)
            return
    try:
        with errors_shown():
            load_result = load_cluster(
                clusters,
                (kubeconfig, context),
                config,
                plugins,
                running=leader.configuration,
                kept_resources=pool_resources() if catalogues else (),
            )
            asked_pod = name.found_in(load_result)
            # The pod's namespace may only follow from the cluster; the leader was asked about the default one.
            leader = leader if asked_pod.key == name.key else leader.about(asked_pod, ask)
            source = leader.source if config is None else str(config)
            new_nodes = new_nodes_in(load_result, asked_pod, catalogues, node_pools) if catalogues else ()
            edits = [new_node.edit for new_node in new_nodes]
            answer = _ask(load_result, asked_pod, node or "", source, edits, fix=fix, problem=leader.problem)
    except click.ClickException:
        if fix or leader.story is None:
            raise
        # Its user may not list the cluster, or the pod has gone: what the running podium knows is an answer, too.
        _show_story(leader, node or "", output, tells_by_status=tells_by_status)
        return
    warn_of_time_limit(output)
    _print(load_result, answer, leader, output)
    why = answer.why
    if tells_by_status and (why.node is None or (why.gang is not None and not why.gang.fits)):
        raise SystemExit(EXIT_NO)


def take_lease(options: dict[str, Any], *, goes_with_cluster: bool) -> str:
    """Remove the Lease's name, which has a default, from the options; given in vain, it raises click.UsageError."""
    is_given = click.get_current_context().get_parameter_source("lease") is not ParameterSource.DEFAULT
    if is_given and not goes_with_cluster:
        raise click.UsageError("--lease needs a running cluster: it cannot be combined with -f, --cases or --url")
    return str(options.pop("lease"))


@dataclass(frozen=True, slots=True)
class PodName:
    """The pod that the command line names.

    Attributes:
        is_given: whether the command line names its namespace.
    """

    name: str
    namespace: str
    is_given: bool

    @classmethod
    def read(cls, pod: str, namespace: str | None = None) -> PodName:
        """Read the argument, `name` or `namespace/name`. Raises: click.UsageError: it is neither, or two namespaces."""
        prefix, slash, name = demand_name(pod).rpartition("/")
        if slash and namespace is not None and namespace != prefix:
            raise click.UsageError(f"{pod} is in the namespace {prefix}, and --namespace names {namespace}")
        return cls(name, prefix or namespace or "default", bool(slash) or namespace is not None)

    @property
    def key(self) -> str:
        """The pod's namespace and name."""
        return f"{self.namespace}/{self.name}"

    def in_context(self, clusters: Sequence[str], kubeconfig: str | None, context: str | None) -> PodName:
        """Use the namespace of the kubeconfig's context, unless the command line names a namespace or files."""
        if self.is_given or clusters:
            return self
        from podium.client.credentials import own_namespace

        return replace(self, namespace=own_namespace(kubeconfig, context))

    def found_in(self, load_result: LoadResult) -> Pod:
        """Find the pod in the cluster. Raises: ClusterError: the cluster has no such pod."""
        from podium.insight.loading import pod_named

        return pod_named(load_result.cluster, self.name, self.namespace, is_only_there=self.is_given)


@dataclass(frozen=True, slots=True)
class Leader:
    """The answer of the running podium that leads.

    Attributes:
        name: the leader's own pod.
        content: the answer about the pod in question as it was sent, and as `story` parsed; empty without an answer.
        configuration: the leader's configuration; None if it is unknown here.
        problem: the reason why a part of the answer is unknown; "" if nothing is, or the leader was not to be asked.
    """

    name: str = ""
    content: bytes = b""
    story: Story | None = None
    configuration: KubeSchedulerConfiguration | None = None
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values, with the name of the leader's pod."""
        answer: dict[str, Any] = orjson.loads(self.content)
        return answer | ({"asked": self.name} if self.name else {})

    def about(self, pod: Pod, ask: Callable[[PodName], Leader]) -> Leader:
        """Ask the leader again, about a pod whose namespace only the cluster has shown."""
        return ask(PodName.read(pod.key)) if self.name else self

    def answers_alone(self, *, fix: bool, is_text: bool) -> bool:
        """Return whether the leader's answer is shown alone: only the leader knows its plugins and its decisions."""
        story = self.story
        if story is None or fix or not story.serves_pod:
            return False
        # A bound pod needs no what-if: the attempt that bound it is the best answer there is.
        return self.configuration is None or (is_text and bool(story.bound_to) and story.why is not None)

    @property
    def source(self) -> str:
        """The origin of the configuration; "" if it is unknown."""
        return "" if self.configuration is None else f"the running podium ({self.name})"


def ask_running_podium(live: tuple[str | None, str | None], lease: str, pod: PodName, node: str) -> Leader:
    """Ask the podium that holds the Lease, as far as the kubeconfig's user may."""
    from podium.cli.leader import NotAskedError, ask_leader
    from podium.cli.story import read_story

    try:
        answer = ask_leader(*live, lease, pod.name, pod.namespace, node)
        story = None if answer.story is None else read_story(answer.story)
    except NotAskedError as error:
        return Leader(problem=f"the running podium was not asked: {error}")
    except ValueError as error:
        return Leader(problem=f"the running podium did not answer as this version does: {error}")
    configuration, problem = _configuration_of(answer.configuration, answer.decides_as)
    return Leader(answer.leader, answer.story or b"", story, configuration, problem)


def _configuration_of(content: bytes | None, minor: str | None) -> tuple[KubeSchedulerConfiguration | None, str]:
    """Read the running podium's configuration; return None and the reason if it cannot be used here.

    Args:
        minor: of Kubernetes, as which the running podium decides; None if it does not say.
    """
    from podium.config import ConfigError, default_gates
    from podium.engine.configurations import read_configuration, release_named
    from podium.engine.errors import ClusterError
    from podium.plugins import IN_TREE
    from podium.plugins.contrib import CONTRIB

    if content is None:
        return None, "the running podium does not show this user its configuration (/configz)"
    try:
        # Plugins that only the running podium has cannot be constructed here, so its profile cannot be used.
        gates = default_gates(release_asked() or release_named(minor))
        classes = {**IN_TREE, **CONTRIB}
        return read_configuration(content.decode(), "the running podium's configuration", classes, gates), ""
    except (ConfigError, ClusterError, ValueError) as error:
        return None, f"the running podium's configuration cannot be used here: {error}"


def _tell_story(running: RunningPodium, pod: PodName, node: str, output: str, *, tells_by_status: bool) -> None:
    """Print the story that a running podium has of the pod."""
    from podium.cli.running_podium import story_of
    from podium.cli.story import read_story

    answer = story_of(running, pod.name, pod.namespace, node)
    try:
        story = read_story(answer)
    except ValueError as error:
        raise click.ClickException(
            f"{running.url}: the answer is not that of this version of podium: {error}"
        ) from error
    _show_story(Leader(content=answer, story=story), node, output, tells_by_status=tells_by_status)


def _show_story(leader: Leader, node: str, output: str, *, tells_by_status: bool) -> None:
    from podium.cli.story import print_story

    story = leader.story
    assert story is not None
    if output == TEXT:
        print_story(story, node, leader.name)
    else:
        print_value(leader.as_dict(), output)
    if tells_by_status and story.fits_nowhere:
        raise SystemExit(EXIT_NO)


def _ask(
    load_result: LoadResult, pod: Pod, node: str, source: str, edits: Sequence[Edit], *, fix: bool, problem: str
) -> PodAnswer:
    from podium.insight.loading import node_named
    from podium.insight.pod_answer import pod_answer

    # A misspelled node would otherwise look like one that fits.
    if node:
        node_named(load_result.cluster, node)
    limit = start_time_limit()
    return pod_answer(load_result, pod, node, source, fix=fix, unknown_reason=problem, limit=limit, new_nodes=edits)


def _print(load_result: LoadResult, answer: PodAnswer, leader: Leader, output: str) -> None:
    from podium.cli.cluster_source import warn_of_missing

    warn_of_missing(load_result.missing_kinds())
    story = leader.story
    if output == TEXT:
        from podium.cli.story import last_message, story_head
        from podium.cli.why_table import print_why

        head = [] if story is None or not story.serves_pod else story_head(story, leader.name)
        print_why(answer, head, last_message(story) if head and story is not None else "")
        return
    running = {} if story is None else {"running": leader.as_dict()}
    print_value(answer.as_dict() | running | load_result.basis(), output)


def _answer_cases(name: str, config: Path | None, plugins: tuple[str, ...]) -> None:
    from podium.insight.cases import CaseAnswers

    good = usable(config, plugins, to_run=False)
    answers = CaseAnswers(good.plugins, good.config)
    answer_count = 0
    for number, line in files.lines(name):
        answer = answers.answer_line(line, f"{name}:{number}")
        # One write for each line: a reader of the pipe may stop at any of them.
        with printed_whole():
            write_json_line(answer)
            sys.stdout.buffer.flush()
        answer_count += "error" not in answer
    if not answer_count:
        raise click.ClickException(f"{name}: none of its lines is a scenario that can be answered")

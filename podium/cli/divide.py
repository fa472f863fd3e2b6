"""`podium divide`: to which member clusters does a workload go, and with how many replicas each?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import click

from podium.cli import event_loop, files
from podium.cli.estimator_servers import (
    addresses_by_service,
    addresses_in_karmada,
    ask_servers,
    estimator_options,
    servers_of,
)
from podium.cli.exit_codes import EXIT_NO
from podium.cli.interrupts import exit_at_sigint
from podium.cli.options.karmada import boolean_gates, models_semantics_option
from podium.cli.options.paths import FILE
from podium.cli.output import TEXT, output_option, print_value, write_json_line
from podium.estimator.errors import EstimateError

if TYPE_CHECKING:
    from podium.engine.files import LocatedManifest
    from podium.estimator.client.karmada import KarmadaApi
    from podium.estimator.division.attempts import Options, Question

_INT32_MAX = 2**31 - 1


@click.command()
@click.option(
    "-f", "--binding", "bindings", multiple=True, type=FILE, help="A ResourceBinding, or a workload with its policy."
)
@click.option("--clusters", multiple=True, type=FILE, help="A file or directory of Cluster objects. Repeatable.")
@click.option(
    "--karmada-kubeconfig", type=FILE, help="The kubeconfig of Karmada's API server, for its Cluster objects."
)
@click.option("--karmada-context", help="The context of that kubeconfig.")
@click.option(
    "--member",
    "members",
    multiple=True,
    metavar="NAME=FILE",
    help="The nodes and pods of a member, from which its replicas are estimated. Repeatable.",
)
@click.option("--available", metavar="NAME=NUMBER,...", help="The answers of the members' estimator servers.")
@estimator_options
@click.option("--other-bindings", type=FILE, help="The other ResourceBindings, for the gate WorkloadAffinity.")
@click.option("--cases", type=FILE, help="Answer recorded questions, one JSON object per line.")
@click.option(
    "--feature-gates",
    default="",
    metavar="NAME=BOOL,...",
    help="Karmada's feature gates WorkloadAffinity and MultiplePodTemplatesScheduling.",
)
@click.option(
    "--enable-empty-workload-propagation",
    is_flag=True,
    help="Propagate workloads with 0 replicas, too, as this flag of Karmada's scheduler does.",
)
@models_semantics_option
@click.option(
    "--seed", type=int, help="The seed for what Karmada leaves to chance, such as which of several reasons it gives."
)
@click.option(
    "--explain",
    is_flag=True,
    help="Show for each cluster why it gets this number of replicas, and what would give it more.",
)
@click.option(
    "--exit-code", "tells_by_status", is_flag=True, help=f"Exit with {EXIT_NO} if the workload is not divided."
)
@output_option()
def command(
    bindings: tuple[str, ...],
    clusters: tuple[str, ...],
    karmada_kubeconfig: str | None,
    karmada_context: str | None,
    members: tuple[str, ...],
    available: str | None,
    estimators: tuple[str, ...],
    enable_scheduler_estimator: bool,
    other_bindings: str | None,
    cases: str | None,
    feature_gates: str,
    enable_empty_workload_propagation: bool,
    models_semantics: str,
    seed: int | None,
    explain: bool,
    tells_by_status: bool,
    output: str,
    **estimator_settings: Any,
) -> None:
    """Divide a workload's replicas over member clusters, as Karmada's scheduler does.

    \b
    podium divide -f binding.yaml --clusters clusters.yaml --explain
    podium divide -f web.yaml -f policy.yaml --member east=east.yaml --member west=west.yaml
    podium divide -f binding.yaml --karmada-kubeconfig FILE --enable-scheduler-estimator

    The first takes available replicas from the clusters' resource summaries and models. The second needs no Karmada:
    web.yaml is a workload, policy.yaml its PropagationPolicy, and a member's file has its nodes and pods. The third
    asks a running Karmada's estimator servers.

    \b
    podium divide --cases FILE

    This answers recorded questions to Karmada's scheduler, with the faults of its release 1.18.
    """  # noqa: D301
    click.get_current_context().with_resource(exit_at_sigint())
    from podium.client.credentials import ConnectionConfigError
    from podium.engine.errors import ClusterError
    from podium.estimator.division.attempts import Options
    from podium.estimator.division.fleet import Fleet
    from podium.estimator.division.questions import GATES
    from podium.estimator.general import ModelsSemantics

    karmada = _karmada(karmada_kubeconfig, karmada_context)
    if cases is not None and (bindings or clusters or karmada or members or available or estimators or other_bindings):
        raise click.UsageError("--cases brings its own bindings and clusters")
    if clusters and karmada:
        raise click.UsageError("give Cluster objects either with --clusters or with --karmada-kubeconfig")
    member_files = dict(_pairs("--member", members, "NAME=FILE"))
    if cases is None and not (bindings and (clusters or karmada or member_files)):
        raise click.UsageError(
            "give a binding with -f, and its clusters with --clusters, --karmada-kubeconfig or --member"
        )
    files.demand_one_stdin((*bindings, *clusters, *member_files.values(), other_bindings, cases))
    gates = boolean_gates(feature_gates, GATES)
    try:
        if cases is not None:
            _answer_cases(cases)
            return
        options = Options(propagate_empty=enable_empty_workload_propagation, **gates)
        sources = _Sources(bindings, clusters, member_files, other_bindings, karmada)
        addresses = {name: [address] for name, address in _pairs("--estimator", estimators, "NAME=HOST:PORT")}
        numbers = _available(available)
        # With discovery, clusters whose numbers are given are not asked.
        exclusions = {*numbers, *member_files} if enable_scheduler_estimator else None
        numbers |= _server_answers(sources, addresses, options, estimator_settings, exclusions)
        semantics = ModelsSemantics(models_semantics)
        fleet = Fleet(
            sources.clusters,
            sources.members,
            numbers,
            semantics,
            keeps_partial=bool(estimators) or enable_scheduler_estimator,
        )
        random = Random(seed) if seed is not None else None
        question = fleet.question(sources.bindings, sources.name, sources.neighbours, options, random)
        is_divided = _print_answer(question, explain=explain, output=output)
    except (EstimateError, ClusterError, ConnectionConfigError) as error:
        raise click.ClickException(str(error)) from error
    if tells_by_status and not is_divided:
        raise SystemExit(EXIT_NO)


class _Sources:
    """The objects of all files of a question, each read once."""

    def __init__(
        self,
        bindings: tuple[str, ...],
        clusters: tuple[str, ...],
        members: Mapping[str, str],
        other_bindings: str | None,
        karmada: KarmadaApi | None,
    ) -> None:
        from podium.cli.cluster_source import objects_in

        self.name = ", ".join(bindings)
        self.bindings = objects_in(bindings)
        self.karmada = karmada
        self.clusters = _clusters_in(karmada) if karmada else objects_in(clusters)
        self.members = {name: objects_in([file]) for name, file in members.items()}
        self.neighbours = objects_in([other_bindings]) if other_bindings is not None else []


def _server_answers(
    sources: _Sources,
    addresses: Mapping[str, Sequence[str]],
    options: Options,
    settings: Mapping[str, Any],
    exclusions: Collection[str] | None,
) -> Mapping[str, int]:
    """Ask the servers at these addresses; those of clusters in Pull mode only if they are wanted.

    Args:
        exclusions: ask all clusters but these as well, at the addresses of their Services; None to ask no others.
    """
    from podium.estimator.division.attempts import is_one_cluster_of_components
    from podium.estimator.division.questions import binding_in
    from podium.estimator.manifests import karmada_clusters_in

    if not addresses and exclusions is None:
        return {}
    clusters = karmada_clusters_in(sources.clusters)
    pulling = {cluster.key for cluster in clusters if cluster.spec.sync_mode == "Pull"}
    left_out = pulling if settings["disable_scheduler_estimator_in_pull_mode"] else set()
    addresses = {name: targets for name, targets in addresses.items() if name not in left_out}
    if exclusions is not None:
        without = {*left_out, *exclusions, *addresses}
        names = [item.key for item in clusters if item.key not in without]
        addresses |= (
            addresses_in_karmada(names, sources.karmada, settings)
            if sources.karmada
            else addresses_by_service(names, sources.clusters, settings)
        )
    spec, _ = binding_in(sources.bindings, sources.name)
    in_sets = options.multiple_pod_templates and is_one_cluster_of_components(spec)
    return ask_servers(servers_of(addresses, settings), spec, in_sets=in_sets)


def _karmada(kubeconfig: str | None, context: str | None) -> KarmadaApi | None:
    """Return Karmada's API server; None if no option names it."""
    if not kubeconfig and not context:
        return None
    from podium.estimator.client.karmada import KarmadaApi

    return KarmadaApi(kubeconfig, context)


def _clusters_in(karmada: KarmadaApi) -> list[LocatedManifest]:
    """List the Cluster objects. Raises: ConnectionConfigError, EstimateError."""
    from podium.estimator.client.karmada import list_clusters

    return event_loop.run(lambda: list_clusters(karmada))


def _print_answer(question: Question, *, explain: bool, output: str) -> bool:
    """Print the answer, and return True if the workload was divided."""
    from podium.estimator.division.answers import division_answer

    answer = division_answer(question, explain=explain)
    if output == TEXT:
        from podium.cli.divide_table import print_division

        print_division(answer)
    else:
        print_value(answer, output)
    return bool(answer["reason"] == "Success")


def _pairs(option: str, texts: tuple[str, ...], form: str) -> list[tuple[str, str]]:
    """Parse NAME=VALUE texts. Raises: click.UsageError."""
    pairs: list[tuple[str, str]] = []
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value:
            raise click.UsageError(f"{option}: expected {form}, got {text!r}")
        if name in dict(pairs):
            raise click.UsageError(f"{option}: {name} is given twice")
        pairs.append((name, value))
    return pairs


def _available(text: str | None) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for name, value in _pairs("--available", tuple(filter(None, (text or "").split(","))), "NAME=NUMBER"):
        if not value.isascii() or not value.isdigit() or int(value) > _INT32_MAX:
            raise click.UsageError(f"--available: {name}: expected a number from 0 to {_INT32_MAX}, got {value!r}")
        numbers[name] = int(value)
    return numbers


def _answer_cases(name: str) -> None:
    from podium.estimator.division.cases import answer_case, read_case

    answer_count = 0
    for number, line in files.lines(name):
        label = f"{name}:{number}"
        answer: dict[str, Any]
        try:
            case = read_case(line)
            label = case.id or label
            answer = answer_case(case)
            answer_count += 1
        except EstimateError as error:
            # A case that fails is an answer as well: the next ones are independent of it.
            answer = {"error": str(error)}
        write_json_line({"id": label, **answer})
    if not answer_count:
        raise click.ClickException(f"{name}: none of its lines is a case that can be answered")

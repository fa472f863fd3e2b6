"""`podium estimate`: how many replicas fit into a cluster, and what limits them?"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from podium.cli import files
from podium.cli.amounts import amounts_of
from podium.cli.exit_codes import EXIT_NO
from podium.cli.interrupts import exit_at_sigint
from podium.cli.options.cluster import cluster_options, demand_one_cluster
from podium.cli.options.configuration import estimator_rules, plugin_option
from podium.cli.options.karmada import as_karmada_option, boolean_gates, models_semantics_option
from podium.cli.options.paths import FILE
from podium.cli.options.releases import as_the_cluster, take_release_of
from podium.cli.options.time_limit import note_size, start_time_limit, warn_of_time_limit
from podium.cli.output import TEXT, output_option, print_value, write_json_line
from podium.estimator.errors import EstimateError

if TYPE_CHECKING:
    from podium.engine.files import LocatedManifest
    from podium.engine.manifests import Manifest
    from podium.estimator.accurate import Rules
    from podium.estimator.cluster_objects import Cluster
    from podium.estimator.member import Gates
    from podium.estimator.requirements import ReplicaRequirements
    from podium.objects.core import Pod
    from podium.objects.resource_types import ResourceType

STATUS_GATES = {"CustomizedClusterResourceModeling": "customized_cluster_resource_modeling"}
"""The gates of Karmada's status controller."""
_GATE_NAMES = {
    "ResourceQuotaEstimate": "resource_quota_estimate",
    "SchedulingOvercommitProtection": "scheduling_overcommit_protection",
}


@click.command()
@cluster_options
@click.option("--cases", type=FILE, help="Answer recorded cases, one JSON object per line.")
@click.option("--workload", type=FILE, help="A pod, or a workload with a pod template, that defines a replica.")
@click.option("--requests", metavar="NAME=AMOUNT,...", help="The requests of a replica, such as cpu=500m,memory=1Gi.")
@click.option(
    "-n", "--namespace", help="The namespace of --requests, for quotas.  [default: that of the context, or default]"
)
@click.option(
    "--cluster-object",
    "cluster_objects",
    multiple=True,
    type=FILE,
    help="Karmada's Cluster object; adds the general estimate. Several: only general estimates. Repeatable.",
)
@models_semantics_option
@as_karmada_option
@click.option(
    "--feature-gates", default="", metavar="NAME=BOOL,...", help="Karmada's feature gate ResourceQuotaEstimate."
)
@click.option(
    "--mode",
    type=click.Choice(["parity", "accurate"]),
    default="parity",
    show_default=True,
    help="Karmada's own number, or the number that podium would bind.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="A KubeSchedulerConfiguration, whose first profile decides in accurate mode.",
)
@plugin_option
@as_the_cluster
@click.option("--explain", is_flag=True, help="Show for each node how many replicas fit and what limits them.")
@click.option("--exit-code", "tells_by_status", is_flag=True, help=f"Exit with {EXIT_NO} if no replica fits.")
@output_option()
def command(
    clusters: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    cases: str | None,
    workload: str | None,
    requests: str | None,
    namespace: str | None,
    cluster_objects: tuple[str, ...],
    models_semantics: str,
    as_karmada: str | None,
    feature_gates: str,
    mode: str,
    config: Path | None,
    plugins: tuple[str, ...],
    explain: bool,
    tells_by_status: bool,
    output: str,
) -> None:
    """Estimate how many replicas fit into a cluster, as Karmada's replica estimators do.

    \b
    podium estimate --workload deployment.yaml --explain
    kubectl get nodes,pods,quota -A -o yaml | podium estimate -f - --requests cpu=500m,memory=1Gi

    Without --workload and --requests a replica takes only a pod slot.

    Several Cluster objects are answered one by one, from their summaries and models alone:

    \b
    podium estimate --cluster-object clusters.yaml --requests cpu=3,memory=20Gi

    In accurate mode the scheduler's filters decide. Pending pods are placed first, and no pod is preempted. With
    --config they are those of its first profile, whatever scheduler the pods name.

    \b
    podium estimate --cases FILE

    This answers recorded cases: the objects of a member cluster, and a question in the types of work.karmada.io.
    """  # noqa: D301
    click.get_current_context().with_resource(exit_at_sigint())
    from podium.cli.cluster_source import warn_of_missing
    from podium.engine.errors import ClusterError
    from podium.estimator.answers import accurate_answer, kinds_read, missing_quotas, parity_answer

    _demand_compatible(click.get_current_context().params)
    demand_one_cluster(clusters, kubeconfig, context)
    files.demand_one_stdin((*clusters, workload, *cluster_objects, config))
    rules = _rules(clusters, (kubeconfig, context), config, plugins, mode)
    gates = gates_of(feature_gates)
    try:
        if cases is not None:
            _answer_cases(cases, gates)
            return
        requirements, replica, other_objects = _question(
            workload, requests, namespace or _own_namespace(clusters, kubeconfig, context)
        )
        karmada_clusters = _karmada_clusters(cluster_objects)
        if len(karmada_clusters) > 1:
            if clusters or kubeconfig or context or explain or mode == "accurate" or as_karmada:
                raise click.UsageError("nodes of a member need a single Cluster object")
            _print_general_answers(karmada_clusters, requirements, models_semantics, output)
            return
        kinds = kinds_read(gates, is_accurate=mode == "accurate")
        manifests = _manifests(clusters, kubeconfig, context, kinds)
        limit = start_time_limit()
        if mode == "accurate":
            # A live cluster was asked for all kinds, so none can be missing.
            answer, missing = accurate_answer(
                [*manifests, *other_objects], replica, () if clusters else kinds, limit, rules
            )
            warn_of_missing(missing)
        else:
            warn_of_missing(missing_quotas(manifests, gates) if clusters else ())
            answer = parity_answer(manifests, requirements, gates, explain=explain)
        limit.note(lambda: f"{answer['replicas']:,} replicas fit")
        for cluster in karmada_clusters:
            answer |= _general(cluster, manifests, requirements, models_semantics, as_karmada, answer["replicas"])
    except (EstimateError, ClusterError) as error:
        raise click.ClickException(str(error)) from error
    warn_of_time_limit(output)
    if output == TEXT:
        from podium.cli.estimate_table import print_answer

        print_answer(answer)
    else:
        print_value(answer, output)
    if tells_by_status and not answer["replicas"]:
        raise SystemExit(EXIT_NO)


def _demand_compatible(options: Mapping[str, Any]) -> None:
    """Refuse options that contradict each other, and those that would have no effect."""
    if options["workload"] is not None and options["requests"] is not None:
        raise click.UsageError("give either --workload or --requests")
    brought = ("clusters", "kubeconfig", "context", "workload", "requests", "cluster_objects")
    if options["cases"] is not None and any(options[name] for name in brought):
        raise click.UsageError("--cases brings its own clusters and questions")
    # Accurate estimates have no single number for each node, and no gates of upstream's server.
    has_parity_options = options["cases"] is not None or options["explain"] or options["feature_gates"]
    if options["mode"] == "accurate" and has_parity_options:
        raise click.UsageError("--cases, --explain and --feature-gates go with --mode parity")
    has_models_options = options["as_karmada"] is not None or options["models_semantics"] != "current"
    if has_models_options and not options["cluster_objects"]:
        raise click.UsageError("--models-semantics and --as-karmada go with --cluster-object")


def _rules(
    clusters: tuple[str, ...],
    live: tuple[str | None, str | None],
    config: Path | None,
    plugins: tuple[str, ...],
    mode: str,
) -> Rules | None:
    """Return what decides on accurate estimates, by the running cluster's release; None in parity mode."""
    if mode == "accurate":
        take_release_of(clusters, *live)
    return estimator_rules(config, plugins, mode)


def gates_of(text: str, other_gates: Mapping[str, str] = MappingProxyType({})) -> Gates:
    """Parse `--feature-gates`, which takes the gates of Karmada's estimator server.

    Args:
        other_gates: more gates, with their fields of `Gates`.

    Raises:
        click.UsageError: a gate is unknown, or neither true nor false.
    """
    from podium.estimator.member import Gates

    return Gates(**boolean_gates(text, {**_GATE_NAMES, **other_gates}))


def _own_namespace(clusters: Sequence[str], kubeconfig: str | None, context: str | None) -> str:
    if clusters:
        return "default"
    from podium.client.credentials import own_namespace

    return own_namespace(kubeconfig, context)


def _question(
    workload: str | None, requests: str | None, namespace: str
) -> tuple[ReplicaRequirements | None, Pod | LocatedManifest, Sequence[Manifest]]:
    """Read the requirements of a replica, its pod, and the other objects of its file."""
    from podium.cli.cluster_source import objects_in, warn_of_left_out
    from podium.estimator.accurate import replica_of
    from podium.estimator.manifests import workload_in
    from podium.estimator.requirements import ReplicaRequirements
    from podium.estimator.template import requirements_of
    from podium.objects.errors import FieldError

    if workload is not None:
        items = objects_in([workload])
        template = workload_in(items, workload)
        warn_of_left_out(items, workload)
        try:
            return requirements_of(template.pod, template.priority_class_name), template.manifest, template.others
        except FieldError as error:
            raise EstimateError(f"{workload}: {error}") from error
    if requests is None:
        return None, replica_of(ReplicaRequirements(namespace=namespace)), ()
    try:
        requirements = ReplicaRequirements(resource_request={**amounts_of(requests)}, namespace=namespace)
    except FieldError as error:
        raise click.UsageError(f"--requests: {error}") from error
    return requirements, replica_of(requirements), ()


def _manifests(
    clusters: tuple[str, ...], kubeconfig: str | None, context: str | None, kinds: Sequence[ResourceType[Any]]
) -> list[Manifest]:
    from podium.cli.cluster_source import objects_in, objects_of_cluster
    from podium.estimator.manifests import admit_manifests

    manifests = admit_manifests(objects_in(clusters) if clusters else objects_of_cluster(kubeconfig, context, kinds))
    counts = Counter(str(manifest.get("kind")) for manifest in manifests)
    # 0 replicas would look like a full cluster.
    if not counts["Node"]:
        raise EstimateError("no nodes: nothing can be estimated")
    note_size(counts["Node"], counts["Pod"])
    return manifests


def _karmada_clusters(names: Sequence[str]) -> list[Cluster]:
    """Read the Cluster objects. Each file holds at least one, and none holds that of another again."""
    from podium.cli.cluster_source import objects_in
    from podium.estimator.manifests import karmada_clusters_in

    sources = []
    for name in names:
        objects = objects_in([name])
        if not karmada_clusters_in(objects):
            raise EstimateError(f"{name}: expected a Cluster object of Karmada, found none")
        sources += objects
    return karmada_clusters_in(sources)


def _print_general_answers(
    clusters: Sequence[Cluster], requirements: ReplicaRequirements | None, models_semantics: str, output: str
) -> None:
    from podium.estimator.answers import general_answers
    from podium.estimator.general import ModelsSemantics

    answer = general_answers(clusters, requirements, ModelsSemantics(models_semantics))
    if output == TEXT:
        from podium.cli.estimate_table import print_general_answers

        print_general_answers(answer)
    else:
        print_value(answer, output)


def _general(
    cluster: Cluster,
    manifests: Sequence[Manifest],
    requirements: ReplicaRequirements | None,
    models_semantics: str,
    as_karmada: str | None,
    replicas: int,
) -> dict[str, Any]:
    from podium.estimator.answers import general_answer
    from podium.estimator.general import ModelsSemantics
    from podium.objects.errors import FieldError

    semantics, has_fault = ModelsSemantics(models_semantics), as_karmada is not None
    try:
        return general_answer(cluster, manifests, requirements, semantics, replicas, skips_after_full_node=has_fault)
    except (EstimateError, FieldError) as error:
        raise EstimateError(f"cluster {cluster.key}: {error}") from error


def _answer_cases(name: str, gates: Gates) -> None:
    from podium.engine.errors import ManifestError
    from podium.estimator.cases import answer_case, read_case
    from podium.estimator.manifests import member_of

    answer_count = 0
    for number, line in files.lines(name):
        label = f"{name}:{number}"
        try:
            case = read_case(line)
            label = case.id or label
            answer = answer_case(case, member_of(case.objects, gates, case.id), time.time())
        except (EstimateError, ManifestError) as error:
            # A case that fails is an answer as well: the next ones are independent of it.
            answer = {"error": str(error)}
        write_json_line({"id": label, **answer})
        answer_count += "error" not in answer
    if not answer_count:
        raise click.ClickException(f"{name}: none of its lines is a case that can be answered")

"""`podium estimate`: how many replicas fit into a cluster, and what limits them?"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import orjson

from podium.cli import files
from podium.cli.amounts import amounts_of
from podium.cli.interrupts import exit_at_sigint
from podium.cli.output import EXIT_FITS_NOWHERE, TEXT, output_option, print_value
from podium.estimator.errors import EstimateError

if TYPE_CHECKING:
    from podium.engine.manifests import Manifest
    from podium.estimator.cluster_objects import Cluster
    from podium.estimator.member import Gates
    from podium.estimator.requirements import ReplicaRequirements
    from podium.objects.core import Pod
    from podium.objects.resource_types import ResourceType

_GATE_NAMES = {
    "ResourceQuotaEstimate": "resource_quota_estimate",
    "SchedulingOvercommitProtection": "scheduling_overcommit_protection",
}


@click.command()
@click.option(
    "-f", "--cluster", "clusters", multiple=True, metavar="FILE", help="The objects of a cluster. Repeatable."
)
@click.option("--kubeconfig", help="The kubeconfig of a running cluster. By default the same as kubectl's.")
@click.option("--context", help="The context of the kubeconfig.")
@click.option("--cases", metavar="FILE", help="Answer recorded cases, one JSON object per line.")
@click.option("--workload", metavar="FILE", help="A pod, or a workload with a pod template, that defines a replica.")
@click.option("--requests", metavar="NAME=AMOUNT,...", help="The requests of a replica, such as cpu=500m,memory=1Gi.")
@click.option(
    "-n", "--namespace", default="default", show_default=True, help="The namespace of --requests, for quotas."
)
@click.option("--cluster-object", metavar="FILE", help="A Karmada Cluster object; adds the general estimate.")
@click.option(
    "--models-semantics",
    type=click.Choice(["current", "v1.17", "v1.11"]),
    default="current",
    show_default=True,
    help="Interpret resource models as Karmada did up to this release.",
)
@click.option("--feature-gates", default="", metavar="NAME=BOOL,...", help="ResourceQuotaEstimate.")
@click.option(
    "--mode",
    type=click.Choice(["parity", "accurate"]),
    default="parity",
    show_default=True,
    help="Karmada's own number, or the number that podium would bind.",
)
@click.option("--explain", is_flag=True, help="Show for each node how many replicas fit and what limits them.")
@click.option("--exit-code", "tells_by_status", is_flag=True, help=f"Exit with {EXIT_FITS_NOWHERE} if no replica fits.")
@output_option()
def command(
    clusters: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    cases: str | None,
    workload: str | None,
    requests: str | None,
    namespace: str,
    cluster_object: str | None,
    models_semantics: str,
    feature_gates: str,
    mode: str,
    explain: bool,
    tells_by_status: bool,
    output: str,
) -> None:
    """Estimate how many replicas fit into a cluster, as Karmada's replica estimators do.

    \b
    podium estimate --workload deployment.yaml --explain
    kubectl get nodes,pods,quota -A -o yaml | podium estimate -f - --requests cpu=500m,memory=1Gi

    Without --workload and --requests a replica takes only a pod slot.

    In accurate mode the scheduler's filters decide. Pending pods are placed first, and no pod is preempted.

    \b
    podium estimate --cases FILE

    This answers recorded cases: the objects of a member cluster, and a question in the types of work.karmada.io.
    """  # noqa: D301
    click.get_current_context().with_resource(exit_at_sigint())
    from podium.engine.errors import ClusterError

    if workload is not None and requests is not None:
        raise click.UsageError("give either --workload or --requests")
    if cases is not None and (clusters or kubeconfig or context or workload or requests):
        raise click.UsageError("--cases brings its own clusters and questions")
    if clusters and (kubeconfig or context):
        raise click.UsageError("give either files with -f, or a running cluster with --kubeconfig and --context")
    if mode == "accurate" and (cases is not None or explain or feature_gates):
        raise click.UsageError("--cases, --explain and --feature-gates go with --mode parity")
    files.demand_one_stdin((*clusters, workload, cluster_object))
    gates = gates_of(feature_gates)
    try:
        if cases is not None:
            _answer_cases(cases, gates)
            return
        wanted, replica = _question(workload, requests, namespace)
        kinds = _kinds(mode, gates)
        manifests = _manifests(clusters, kubeconfig, context, kinds)
        if mode == "accurate":
            answer = _accurate(manifests, replica, () if clusters else kinds)
        else:
            _warn_without_quotas(manifests, gates, is_whole=not clusters)
            answer = _parity(manifests, wanted, gates, explain=explain)
        if cluster_object is not None:
            answer |= _general(cluster_object, manifests, wanted, models_semantics, answer["replicas"])
    except (EstimateError, ClusterError) as error:
        raise click.ClickException(str(error)) from error
    if output == TEXT:
        from podium.cli.estimate_table import print_answer

        print_answer(answer)
    else:
        print_value(answer, output)
    if tells_by_status and not answer["replicas"]:
        raise SystemExit(EXIT_FITS_NOWHERE)


def gates_of(text: str) -> Gates:
    """Parse `--feature-gates`, which takes the gates of Karmada's estimator server.

    Raises:
        click.UsageError: a gate is unknown, or neither true nor false.
    """
    from podium.estimator.member import Gates

    chosen = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in _GATE_NAMES:
            raise click.UsageError(f"--feature-gates: unknown gate {name!r}; there are {', '.join(_GATE_NAMES)}")
        if value.lower() not in ("true", "false"):
            raise click.UsageError(f"--feature-gates: {name}: expected true or false, got {value!r}")
        chosen[_GATE_NAMES[name]] = value.lower() == "true"
    return Gates(**chosen)


def _question(workload: str | None, requests: str | None, namespace: str) -> tuple[ReplicaRequirements | None, Pod]:
    """The requirements of a replica, and a pod that the replica would be."""
    from podium.cli.estimate_source import workload_in
    from podium.estimator.accurate import replica_of
    from podium.estimator.requirements import ReplicaRequirements
    from podium.estimator.template import requirements_of
    from podium.objects.errors import FieldError

    if workload is not None:
        found = workload_in(workload)
        try:
            return requirements_of(found.pod, found.priority_class_name), found.pod
        except FieldError as error:
            raise EstimateError(f"{workload}: {error}") from error
    if requests is None:
        return None, replica_of(ReplicaRequirements(namespace=namespace))
    try:
        wanted = ReplicaRequirements(resource_request={**amounts_of(requests)}, namespace=namespace)
    except FieldError as error:
        raise click.UsageError(f"--requests: {error}") from error
    return wanted, replica_of(wanted)


def _kinds(mode: str, gates: Gates) -> Sequence[ResourceType[Any]]:
    """The kinds to list in a running cluster."""
    from podium.estimator.quota import RESOURCE_QUOTAS
    from podium.objects import resource_types

    if mode == "accurate":
        return resource_types.ALL
    quotas = (RESOURCE_QUOTAS,) if gates.resource_quota_estimate else ()
    return resource_types.NODES, resource_types.PODS, *quotas


def _manifests(
    clusters: tuple[str, ...], kubeconfig: str | None, context: str | None, kinds: Sequence[ResourceType[Any]]
) -> list[Manifest]:
    from podium.cli.cluster_source import objects_in, objects_of_cluster
    from podium.cli.estimate_source import admitted

    manifests = admitted(objects_in(clusters) if clusters else objects_of_cluster(kubeconfig, context, kinds))
    if not any(each.get("kind") == "Node" for each in manifests):
        raise EstimateError("no nodes: nothing can be estimated")
    return manifests


def _warn_without_quotas(manifests: Sequence[Manifest], gates: Gates, *, is_whole: bool) -> None:
    from podium.cli.cluster_source import warn_of_missing

    if gates.resource_quota_estimate and not is_whole:
        warn_of_missing([] if any(each.get("kind") == "ResourceQuota" for each in manifests) else ["resourcequotas"])


def _parity(
    manifests: Sequence[Manifest], wanted: ReplicaRequirements | None, gates: Gates, *, explain: bool
) -> dict[str, Any]:
    from podium.cli.estimate_source import member_of

    member = member_of(manifests, gates)
    answer: dict[str, Any] = {"replicas": member.max_available_replicas(wanted)}
    if explain:
        answer["nodes"] = [
            {"node": each.node, "replicas": each.replicas, "limit": each.limit}
            for each in member.explain_replicas(wanted)
        ]
    return answer


def _accurate(manifests: Sequence[Manifest], replica: Pod, whole: Sequence[ResourceType[Any]]) -> dict[str, Any]:
    from podium.cli.cluster_source import warn_of_missing
    from podium.cli.estimate_source import cluster_for
    from podium.engine.store import ObjectStore
    from podium.estimator.accurate import accurate_replicas

    store = ObjectStore.of(manifests, whole)
    cluster, waiting = cluster_for(store, replica)
    replicas = accurate_replicas(cluster.engine, cluster.framework_for(replica), replica, waiting)
    warn_of_missing([resource.plural for resource in store.missed()])
    return {"replicas": replicas}


def _general(
    cluster_object: str,
    manifests: Sequence[Manifest],
    wanted: ReplicaRequirements | None,
    models_semantics: str,
    replicas: int,
) -> dict[str, Any]:
    """The general estimate, Karmada's combination of both estimates, and the present grades of the nodes."""
    from podium.cli.estimate_source import member_of
    from podium.estimator.general import ModelsSemantics, general_replicas
    from podium.estimator.member import Gates
    from podium.estimator.merge import merged
    from podium.estimator.requirements import MAX_INT32
    from podium.estimator.resource_models import default_models, fault_of, grade_nodes
    from podium.objects.errors import FieldError

    cluster = _cluster_in(cluster_object)
    models = cluster.spec.resource_models
    try:
        if (fault := fault_of(models)) is not None:
            raise EstimateError(f"{cluster_object}: spec.resourceModels: {fault}")
        general = general_replicas(cluster, wanted, semantics=ModelsSemantics(models_semantics))
        both = merged([cluster.key], [{cluster.key: replicas}, {cluster.key: general}], MAX_INT32)
        answer: dict[str, Any] = {"general_replicas": general, "merged_replicas": both[cluster.key]}
        graded = grade_nodes(member_of(manifests, Gates()).snapshot(), models or default_models())
        answer["allocatable_modelings"] = [{"grade": each.grade, "count": each.count} for each in graded]
        return answer
    except FieldError as error:
        raise EstimateError(f"{cluster_object}: {error}") from error


def _cluster_in(name: str) -> Cluster:
    import msgspec

    from podium.engine.files import read_objects
    from podium.estimator.cluster_objects import Cluster
    from podium.estimator.resource_models import standardised

    found = [each.manifest for each in read_objects(files.content(name), name) if each.manifest["kind"] == "Cluster"]
    if len(found) != 1:
        raise EstimateError(f"{name}: expected one Cluster, found {len(found)}")
    try:
        cluster = msgspec.convert(found[0], Cluster)
    except msgspec.ValidationError as error:
        raise EstimateError(f"{name}: {error}") from error
    # Karmada's webhook standardises the models before it validates them.
    models = standardised(cluster.spec.resource_models)
    return msgspec.structs.replace(cluster, spec=msgspec.structs.replace(cluster.spec, resource_models=models))


def _answer_cases(name: str, gates: Gates) -> None:
    from podium.cli.estimate_source import member_of
    from podium.engine.errors import ManifestError
    from podium.estimator.cases import answer_case, read_case

    out, answered = sys.stdout.buffer, 0
    for number, line in files.lines(name):
        label = f"{name}:{number}"
        try:
            case = read_case(line)
            label = case.id or label
            answer = answer_case(case, member_of(case.objects, gates, case.id), time.time())
        except (EstimateError, ManifestError) as error:
            answer = {"error": str(error)}
        out.write(orjson.dumps({"id": label, **answer}) + b"\n")
        answered += "error" not in answer
    if not answered:
        raise click.ClickException(f"{name}: no line of it is a case that can be answered")

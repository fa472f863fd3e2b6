"""`podium estimate`: how many replicas has a cluster room for, and what limits them?"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click
import orjson

from podium.cli import files
from podium.estimator.errors import EstimateError

if TYPE_CHECKING:
    from podium.estimator.cluster_objects import Cluster
    from podium.estimator.member import Gates, MemberCluster
    from podium.estimator.requirements import ReplicaRequirements

_GATE_NAMES = {
    "ResourceQuotaEstimate": "resource_quota_estimate",
    "SchedulingOvercommitProtection": "scheduling_overcommit_protection",
}


@click.command()
@click.option("-f", "--cluster", "clusters", multiple=True, metavar="FILE", help="Objects of a cluster. Repeatable.")
@click.option("--kubeconfig", help="Ask a running cluster; by default with the usual kubeconfig.")
@click.option("--context", help="The context of the kubeconfig.")
@click.option("--cases", metavar="FILE", help="Answer recorded cases, one JSON object a line.")
@click.option("--workload", metavar="FILE", help="A pod, or something with a pod template: what replicas need.")
@click.option("--requests", metavar="NAME=AMOUNT,...", help="What a replica requests, such as cpu=500m,memory=1Gi.")
@click.option("-n", "--namespace", default="default", show_default=True, help="Whose quotas bound --requests.")
@click.option("--cluster-object", metavar="FILE", help="Karmada's Cluster: answer as its general estimator, too.")
@click.option(
    "--models-semantics",
    type=click.Choice(["current", "v1.17", "v1.11"]),
    default="current",
    show_default=True,
    help="The last Karmada release whose reading of resource models counts.",
)
@click.option("--feature-gates", default="", metavar="NAME=BOOL,...", help="ResourceQuotaEstimate.")
@click.option("--explain", is_flag=True, help="Show for each node how many fit, and what limits them.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", help="How to answer.")
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
    explain: bool,
    output: str,
) -> None:
    """Say how many replicas a cluster has room for, as Karmada's replica estimators do.

    \b
    podium estimate --workload deployment.yaml --explain
    kubectl get nodes,pods,quota -A -o yaml | podium estimate -f - --requests cpu=500m,memory=1Gi

    Without --workload and --requests a replica takes no more than a pod's place.

    \b
    podium estimate --cases FILE

    answers recorded cases: a member cluster's objects, and a question in the shapes of work.karmada.io.
    """  # noqa: D301
    from podium.whatif import WhatIfError

    if workload is not None and requests is not None:
        raise click.UsageError("give either --workload or --requests")
    if cases is not None and (clusters or kubeconfig or context or workload or requests):
        raise click.UsageError("--cases brings its own clusters and questions")
    if clusters and (kubeconfig or context):
        raise click.UsageError("give either files with -f, or a running cluster with --kubeconfig and --context")
    gates = gates_of(feature_gates)
    try:
        if cases is not None:
            _answer_cases(cases, gates)
            return
        wanted = _requirements(workload, requests, namespace)
        member = _member(clusters, kubeconfig, context, gates)
        answer = _answer(member, wanted, cluster_object, models_semantics, explain=explain)
    except (EstimateError, WhatIfError) as error:
        raise click.ClickException(str(error)) from error
    if output == "json":
        click.echo(orjson.dumps(answer))
    else:
        from podium.cli.estimate_table import print_answer

        print_answer(answer)


def gates_of(text: str) -> Gates:
    """What `--feature-gates` asks for, of the gates that Karmada's estimator server has.

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


def _requirements(workload: str | None, requests: str | None, namespace: str) -> ReplicaRequirements | None:
    from podium.cli.estimate_source import workload_in
    from podium.estimator.requirements import ReplicaRequirements
    from podium.estimator.template import requirements_of
    from podium.kube.errors import FieldError

    if workload is not None:
        found = workload_in(workload)
        try:
            return requirements_of(found.pod, found.priority_class_name)
        except FieldError as error:
            raise EstimateError(f"{workload}: {error}") from error
    if requests is None:
        return None
    amounts = dict(part.partition("=")[::2] for part in requests.split(",") if part)
    if empty := [name for name, amount in amounts.items() if not amount]:
        raise click.UsageError(f"--requests: {empty[0]}: expected NAME=AMOUNT")
    return ReplicaRequirements(resource_request={**amounts}, namespace=namespace)


def _member(clusters: tuple[str, ...], kubeconfig: str | None, context: str | None, gates: Gates) -> MemberCluster:
    from podium.cli.estimate_source import manifests_in, manifests_of_cluster, member_of
    from podium.estimator.quota import RESOURCE_QUOTAS
    from podium.kube.resource_types import NODES, PODS

    needed = (NODES, PODS, *((RESOURCE_QUOTAS,) if gates.resource_quota_estimate else ()))
    manifests = manifests_in(clusters) if clusters else manifests_of_cluster(kubeconfig, context, needed)
    member = member_of(manifests, gates)
    if not len(member.snapshot()):
        raise EstimateError("no nodes: nothing can be estimated")
    return member


def _answer(
    member: MemberCluster,
    wanted: ReplicaRequirements | None,
    cluster_object: str | None,
    models_semantics: str,
    *,
    explain: bool,
) -> dict[str, Any]:
    from podium.estimator.general import ModelsSemantics, general_replicas

    answer: dict[str, Any] = {"replicas": member.max_available_replicas(wanted)}
    if cluster_object is not None:
        cluster = _cluster_in(cluster_object)
        answer["general_replicas"] = general_replicas(cluster, wanted, semantics=ModelsSemantics(models_semantics))
    if explain:
        answer["nodes"] = [
            {"node": each.node, "replicas": each.replicas, "limit": each.limit}
            for each in member.explain_replicas(wanted)
        ]
    return answer


def _cluster_in(name: str) -> Cluster:
    import msgspec

    from podium.estimator.cluster_objects import Cluster
    from podium.whatif.files import read_objects

    found = [each.manifest for each in read_objects(files.content(name), name) if each.manifest["kind"] == "Cluster"]
    if len(found) != 1:
        raise EstimateError(f"{name}: expected one Cluster, found {len(found)}")
    try:
        return msgspec.convert(found[0], Cluster)
    except msgspec.ValidationError as error:
        raise EstimateError(f"{name}: {error}") from error


def _answer_cases(name: str, gates: Gates) -> None:
    from podium.cli.estimate_source import member_of
    from podium.estimator.cases import answer_case, read_case
    from podium.whatif import ManifestError

    out = sys.stdout.buffer
    with files.reported(name), files.opened(name) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            label = f"{name}:{number}"
            try:
                case = read_case(line)
                label = case.id or label
                answer = answer_case(case, member_of(case.objects, gates, case.id), time.time())
            except (EstimateError, ManifestError) as error:
                answer = {"error": str(error)}
            out.write(orjson.dumps({"id": label, **answer}) + b"\n")

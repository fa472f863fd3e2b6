"""Clusters, bindings and divisions in few words."""

from __future__ import annotations

from msgspec import convert

from podium.estimator.cluster_objects import Cluster
from podium.estimator.division.attempts import Options, Question, divide
from podium.estimator.division.availability import GivenAnswers
from podium.estimator.division.bindings import BindingSpec, BindingStatus

DYNAMIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
DUPLICATED = {"replicaSchedulingType": "Duplicated"}
NO_OPTIONS = Options()
APIS = [{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}]


def static(**weights):
    """Divide by these weights of clusters."""
    rules = [
        {"targetCluster": {"clusterNames": [name.replace("_", "-")]}, "weight": weight}
        for name, weight in weights.items()
    ]
    return {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": rules},
    }


def cluster(name, labels=None, apis=APIS, **spec):
    return convert(
        {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": {"apiEnablements": apis}}, Cluster
    )


def binding(replicas, scheduling=None, had=None, *, uid="", placement=None, **fields):
    """A binding's spec; `had` is the previous result."""
    return convert(
        {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web", "uid": uid},
            "replicas": replicas,
            "clusters": [{"name": name, "replicas": count} for name, count in (had or {}).items()],
            "placement": {**({"replicaScheduling": scheduling} if scheduling else {}), **(placement or {})},
            **fields,
        },
        BindingSpec,
    )


def question(spec, available=None, clusters=None, *, status=None, options=NO_OPTIONS, random=None, neighbours=()):
    """The question with these available replicas; without them no estimator is asked."""
    clusters = [cluster(name) for name in available] if clusters is None else clusters
    estimators = {} if available is None else {"scheduler-estimator": GivenAnswers(available)}
    return Question(clusters, spec, convert(status or {}, BindingStatus), estimators, neighbours, options, random)


def shares(outcome):
    """The replicas by cluster, in order, or the message of the failure."""
    if outcome.reason != "Success":
        return outcome.message
    return {target.name: target.replicas for target in outcome.clusters}


def divide_into(*arguments, **fields):
    return shares(divide(question(*arguments, **fields)))

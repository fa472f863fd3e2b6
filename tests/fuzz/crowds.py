"""Pods with as many small demands of one kind as an object can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st

from tests.fuzz.mutations import OBJECT_BYTES_MAX, Json, encode

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_COUNTS: Final = (100, 1_000, 10_000, 100_000)


def _labels(numbers: Iterable[int]) -> Json:
    return {f"k{number}": "v" for number in numbers}


def _expressions(numbers: Iterable[int]) -> list[Json]:
    return [{"key": f"k{number}", "operator": "Exists"} for number in numbers]


def _pod_term(number: int) -> Json:
    return {"topologyKey": f"z{number % 7}", "labelSelector": {"matchLabels": {"app": f"v{number}"}}}


def _near(term: Json) -> Json:
    return {"affinity": {"podAffinity": {_REQUIRED: [{"topologyKey": "zone", "labelSelector": {}, **term}]}}}


def _apart(terms: list[Json]) -> Json:
    return {"affinity": {"podAntiAffinity": {_REQUIRED: terms}}}


def _on_nodes(terms: list[Json]) -> Json:
    return {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}}


CROWDS: Final[dict[str, Callable[[range], Json]]] = {
    "labels of nodeSelector": lambda numbers: {"nodeSelector": _labels(numbers)},
    "node expressions": lambda numbers: _on_nodes([{"matchExpressions": _expressions(numbers)}]),
    "node terms": lambda numbers: _on_nodes(
        [{"matchExpressions": [expression]} for expression in _expressions(numbers)]
    ),
    "node fields": lambda numbers: _on_nodes(
        [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"n{number}"]} for number in numbers]}]
    ),
    "preferred node terms": lambda numbers: {
        "affinity": {
            "nodeAffinity": {
                _PREFERRED: [
                    {"weight": 1, "preference": {"matchExpressions": [expression]}}
                    for expression in _expressions(numbers)
                ]
            }
        }
    },
    "pod expressions": lambda numbers: _near({"labelSelector": {"matchExpressions": _expressions(numbers)}}),
    "pod labels": lambda numbers: _near({"labelSelector": {"matchLabels": _labels(numbers)}}),
    "values": lambda numbers: _near(
        {"labelSelector": {"matchExpressions": [{"key": "k", "operator": "In", "values": [f"v{n}" for n in numbers]}]}}
    ),
    "namespaces": lambda numbers: _near({"namespaces": [f"n{number}" for number in numbers]}),
    "pod terms": lambda numbers: {"affinity": {"podAffinity": {_REQUIRED: [_pod_term(number) for number in numbers]}}},
    "preferred pod terms": lambda numbers: {
        "affinity": {"podAntiAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _pod_term(n)} for n in numbers]}}
    },
    "anti-affinity terms": lambda numbers: _apart([_pod_term(number) for number in numbers]),
    "anti-affinity expressions": lambda numbers: _apart(
        [
            {"topologyKey": "zone", "labelSelector": {"matchExpressions": [expression]}}
            for expression in _expressions(numbers)
        ]
    ),
    "topology keys": lambda numbers: _apart([{"topologyKey": f"z{n}", "labelSelector": {}} for n in numbers]),
    "spread constraints": lambda numbers: {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **_pod_term(number)} for number in numbers
        ]
    },
    "tolerations": lambda numbers: {"tolerations": [{"key": f"k{number}", "operator": "Exists"} for number in numbers]},
    "containers": lambda numbers: {
        "containers": [{"name": f"c{n}", "resources": {"requests": {"cpu": f"{n}m"}}} for n in numbers]
    },
    "resources": lambda numbers: {
        "containers": [{"name": "main", "resources": {"requests": {f"example.com/r{n}": "1" for n in numbers}}}]
    },
    "ports": lambda numbers: {
        "containers": [{"name": "main", "ports": [{"hostPort": n % 60_000 + 1, "containerPort": 1} for n in numbers]}]
    },
    "host addresses": lambda numbers: {
        "containers": [{"name": "main", "ports": [{"hostPort": 80, "hostIP": f"10.0.0.{n}"} for n in numbers]}]
    },
    "claims": lambda numbers: {
        "volumes": [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": "data"}} for n in numbers]
    },
    "disks": lambda numbers: {
        "volumes": [{"name": f"v{n}", "gcePersistentDisk": {"pdName": f"d{n}"}} for n in numbers]
    },
    "gates": lambda numbers: {"schedulingGates": [{"name": f"g{number}"} for number in numbers]},
}


@dataclass(frozen=True)
class Labelled:
    """A mutation of any object: so many labels."""

    count: int

    def __call__(self, tree: Json) -> Json:
        if isinstance(tree, dict) and isinstance(tree.get("metadata"), dict):
            tree["metadata"]["labels"] = {"app": "web", **_labels(range(self.count))}
        return tree


@dataclass(frozen=True)
class Crowded:
    """A mutation of a pod: one of `CROWDS`, up to a number of them or to what an object can hold."""

    name: str
    count: int

    def __call__(self, tree: Json) -> Json:
        if isinstance(tree, dict) and isinstance(tree.get("spec"), dict):
            make_crowd = CROWDS[self.name]
            size = len(encode(make_crowd(range(10_000)))) / 10_000
            room = OBJECT_BYTES_MAX - len(encode(tree)) - 1_000
            tree["spec"] |= make_crowd(range(min(self.count, int(room / size / 1.1))))
        return tree


def crowds() -> st.SearchStrategy[Crowded]:
    """One of them."""
    return st.builds(Crowded, st.sampled_from(tuple(CROWDS)), st.sampled_from(_COUNTS))

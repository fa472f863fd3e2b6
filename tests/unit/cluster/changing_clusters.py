"""Random histories of a cluster's pods, for properties that hold after every step of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from podium.cluster import Snapshot
from podium.cluster.pod_usage import PodUsage
from podium.objects.core import Node, Pod
from podium.objects.meta import ObjectMeta
from tests.builders import pod

NODES = 3
NOTHING = PodUsage({}, 0, 0, ())
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

names = st.sampled_from(("p0", "p1", "p2", "p3", "p4"))
namespaces = st.sampled_from(("default", "other"))
labels = st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from(("a", "b")))
expressions = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(("app", "tier")),
            "operator": st.sampled_from(("In", "NotIn")),
            "values": st.lists(st.sampled_from(("a", "b")), min_size=1, max_size=2, unique=True),
        }
    ),
    st.fixed_dictionaries(
        {"key": st.sampled_from(("app", "tier")), "operator": st.sampled_from(("Exists", "DoesNotExist"))}
    ),
)
selectors = st.one_of(
    st.just({"matchLabels": {"app": "a"}}),
    st.none(),
    st.fixed_dictionaries({}, optional={"matchLabels": labels, "matchExpressions": st.lists(expressions, max_size=2)}),
)
terms = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from(("zone", "host")), "labelSelector": selectors},
    optional={"namespaces": st.lists(namespaces, max_size=2, unique=True), "namespaceSelector": selectors},
)
weighted_terms = st.fixed_dictionaries({"weight": st.integers(1, 3), "podAffinityTerm": terms})
rules = st.fixed_dictionaries(
    {}, optional={REQUIRED: st.lists(terms, max_size=2), PREFERRED: st.lists(weighted_terms, max_size=2)}
)
affinities = st.one_of(st.none(), st.fixed_dictionaries({}, optional={"podAffinity": rules, "podAntiAffinity": rules}))


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    return pod(
        draw(names),
        namespace=draw(namespaces),
        labels=draw(labels),
        affinity=draw(affinities),
        terminating=draw(st.booleans()),
        priority=draw(st.sampled_from((None, 7))),
    )


@dataclass
class ChangingCluster:
    """A snapshot and what is meant to be on it."""

    snapshot: Snapshot
    on_row: dict[str, int] = field(default_factory=dict)

    @classmethod
    def empty(cls) -> ChangingCluster:
        cluster = cls(Snapshot())
        for index in range(NODES):
            cluster.put_node(index)
        return cluster

    def put_node(self, index: int, zone: str = "z0") -> None:
        labels = {"zone": zone, **({"host": f"h{index}"} if index else {})}
        self.snapshot.put_node(Node(metadata=ObjectMeta(name=f"n{index}", labels=labels)), {}, 10)

    def take(self, kind: str, index: int, pod: Pod) -> None:
        """Let something happen that can happen."""
        row_of_pod = self.on_row.get(pod.uid)
        if kind == "come" and row_of_pod is None:
            row = self.snapshot.row_of[f"n{index}"]
            self.snapshot.add_pod(row, pod, NOTHING)
            self.on_row[pod.uid] = row
        elif kind == "go" and row_of_pod is not None:
            self.snapshot.remove_pod(row_of_pod, pod.uid)
            del self.on_row[pod.uid]
        elif kind == "change" and row_of_pod is not None:
            former = self.snapshot.pods[row_of_pod][pod.uid]
            self.snapshot.replace_pod(row_of_pod, same_namespace(pod, former), NOTHING)
        elif kind == "move node":
            self.put_node(index, f"z{len(pod.metadata.labels)}")
        elif kind == "lose node":
            row_removed = self.snapshot.row_of[f"n{index}"]
            self.snapshot.drop_node(f"n{index}")
            self.on_row = {uid: row for uid, row in self.on_row.items() if row != row_removed}
            self.put_node(index)
            self.put_node(NODES + len(self.snapshot))  # rows grow, too

    def with_forks(self, history: Iterable[tuple[str, int, Pod]]) -> dict[str, ChangingCluster]:
        """It after the history, and two forks of it that know nothing of each other."""
        for step in history:
            self.take(*step)
        fork = self.fork()
        return {"base": self, "fork": fork, "twin": fork.fork()}

    def fork(self) -> ChangingCluster:
        return ChangingCluster(self.snapshot.fork(), dict(self.on_row))

    def by_value(self, key: str, by_row: list[int]) -> list[int]:
        """The numbers summed up by the values of a label."""
        column = self.snapshot.label_column(key)
        sums = [0] * len(column.values)
        for row, number in enumerate(by_row):
            sums[column.ids[row]] += number
        return sums

    def pods(self) -> list[tuple[int, Pod]]:
        return [(row, pod) for row, pods in enumerate(self.snapshot.pods) for pod in pods.values()]


def same_namespace(pod: Pod, former: Pod) -> Pod:
    """The pod as a later state of the other: pods do not change namespace."""
    meta: Any = pod.metadata
    metadata = ObjectMeta(
        name=meta.name,
        namespace=former.metadata.namespace,
        uid=meta.uid,
        labels=meta.labels,
        deletion_timestamp=meta.deletion_timestamp,
    )
    return Pod(metadata=metadata, spec=pod.spec, status=pod.status)


steps = st.tuples(
    st.sampled_from(("come", "come", "go", "change", "lose node", "move node", "ask")),
    st.integers(0, NODES - 1),
    pods(),
)
histories = st.lists(steps, max_size=12)

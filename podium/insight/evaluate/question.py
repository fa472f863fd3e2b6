"""Answers questions about one pod in a cluster, both from files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from podium.cluster import CacheError
from podium.config import KubeSchedulerConfiguration
from podium.engine.cluster import Cluster
from podium.engine.cluster_objects import read_all, read_object
from podium.engine.derivation.admission import Admission, with_node_lost_tolerations
from podium.engine.derivation.pods import asked_pod
from podium.engine.device_refusals import device_refusals
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.evaluation import Evaluation, as_status
from podium.engine.files import LocatedManifest
from podium.engine.store import ObjectStore
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import Status
from podium.framework.cycle.details import detail_of_node
from podium.framework.profile.runtime import Framework
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS, ResourceType


@dataclass(frozen=True, slots=True)
class PodAnswer:
    """The result of one scheduling attempt for a pod.

    Attributes:
        gates: the statuses of PreEnqueue plugins that gate the pod.
        missed: the resources that the answer depends on and of which the cluster has no objects.
        details: by row, details on why the node does not fit.
        is_partial: the time was up before the verdict of preemption or all details were found.
    """

    pod: Pod
    evaluation: Evaluation
    gates: tuple[Status, ...] = ()
    missed: tuple[str, ...] = ()
    details: Mapping[int, str] = field(default_factory=dict)
    is_partial: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values.

        `node` is the node that the scheduler chooses, `preenqueue` the statuses that gate the pod, `missing` the
        resources that may be missing from the input, `details` the details on why nodes do not fit.
        """
        members: dict[str, Any] = {"preenqueue": [as_status(gate) for gate in self.gates]} if self.gates else {}
        if self.missed:
            members["missing"] = list(self.missed)
        if self.details:
            members["details"] = {self.evaluation.snapshot.name(row): detail for row, detail in self.details.items()}
        if self.is_partial:
            members["partial"] = True
        return {"pod": self.pod.key, "node": self.evaluation.node, **members, **self.evaluation.as_dict()}


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a pod: which node would the scheduler choose for it in this cluster?

    Attributes:
        missing: the plurals of the kinds of objects that the pod names and of which the cluster has none.
    """

    store: ObjectStore
    pod: Pod
    admission: Admission
    missing: tuple[str, ...] = ()

    @classmethod
    def read(
        cls,
        cluster: Iterable[LocatedManifest],
        pod: Sequence[LocatedManifest],
        name: str,
        complete_kinds: Collection[ResourceType[Any]] = (),
    ) -> Question:
        """Read a question from the objects of a cluster and those of a pod file.

        The pod, or one made from the pod template of a workload in the file, counts as unbound, and replaces a pod of
        the same name in the cluster.

        Args:
            name: what to call the pod file.
            complete_kinds: the kinds whose list is complete, even if it is empty.

        Raises:
            ManifestError: an object cannot be read, the file has no pod or several, or there is no node.
        """
        source, dependencies = asked_pod(pod, name)
        items = [*cluster, *dependencies]
        admission = Admission(item.manifest for item in items)
        admission.demand_admission(source.manifest)
        store = ObjectStore(read_all(items, admission), complete_kinds)
        if not store.objects(NODES):
            raise ManifestError("no nodes: give the cluster's objects with -f, or the cluster itself with --kubeconfig")
        # Admission adds these two tolerations to every pod; a file of a workload does not have them.
        manifest = with_node_lost_tolerations(source.manifest)
        unbound_pod = read_object(LocatedManifest(manifest, source.location), PODS, admission)
        # In the store, so that plugins that count pods see the pod as the scheduler's cache would not: it has no node.
        store.put(PODS, unbound_pod)
        missing = () if PODS in complete_kinds else tuple(admission.missing_kinds(source.manifest))
        return cls(store, unbound_pod, admission, missing)

    def ask(
        self,
        config: KubeSchedulerConfiguration,
        classes: Mapping[str, type[Plugin]],
        *,
        any_scheduler: bool,
        limit: TimeLimit = UNLIMITED,
    ) -> PodAnswer:
        """Make one scheduling attempt for the pod.

        Args:
            any_scheduler: use the first profile, whatever scheduler name the pod has.
            limit: when to end with what was found by then, without details.

        Raises:
            ClusterError, ScheduleError: the attempt failed.
        """
        if any_scheduler:
            profile = replace(config.profiles[0], scheduler_name=self.pod.spec.scheduler_name)
            config = replace(config, profiles=(profile,))
        try:
            cluster = Cluster(config, self.store, classes, asked=(self.pod.key,), admission=self.admission)
            cluster, pod = cluster.asked(self.pod)
        except CacheError as error:
            raise ClusterError(str(error)) from error
        gates, evaluation = cluster.gates_of(pod), cluster.evaluate(pod, limit)
        limit.note(partial(evaluation.verdict_on, pod))
        missed = {*(resource.plural for resource in cluster.store.missing_kinds()), *self.missing}
        details: dict[int, str] = {}
        try:
            limit.check()
            _add_details(details, cluster.framework_for(pod), pod, evaluation, limit)
        except TimeIsUpError:
            limit.is_noticed = True
        return PodAnswer(pod, evaluation, gates, tuple(sorted(missed)), details, limit.is_noticed)


def _add_details(
    details: dict[int, str], framework: Framework, pod: Pod, evaluation: Evaluation, limit: TimeLimit
) -> None:
    """Add to `details` why the pod does not fit on each node. Raises: `TimeIsUpError`; what was added by then stays."""
    statuses, snapshot = evaluation.found.diagnosis.statuses(), evaluation.snapshot
    for row, status in statuses.items():
        limit.check()
        if detail := detail_of_node(framework, pod, snapshot, row, status):
            details[row] = detail
    refusals = device_refusals(framework, pod, snapshot, statuses.items())
    details |= {
        snapshot.row_of[name]: "; ".join((*refusal.reasons, *refusal.details)) for name, refusal in refusals.items()
    }

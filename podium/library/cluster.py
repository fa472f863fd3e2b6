"""`podium.Cluster`: adds what-if, plans of nodes to buy, workloads and a display form to the cluster of `insight`."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from podium.config import KubeSchedulerConfiguration
from podium.engine.asked_pods import PodLike, pod_manifest
from podium.engine.configurations import Config, read_config
from podium.engine.derivation.control_objects import mapping_at, namespace_of
from podium.engine.derivation.workload_kinds import template_of
from podium.engine.errors import ManifestError
from podium.engine.files import LocatedManifest
from podium.engine.manifests import Manifest
from podium.engine.object_files import Objects, objects_given
from podium.insight import cluster as insight
from podium.insight.forecast import Forecast
from podium.insight.outlook import Outlook
from podium.insight.outlook_questions import locate, outlook_of
from podium.insight.room.drain_order import DrainOrder, drain_order
from podium.insight.room.make_room import STEPS_MAX, STEPS_WITHOUT_LIMIT, make_room
from podium.insight.room.plan import RoomAnswer
from podium.insight.steps import Apply, Step, UseProfiles, carry_out_steps, pods_of, read_steps
from podium.insight.trial import Trial
from podium.insight.what_if import Outcome, Usage, outcome_of, utilisation
from podium.lib.system_clock import SystemClock
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.library.planned_objects import NODE_POOL, original_key
from podium.objects.amounts import amount_text
from podium.objects.core import Pod
from podium.objects.resource_types import ResourceType
from podium.objects.times import parse_time

if TYPE_CHECKING:
    from podium.library.new_nodes import NewNodeCapacity
    from podium.library.plans import InstanceTypes, Rules
    from podium.provisioner.reports.plan import PlanReport

_STEPS: Final = {"add_nodes": "addNodes"}
"""The steps whose names differ in Python."""
_ZONES_SHOWN: Final = 20


class Cluster(insight.Cluster):
    """The objects of one cluster, and the profiles of one configuration.

    Not thread-safe. A method that changes something changes this cluster only, not the one that it was forked from nor
    its own forks.
    """

    _forecast: Forecast | None = None
    """The last forecast, which holds for the cluster as long as it does not change."""

    @classmethod
    def _kinds_beside(cls) -> Sequence[ResourceType[Any]]:
        from podium.library.plans import ONLY_PLANNED

        return ONLY_PLANNED

    @classmethod
    def _now_s(cls) -> float:
        return SystemClock().now()

    def _keep(self, documents: Sequence[LocatedManifest]) -> None:
        originals = {key: document for document in documents if (key := original_key(document)) is not None}
        if originals:
            self._own().originals = {**self._state.originals, **originals}

    def add(self, manifest: Manifest) -> None:
        """Add an object. A pod that names a node counts as bound to it; any other pod is pending.

        For a workload, such as a Deployment, it adds the pods that the controller creates before any of them runs.

        Raises:
            ManifestError: the object cannot be read, a scheduler does not read its kind, its name is taken, or the API
                server would refuse its pods.
        """
        if not _has_pods(manifest):
            super().add(manifest)
            self._keep([LocatedManifest(manifest, "add")])
            return
        kind, namespace, name = str(manifest["kind"]), namespace_of(manifest), _name_of(manifest)
        if self.admission.objects.get(kind, name, namespace) is not None or pods_of(self, namespace, kind, name):
            raise ManifestError(f"{kind} {namespace}/{name} already exists")
        trial = Trial(self)
        _apply(manifest).carry_out(trial)
        trial.reconcile()
        if trial.refusals:
            raise ManifestError("; ".join(refusal.reason for refusal in trial.refusals.values()))
        trial.world.commit()
        self._keep([LocatedManifest(manifest, "add")])

    # ------------------------------------------------------------ questions

    def read_pod(self, pod: PodLike) -> Pod:
        """Return the typed pod, with missing fields filled in; for a workload, one of its pods.

        Raises:
            ManifestError: the pod cannot be read, or the API server would refuse it.
            ClusterError: the cluster has no pod of that name.
        """
        typed_pod = super().read_pod(pod)
        if isinstance(pod, Mapping) and isinstance(manifest := pod_manifest(pod), Mapping):
            self.admission.demand_admission(manifest)
        return typed_pod

    def what_if(self, *steps: Mapping[str, Any] | Iterable[Mapping[str, Any]], **steps_by_name: Any) -> Outcome:
        """Return the pods that would move, become pending or be preempted by these steps. Nothing changes.

        After each step pending pods are placed as the scheduler would place them, as by `podium what-if`.

        Args:
            steps: as in a file of steps, such as `{"drain": "node-1"}`, or lists of them.
            steps_by_name: further steps, in their order: `drain`, `add_nodes`, `apply`, `scale`, `remove`, `config`.
                A list gives several of one name. `apply` takes files, directories and manifests, `config` a
                configuration as `load` takes it.

        Raises:
            ClusterError: a step cannot be read, or is not possible. The message names it.
            ScheduleError: an attempt failed.
        """
        document = [step for argument in steps for step in ([argument] if isinstance(argument, Mapping) else argument)]
        for name, value in steps_by_name.items():
            values = value if isinstance(value, (list, tuple)) and name != "apply" else [value]
            document += [{_STEPS.get(name, name): argument} for argument in values]
        return outcome_of(carry_out_steps(self, read_steps(document, {"apply": _apply, "config": self._use_profiles})))

    def make_room(self, pod: PodLike, limit: TimeLimit = UNLIMITED) -> RoomAnswer:
        """Return the fewest moves of other pods after which this one, or its whole gang, fits. Nothing changes.

        Every step was rehearsed: no PodDisruptionBudget is violated, and each moved pod has its place before it is
        evicted. `text` of the answer says what was proved, `plan` has the steps, and `as_dict()` everything.

        Args:
            limit: when to end with the best moves found by then; unless given, after some 200,000 steps of the search.

        Raises: as `capacity`.
        """
        return make_room(self, pod, limit, STEPS_WITHOUT_LIMIT if limit is UNLIMITED else STEPS_MAX)

    def drain_order(self, *nodes: str, limit: TimeLimit = UNLIMITED) -> DrainOrder:
        """Return an order and batches in which these nodes can be drained. Nothing changes.

        Args:
            limit: when to end with the batches found by then.

        Raises:
            ClusterError: there is no such node.
            ScheduleError: an attempt failed.
        """
        return drain_order(self, nodes, limit)

    def outlook(
        self, pod: PodLike, *, at: str | None = None, fix: bool = True, limit: TimeLimit = UNLIMITED
    ) -> Outlook:
        """Return whether a pod gets a node now, after a preemption, when other pods end, or never. Nothing changes.

        The pods ahead of it in the queue take what they take first. A workload that the cluster does not have is
        answered for with each of its pods, a member of a gang with all members that wait. What becomes of the cluster's
        own pending pods is kept for further questions, until the cluster changes.

        Args:
            at: the time of the question in RFC 3339, as objects announce ends by time; by default now.
            fix: look for edits after which a pod fits that otherwise never does.
            limit: when to end with what was found by then.

        Raises:
            ValueError: `at` is no such time.
            ScheduleError: an attempt failed.
            ClusterError: no profile serves the pod, or it cannot be read.
        """
        at_s = self.store.now_s if at is None else parse_time(at)
        target = locate(self, pod)
        forecast = self._forecast
        if forecast is None or forecast.cluster._state is not self._state or forecast.at_s != at_s:
            # A workload is played with the rest of the cluster, and needs no forecast without it.
            forecast = Forecast(self, at_s, limit) if isinstance(target, str) or not _has_pods(pod) else None
            self._forecast = forecast if forecast is not None and not forecast.is_partial else None
        return outlook_of(self, target, at_s, fix=fix, limit=limit, forecast=forecast)

    def utilisation(self) -> Mapping[str, Mapping[str, Usage]]:
        """Return the pods' requests against the nodes' allocatable: by zone, `all` for all nodes, and by resource."""
        return {zone or "all": usages for zone, usages in utilisation(self).items()}

    def plan(
        self,
        node_pools: Objects | None = None,
        *,
        adopt_nodes: bool = False,
        catalogue: InstanceTypes | None = None,
        add: Objects = (),
        assume_unschedulable: bool = False,
        ignore_unknown_labels: bool = False,
        rules: Rules = "karpenter",
    ) -> PlanReport:
        """Plan the nodes to buy for pending pods, as `podium plan` does. Nothing changes.

        `as_dict()` of the answer is the whole plan, and `why(pod)` explains one pod. A cluster that was loaded by its
        kubeconfig has its NodePools and NodeClaims, if the user may list them.

        Args:
            node_pools: the NodePools to buy from, instead of those that were loaded.
            adopt_nodes: buy more nodes like those of a cluster that has no NodePools.
            catalogue: the instance types in the JSON form of kwok's, or the path of such a file; generic ones,
                which have no prices, unless given.
            add: workloads to plan for as well.
            assume_unschedulable: plan also for pods that kube-scheduler has not tried to place yet.
            ignore_unknown_labels: leave out, with a warning, what is required of labels that no instance type has,
                instead of refusing it.
            rules: `karpenter` fits pods by Karpenter's simulation, `podium` by this cluster's profiles.

        Raises:
            ClusterError: there are no NodePools, an object or the catalogue cannot be read, or a file is missing.
        """
        from podium.library.plans import PlanQuestion

        question = PlanQuestion(
            node_pools=None if node_pools is None else objects_given(node_pools),
            adopt_nodes=adopt_nodes,
            catalogue=catalogue,
            workloads=objects_given(add),
            assume_unschedulable=assume_unschedulable,
            ignore_unknown_labels=ignore_unknown_labels,
            rules=rules,
        )
        return question.answer(self, self._state.originals)

    def new_nodes(
        self,
        pod: PodLike,
        catalogue: InstanceTypes,
        node_pools: Objects | None = None,
        limit: TimeLimit = UNLIMITED,
    ) -> Sequence[NewNodeCapacity]:
        """Return how many more of a pod fit on a new node of each instance type, with its devices, the cheapest first.

        Nothing changes. `node.edit` of an answer is what `fixes` takes in `new_nodes`.

        Args:
            catalogue: as for `plan`.
            node_pools: the NodePools that nodes are of, instead of those that were loaded. Without any, nodes have no
                taints, and the labels of their type alone.
            limit: when to end with the nodes counted by then.

        Raises:
            ScheduleError: an attempt failed.
            ClusterError: the pod, an object or the catalogue cannot be read.
        """
        from podium.library.plans import new_node_capacities

        known_pools = [item for (kind, _), item in self._state.originals.items() if kind == NODE_POOL]
        pools = known_pools if node_pools is None else objects_given(node_pools)
        return new_node_capacities(self.with_workload_of(pod), pod, catalogue, pools, limit)

    # ------------------------------------------------------------ as text

    def __repr__(self) -> str:
        """Show the numbers of nodes and pods, and the profiles."""
        counts = f"nodes={len(self.nodes)}, pods={len(self.pods)}, pending={self._pending_count()}"
        return f"podium.Cluster({counts}, profiles={sorted(self.profiles)})"

    def _repr_html_(self) -> str:
        """Show the same in a notebook, with a table of the requests by zone."""
        usages = self.utilisation()
        resources = list(usages["all"])
        head = "".join(f"<th>{_escape(name)}</th>" for name in ("zone", *resources))
        rows = "".join(
            f"<tr><th>{_escape(zone)}</th>{''.join(_cell(name, of_zone.get(name)) for name in resources)}</tr>"
            for zone, of_zone in list(usages.items())[: _ZONES_SHOWN + 1]
        )
        remaining_count = len(usages) - 1 - _ZONES_SHOWN
        left_out = f"<p>and {remaining_count} more zones</p>" if remaining_count > 0 else ""
        counts = (
            f"{len(self.nodes):,} nodes, {len(self.pods):,} pods, {self._pending_count():,} of them pending; "
            f"profiles: {', '.join(sorted(self.profiles))}"
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<div><p><b>podium.Cluster</b>: {_escape(counts)}</p>{table}{left_out}</div>"

    # ------------------------------------------------------------ inside

    def _pending_count(self) -> int:
        return sum(not pod.node_name for pod in self.pods)

    def _use_profiles(self, config: Config) -> UseProfiles:
        state = self._state

        def rebuild(cluster: insight.Cluster, config: KubeSchedulerConfiguration) -> insight.Cluster:
            return type(cluster)(config, cluster.store.fork(), state.classes, admission=cluster.admission)

        name = str(config) if isinstance(config, (str, os.PathLike)) else "another configuration"
        return UseProfiles(name, read_config(config, state.classes), rebuild)


def _apply(objects: Objects) -> Step:
    name = str(objects) if isinstance(objects, (str, os.PathLike)) else "manifests"
    return Apply(name, objects_given(objects))


def _has_pods(manifest: object) -> bool:
    """Return True for a workload, but not for a pod."""
    return isinstance(manifest, Mapping) and template_of(manifest) not in (None, manifest)


def _name_of(manifest: Manifest) -> str:
    """Return the name of a workload. Raises: ManifestError: it has no name."""
    name = mapping_at(manifest, "metadata").get("name")
    if not isinstance(name, str) or not name:
        raise ManifestError(f"{manifest['kind']}: metadata.name: required")
    return name


def _escape(text: str) -> str:
    from podium.lib.printable import printable

    return html.escape(printable(text))


def _cell(resource: str, usage: Usage | None) -> str:
    if usage is None:
        return "<td></td>"
    amounts = f"{amount_text(resource, usage.requested)} of {amount_text(resource, usage.allocatable)}"
    return f'<td title="{_escape(amounts)}">{usage.percent} %</td>'

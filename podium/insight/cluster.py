"""`podium.Cluster`: the engine's cluster, which can also be asked the questions of this package."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, overload

import numpy as np

from podium.config import default_configuration
from podium.engine.asked_pods import PodLike
from podium.engine.cluster import Cluster as EngineCluster
from podium.engine.configurations import Config
from podium.engine.derivation.claims import may_have_claims
from podium.engine.errors import KubeconfigGivenError, ManifestError
from podium.engine.evaluation import Evaluation
from podium.engine.gangs import Gang, gang_of
from podium.engine.object_files import Objects
from podium.engine.placement import Placement
from podium.engine.replicas import PLACED_MAX
from podium.framework.contract.plugin import Plugin
from podium.insight import capacity
from podium.insight.capacity import Capacity, Headroom, PodCopy
from podium.insight.edits import Edit
from podium.insight.fixes import FIXES_MAX, Fixes, fixes_for
from podium.insight.gang_capacity import gang_capacity, gangs_among, with_siblings
from podium.insight.json_patch import Operation, apply_merge_patch, apply_patch
from podium.insight.schedulers import pod_for_profile, scheduler_report
from podium.insight.score_table import data_frame, score_table
from podium.insight.why import Why, explain
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Pod
from podium.objects.resource_types import ResourceType


class Cluster(EngineCluster):
    """The objects of one cluster, and the profiles of one configuration.

    Not thread-safe. A method that changes something changes this cluster only, not the one that it was forked from nor
    its own forks.
    """

    @classmethod
    def load(
        cls,
        objects: Objects,
        config: Config | None = None,
        plugins: Sequence[type[Plugin]] = (),
        context: str | None = None,
        *,
        decide_as: str | None = None,
    ) -> Self:
        """Load a cluster from manifests, or a running one. Missing fields are filled in as an API server does.

        Args:
            objects: files and directories of what `kubectl get -o yaml` or `-o json` prints, or manifests as parsed
                from it. Kinds that a scheduler does not read are ignored, as are pods that have ended. Or a
                kubeconfig: the objects of that cluster are listed once, and nothing is written to it.
            config: kube-scheduler's defaults unless given.
            plugins: your own plugins; without `config` they run in addition to the default plugins, with weight 1.
            context: of the kubeconfig; its current one unless given.
            decide_as: the minor of Kubernetes whose rules decide, as major.minor; by default that of the running
                cluster, or the newest.

        Raises:
            ManifestError: an object cannot be read. The message names the object and the field.
            ClusterError: a running cluster cannot be reached, or denies the request; or podium does not know the minor.
            ConfigError, PluginError: the configuration cannot be read, or a profile cannot be built.
            OSError: a file cannot be read.
        """
        try:
            return super().load(objects, config, plugins, decide_as=decide_as)
        except KubeconfigGivenError:
            if not isinstance(objects, (str, os.PathLike)):
                raise
        from podium.insight.running_cluster import list_objects_blocking

        manifests, release = list_objects_blocking(str(Path(objects).expanduser()), context, cls._kinds_beside())
        return super().load(manifests, config, plugins, decide_as=decide_as or release.minor)

    @classmethod
    def _kinds_beside(cls) -> Sequence[ResourceType[Any]]:
        """Return the kinds of a running cluster to list beside those that a scheduler reads."""
        return ()

    def schedule(self, pod: PodLike) -> Evaluation:
        """Return where the pod would be placed, and why not elsewhere, as `evaluate` does. Nothing changes.

        Raises: as `evaluate`.
        """
        return self.evaluate(pod)

    # A name is a sequence of letters, too, but stands for a pod.
    @overload
    def place(self, pod: PodLike) -> Placement: ...  # type: ignore[overload-overlap]

    @overload
    def place(self, pod: Sequence[PodLike], *, preempt: bool = False) -> list[Placement]: ...

    def place(self, pod: PodLike | Sequence[PodLike], *, preempt: bool = False) -> Placement | list[Placement]:
        """Make one scheduling attempt, as the scheduler would. The pod then counts on its node.

        Of a workload one of its pods is tried, with its claims; the cluster then has the workload, too. Several pods
        are tried one after the other in queue order: by the QueueSort plugin, of which they entered the queue in the
        order given. If a pod fits on no node, its placement says so and names the victims of a preemption.

        Args:
            preempt: with several pods, carry preemptions out: victims are removed at once, and the pod is nominated.

        Raises:
            ScheduleError: an attempt failed for a reason other than that the pod does not fit.
            ClusterError: no profile serves a pod, it cannot be read, or it counts on a node already.
        """
        if isinstance(pod, Pod | Mapping | str):
            return super().place(pod)
        queue = self.in_queue_order(map(self.read_pod, pod))
        for subject in pod:
            self.put_workload_of(subject)
        return self.place_all(queue) if preempt else [super(Cluster, self).place(entry) for entry in queue]

    def patch(
        self, kind: str, name: str, changes: Sequence[Operation] | Mapping[str, Any], namespace: str = ""
    ) -> None:
        """Change an object in place. Edits of `fixes` have such patches.

        Args:
            kind: as manifests write it, such as `Pod`.
            changes: a JSON Patch (RFC 6902: add, replace, remove), or a JSON Merge Patch (RFC 7386).
            namespace: `default` unless given, for kinds that have one.

        Raises:
            ManifestError: there is no such object, a path does not exist, or the object cannot be read afterwards.
        """
        manifest = self.manifest_of(kind, name, namespace)
        try:
            result = (
                apply_merge_patch(manifest, changes) if isinstance(changes, Mapping) else apply_patch(manifest, changes)
            )
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ManifestError(f"{kind} {name}: the patch does not apply: {error!r}") from error
        self.replace(result)

    def scores(self, pod: PodLike) -> np.recarray[Any, Any]:
        """Return the scores of the feasible nodes: `node`, `total` and a column for each plugin. Nothing changes.

        Shape: one record for each feasible node, the winner first; empty if the pod fits nowhere.

        Raises: as `evaluate`.
        """
        return score_table(*self.asked(pod))

    def scores_frame(self, pod: PodLike) -> Any:
        """Return `scores` as a pandas DataFrame with the nodes as its index. This needs the extra `podium[notebook]`.

        Raises:
            ClusterError: pandas is not installed; otherwise as `evaluate`.
        """
        return data_frame(self.scores(pod))

    def capacity(self, pod: PodLike, most: int = PLACED_MAX, limit: TimeLimit = UNLIMITED) -> Capacity:
        """Return how many more pods like this one the scheduler would place, and what then stops it. Nothing changes.

        The copies preempt no pods. Pending pods are not placed before them. For a pod of a gang, `gang` of the answer
        says how many whole gangs fit.

        Args:
            most: the maximum number of copies to try one by one, if they affect each other.
            limit: when to end with the copies placed by then.

        Raises:
            ScheduleError: an attempt failed for a reason other than that the pod does not fit.
            ClusterError: no profile serves the pod, or it cannot be read.
        """
        world = self.with_workload_of(pod)
        pod = world.read_pod(pod)
        gang = gang_of(world, pod)
        world = world if gang is None else with_siblings(world, pod, gang)
        (answer,) = world._count_copies([pod], most, limit)
        if gang is None:
            return answer

        def capacity_of(copy: Pod) -> Capacity:
            return answer if copy is pod else world._count_copies([copy], most, limit)[0]

        return replace(answer, is_partial=limit.is_noticed, gang=gang_capacity(world, pod, gang, capacity_of))

    def capacity_together(
        self, pods: Sequence[PodLike], most: int = PLACED_MAX, limit: TimeLimit = UNLIMITED
    ) -> Sequence[Capacity]:
        """Return the capacity for several pods that are placed in turn, one of each, until none fits any more.

        Of a pod of a gang `gang` says how many whole gangs these copies are.

        Args:
            most: the maximum number of copies of all pods together.
            limit: when to end with the copies placed by then.
        """
        world, typed_pods, gangs = self, list[Pod](), list[Gang | None]()
        for pod in pods:
            world = world.with_workload_of(pod)
            typed_pods.append(world.read_pod(pod))
            gangs.append(gang := gang_of(world, typed_pods[-1]))
            world = world if gang is None else with_siblings(world, typed_pods[-1], gang)
        counts = world._count_copies(typed_pods, most, limit)
        return [
            count if gang is None else replace(count, gang=gangs_among(gang, count))
            for gang, count in zip(gangs, counts, strict=True)
        ]

    def _count_copies(self, pods: Sequence[PodLike], placed_max: int, limit: TimeLimit) -> Sequence[Capacity]:
        """Count the copies of the pods that fit in turn, whether they make whole gangs or not."""
        world, copies = self._asked_copies(pods)
        return capacity.count_copies(world.engine, copies, placed_max, world.create_claims, limit)

    def headroom(self, pod: PodLike, times: int, limit: TimeLimit = UNLIMITED) -> Headroom:
        """Return how large the pod's requests may be so that it still fits this many times. Nothing changes.

        Args:
            limit: when to end with the sizes found by then.

        Raises: as `capacity`.
        """
        world, (copy,) = self._asked_copies([pod])
        return capacity.headroom(world, copy, times, limit)

    def _asked_copies(self, pods: Sequence[PodLike]) -> tuple[Cluster, list[PodCopy]]:
        """Return copies of the pods, and a cluster in which claims may be created for them."""
        world = self
        for pod in pods:
            world = world.with_workload_of(pod)
        typed_pods = [world.read_pod(pod) for pod in pods]
        # On a fork, since placing a copy creates claims that must not stay.
        if world is self and any(map(may_have_claims, typed_pods)):
            world = self.fork()
        _ = world.engine  # owns its state from here on, so that its profiles see the claims
        return world, [PodCopy.of(pod, world.framework_for) for pod in typed_pods]

    def fixes(
        self, pod: PodLike, most: int = FIXES_MAX, limit: TimeLimit = UNLIMITED, new_nodes: Sequence[Edit] = ()
    ) -> Fixes:
        """Return the smallest sets of edits after which the pod fits, the least intrusive first. Nothing changes.

        Args:
            pod: pending; it may be one of the cluster's pods.
            most: how many sets to look for.
            limit: when to end with the sets found by then.
            new_nodes: the edits that add a node, instead of nodes like those that are there.

        Raises: as `capacity`.
        """
        return fixes_for(*self.asked(pod), most, limit, new_nodes)

    def why(self, pod: PodLike, node: str = "", limit: TimeLimit = UNLIMITED) -> Why:
        """Return why the pod is pending, or why it is where it is: every blocker of every node, scores, preemption.

        A bound pod is evaluated as if it were pending in today's cluster. If no profile serves its
        scheduler name, `warning` of the answer says so, and the rest is what the most similar profile would decide.

        Args:
            node: a node to compare the best one with.
            limit: when to end with what was found by then; the answer is partial then.

        Raises: as `capacity`.
        """
        world, typed_pod = self.asked(pod)
        source = "" if self._state.config == default_configuration() else "the cluster's configuration"
        report = scheduler_report(world, typed_pod, source)
        answer = explain(world, pod_for_profile(typed_pod, report, self.profiles), node, limit)
        return replace(answer, warning=report.warning)

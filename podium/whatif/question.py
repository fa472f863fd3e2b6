"""One pod and one cluster as people have them in files, and what came out of asking about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from podium.cluster import CacheError, Snapshot
from podium.config import KubeSchedulerConfiguration
from podium.framework.interface import Plugin
from podium.framework.status import Status
from podium.framework.survey import Survey
from podium.kube.objects import Pod
from podium.kube.resource_types import NODES, PODS, ResourceType
from podium.whatif.admission import Admission
from podium.whatif.answers import as_answer, as_status, survey_one_pod
from podium.whatif.cluster import StillCluster
from podium.whatif.errors import ManifestError, WhatIfError
from podium.whatif.files import Found, read_objects
from podium.whatif.manifests import read_manifest, resource_of
from podium.whatif.world import World


@dataclass(frozen=True, slots=True)
class PodAnswer:
    """What one attempt at a pod has found in a cluster. `gates` hold the pod back from being tried at all."""

    pod: Pod
    found: Survey
    snapshot: Snapshot
    gates: tuple[Status, ...] = ()

    @property
    def winner(self) -> str | None:
        """The node that the pod would go to."""
        return None if self.found.winner is None else self.snapshot.name(self.found.winner)

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values: `node` is where the pod would go, `preenqueue` what holds it back."""
        gates = {"preenqueue": [as_status(gate) for gate in self.gates]} if self.gates else {}
        return {"pod": self.pod.key, "node": self.winner, **gates, **as_answer(self.found, self.snapshot)}


@dataclass(frozen=True, slots=True)
class Question:
    """Where would the pod go in this world?"""

    world: World
    pod: Pod

    @classmethod
    def read(cls, clusters: Iterable[tuple[str, bytes]], pod: tuple[str, bytes]) -> Question:
        """Read a question from files, each a name and its content.

        The pod is taken as not yet bound, and stands in for one of its name in the cluster.

        Raises:
            ManifestError: a file cannot be read, the pod's file does not hold exactly one pod, or there is no node.
        """
        found = [each for name, content in clusters for each in read_objects(content, name)]
        pod_found = list(read_objects(pod[1], pod[0]))
        pods = [each for each in pod_found if resource_of(each.manifest) is PODS]
        if len(pods) != 1:
            raise ManifestError(f"{pod[0]}: expected one pod, found {len(pods)}")
        found += [each for each in pod_found if each is not pods[0]]
        admission = Admission(each.manifest for each in found)
        world = World(_read_all(found, admission))
        if not world.objects(NODES):
            raise ManifestError("no nodes: give the cluster's objects with -f")
        asked = _read(pods[0], PODS, admission)
        world.put_pod(asked)
        return cls(world, asked)

    def ask(
        self, config: KubeSchedulerConfiguration, classes: Mapping[str, type[Plugin]], *, any_scheduler: bool
    ) -> PodAnswer:
        """Make one attempt at the pod.

        Args:
            any_scheduler: the first profile serves the pod, whatever scheduler it asks for.

        Raises:
            WhatIfError, ScheduleError: there is no answer.
        """
        if any_scheduler:
            profile = replace(config.profiles[0], scheduler_name=self.pod.spec.scheduler_name)
            config = replace(config, profiles=(profile,))
        try:
            cluster = StillCluster(config, self.world, classes, asked=(self.pod.key,))
        except CacheError as error:
            raise WhatIfError(str(error)) from error
        gates = cluster.gates_of(self.pod)
        return PodAnswer(self.pod, survey_one_pod(cluster, self.pod), cluster.cache.snapshot(), gates)


def _read_all(found: Iterable[Found], admission: Admission) -> Iterable[tuple[ResourceType[Any], Any]]:
    for each in found:
        resource = resource_of(each.manifest)
        if resource is not None:
            yield resource, _read(each, resource, admission)


def _read(found: Found, resource: ResourceType[Any], admission: Admission) -> Any:
    try:
        return read_manifest(admission.admit(found.manifest, resource), resource)
    except ManifestError as error:
        raise ManifestError(f"{found.where}: {error}") from None

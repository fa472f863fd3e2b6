"""Gangs in the simulation: pods of the plugin Coscheduling that start together, two rivals in each calm, the checkers.

It has a random source of its own: what else happens with a seed does not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from podium.insight.evaluate.scenarios import Evaluator, Scenario
from podium.objects.coscheduling import GROUP_LABEL, MIN_MEMBER
from podium.plugins.contrib.coscheduling.plugin import Coscheduling
from podium.sandbox.embedded import Sandbox
from podium.sandbox.resources import resource_named
from tests import manifests
from tests.simulation import random_objects
from tests.simulation.actors import PODS_MAX
from tests.simulation.checkers import Violation
from tests.simulation.observed import ObservedApp

Json = dict[str, Any]

PERMIT_S: Final = 10
_SLACK_S: Final = 1.0
_RIVALS: Final = 5
"""Members of each of two gangs that the simulated nodes seldom have room for at once."""
_FINISHED: Final = ("Succeeded", "Failed")
_PODS = resource_named("pods")


class GangActors:
    """Users with gangs, which they create and delete as a whole.

    Args:
        templates: the names of templates of claims; if there are any, the members of some gangs have claims.
    """

    def __init__(self, sandbox: Sandbox, seed: int, templates: Sequence[str] = ()) -> None:
        self.min_members: dict[str, int] = {}
        self._templates = templates
        self._pods_max = PODS_MAX + 2 * _RIVALS * bool(templates)
        self._store, self._random = sandbox.store, Random(f"gangs-{seed}")
        self._rivals: list[str] = []

    def act(self) -> str | None:
        """One action by chance, most often none."""
        chance = self._random.random()
        if chance < 0.06:
            size = self._random.randint(2, _RIVALS)
            return self._create([self._new(self._random.randint(2, size))], size, self._random.choice((250, 900, 1500)))
        if chance < 0.1 and self.min_members:
            return self._delete(self._random.choice(list(self.min_members)))
        return None

    def create_rivals(self) -> str | None:
        """Two gangs that want the same room, their pods by turns."""
        self._rivals = [self._new(_RIVALS), self._new(_RIVALS)]
        return self._create(self._rivals, _RIVALS, 1500, pods_more=2 * _RIVALS)

    def delete_rivals(self) -> None:
        """The rivals of this calm go."""
        for name in self._rivals:
            self._delete(name)

    def check_rivals(self) -> None:
        """Each of the rivals has as many nodes as it needs, or none: nothing has gone wrong since they were created."""
        for name in self._rivals:
            bound_count = sum(
                bool(member["spec"].get("nodeName")) for member in members(self._store.list("pods"), name)
            )
            if 0 < bound_count < self.min_members[name]:
                raise Violation("gang in part", f"{bound_count} of {self.min_members[name]} of {name} are bound")

    def _new(self, min_member: int) -> str:
        name = f"gang-{self._random.getrandbits(32):08x}"
        self.min_members[name] = min_member
        return name

    def _create(self, names: Sequence[str], size: int, cpu_milli: int, pods_more: int = 0) -> str | None:
        if len(self._store.list("pods")) + size * len(names) > self._pods_max + pods_more:
            for name in names:
                del self.min_members[name]
            return None
        has_group = self._random.random() < 0.5
        template = self._random.choice(self._templates) if self._templates and self._random.random() < 0.7 else None
        for name in names if has_group else ():
            self._store.create(_group(name, self.min_members[name]))
        for at in range(size):
            for name in names:
                pod = manifests.pod(f"{name}-{at}", cpu=f"{cpu_milli}m", memory="64Mi")
                pod["metadata"] |= {"labels": {GROUP_LABEL: name}}
                pod["metadata"] |= {} if has_group else {"annotations": {MIN_MEMBER: str(self.min_members[name])}}
                pod["spec"] |= {"schedulerName": random_objects.OURS, "terminationGracePeriodSeconds": 0}
                if template is not None:
                    random_objects.add_claim(pod, {"resourceClaimTemplateName": template})
                self._store.create(pod)
        return f"create {size} pods each of {' '.join(names)}" + (f" with {template}" if template else "")

    def _delete(self, name: str) -> str | None:
        if self.min_members.pop(name, None) is None:
            return None
        for pod in self._store.list("pods"):
            if pod["metadata"]["labels"].get(GROUP_LABEL) == name:
                record = self._store.record(_PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])
                self._store.delete_record(_PODS, record, {"gracePeriodSeconds": 0})
        return f"delete {name}"


def members(pods: Sequence[Json], name: str) -> list[Json]:
    """The pods of a gang that have neither ended nor are about to."""
    mine = (pod for pod in pods if pod["metadata"].get("labels", {}).get(GROUP_LABEL) == name)
    return [
        member
        for member in mine
        if member["status"].get("phase") not in _FINISHED and "deletionTimestamp" not in member["metadata"]
    ]


def _group(name: str, min_member: int) -> Json:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": min_member, "scheduleTimeoutSeconds": PERMIT_S},
    }


class GangChecker:
    """Remembers since when members wait for the others, in one life of podium."""

    def __init__(self) -> None:
        self._since_s: dict[str, float] = {}

    def check_none_holds_on(self, app: ObservedApp, now_s: float) -> None:
        """No member holds a node for longer than its gang may take to come together.

        As in kube-scheduler, it may also have to wait until its nomination is written, which does not count.
        """
        assert app.parts is not None
        plugin = app.parts.frameworks[random_objects.OURS].plugins[Coscheduling.name]
        waiting = {
            waiting_pod.pod.uid: waiting_pod.pod
            for waiting_pod in plugin.handle.waiting_pods
            if Coscheduling.name in waiting_pod.pending_plugins
            and waiting_pod._wake is not None
            and waiting_pod._wake.statistics().tasks_waiting
        }
        self._since_s = {uid: self._since_s.get(uid, now_s) for uid in waiting}
        for uid, since_s in self._since_s.items():
            if now_s - since_s > PERMIT_S + _SLACK_S:
                raise Violation("held on", f"{waiting[uid].key} has waited for its gang for {now_s - since_s:.0f} s")


def _on_nominated_node(pod: Json) -> Json:
    """Return the pod as it counts for others: on the node that it is nominated to, for as long as it is."""
    node_name = pod["status"].get("nominatedNodeName")
    return {**pod, "spec": {"nodeName": node_name, **pod["spec"]}} if node_name else pod


def check_no_gang_forgotten(sandbox: Sandbox, min_members: dict[str, int], extra_objects: Sequence[Json] = ()) -> None:
    """After a calm, no gang waits that would fit: none was held up for ever by another.

    Args:
        more: all that is to know of devices.
    """
    pods, nodes = sandbox.store.list("pods"), sandbox.store.list("nodes")
    for name, member_count in min_members.items():
        mine = members(pods, name)
        waiting = [member for member in mine if not member["spec"].get("nodeName")]
        if not waiting or len(mine) < member_count:
            continue
        other_pods = [_on_nominated_node(pod) for pod in pods if pod not in waiting]
        members_asked = [
            {**member, "spec": {**member["spec"], "schedulerName": "default-scheduler"}} for member in waiting
        ]
        answer = Evaluator().answer(Scenario(objects=[*nodes, *other_pods, *extra_objects], pods=members_asked))
        fitting = sum("node" in placement for placement in answer["placements"])
        if fitting and len(mine) - len(waiting) + fitting >= member_count:
            raise Violation("gang forgotten", f"{len(waiting)} of {name} wait, and {fitting} of them fit")

"""The tools of `podium mcp`: each asks the cluster one question of podium. None of them changes anything.

Arguments are typed, and the protocol's library refuses others before a tool is called. What the cluster itself refuses
is an error that begins with the name of the argument. Answers are bounded in size (`bounded_answer`) and in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Annotated, Any, Final, Literal, TypeAlias

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from podium.cli.bounded_answer import cut_to_size
from podium.cli.mcp_source import ClusterSource, ReadCluster
from podium.engine.errors import ClusterError
from podium.engine.files import LocatedManifest, unpack_lists
from podium.framework.contract.status import PluginError, ScheduleError
from podium.insight.cluster import Cluster
from podium.insight.loading import node_named, pod_named
from podium.insight.outlook_questions import locate, outlook_of
from podium.insight.room.make_room import make_room, subject_named
from podium.insight.steps import Apply, carry_out_steps, read_steps
from podium.insight.waiting_pods import age_of
from podium.insight.what_if import outcome_of
from podium.lib.error_text import cut
from podium.lib.system_clock import SystemClock
from podium.lib.time_limit import TimeIsUpError, TimeLimit
from podium.library.plans import PlanQuestion
from podium.objects.core import Pod
from podium.objects.times import format_time

_DEFAULT_NAMESPACE: Final = "default"
Answer: TypeAlias = dict[str, Any]
PodArgument: TypeAlias = Annotated[
    str | dict[str, Any],
    Field(description="A pod of the cluster as NAMESPACE/NAME, or the manifest of a pod or of a workload with pods."),
]
StepsArgument: TypeAlias = Annotated[
    list[dict[str, Any]],
    Field(
        description='Steps in order, each an object with one field: {"drain": NODE}, {"addNodes": {"count": 3, "like": '
        'NODE}}, {"scale": "NS/KIND/NAME=N"}, {"remove": "KIND/NAME"}, {"apply": MANIFEST or a list of them}.',
        min_length=1,
        max_length=100,
    ),
]


class ToolProblemError(ToolError):
    """A question that cannot be answered; the message begins with the name of the argument that is the reason."""


class Tools:
    """The tools, of which one is asked at a time.

    Args:
        limit_s: how long a question may take; 0 for any time.
        bytes_max: the size of the largest answer.
    """

    def __init__(self, source: ClusterSource, limit_s: float, bytes_max: int) -> None:
        self._source = source
        self._limit_s = limit_s
        self._bytes_max = bytes_max
        # Calls come in threads, and a cluster is not made for several at a time.
        self._lock = Lock()

    @property
    def all(self) -> tuple[Callable[..., Answer], ...]:
        """The tools."""
        return (
            *(self.why, self.fixes, self.what_if, self.capacity, self.outlook),
            *(self.make_room, self.plan, self.queue),
        )

    def why(
        self,
        pod: PodArgument,
        node: Annotated[str, Field(description="A node to compare the best one with.")] = "",
    ) -> Answer:
        """Explain why a pod is pending, or why it is where it is: every blocker of every node, scores, preemption."""

        def ask(cluster: Cluster, limit: TimeLimit) -> Answer:
            target = _pod(cluster, pod)
            with _naming("node"):
                if node:
                    node_named(cluster, node)
            with _naming("pod"):
                return cluster.why(target, node, limit).as_dict()

        return self._ask(ask)

    def fixes(
        self,
        pod: PodArgument,
        count: Annotated[int, Field(description="How many sets of edits to look for.", ge=1, le=10)] = 5,
    ) -> Answer:
        """Find the smallest sets of edits of the pod or the cluster after which a pending pod fits, as JSON Patches."""

        def ask(cluster: Cluster, limit: TimeLimit) -> Answer:
            target = _pod(cluster, pod)
            with _naming("pod"):
                return cluster.fixes(target, count, limit).as_dict(explain=True)

        return self._ask(ask)

    def what_if(self, steps: StepsArgument) -> Answer:
        """Say which pods would move, become pending or be preempted if nodes, workloads or objects changed."""

        def ask(cluster: Cluster, limit: TimeLimit) -> Answer:
            with _naming("steps"):
                return outcome_of(carry_out_steps(cluster, read_steps(steps, {"apply": _apply}), limit)).as_dict()

        return self._ask(ask)

    def capacity(self, pod: PodArgument) -> Answer:
        """Count how many more pods like this one the scheduler would place, and say what limits them."""

        def ask(cluster: Cluster, limit: TimeLimit) -> Answer:
            target = _pod(cluster, pod)
            with _naming("pod"):
                return cluster.capacity(target, limit=limit).as_dict(explain=False)

        return self._ask(ask)

    def outlook(
        self,
        pod: PodArgument,
        fix: Annotated[bool, Field(description="Look for edits after which a pod fits that never does.")] = True,
    ) -> Answer:
        """Say whether a pod gets a node now, after a preemption, when other pods end, or never."""

        def ask_at(read: ReadCluster, limit: TimeLimit) -> Answer:
            cluster, has_one_queue = read.load_result.cluster, not read.load_result.any_scheduler
            with _naming("pod"):
                target = locate(cluster, _pod(cluster, pod))
                outlook = outlook_of(cluster, target, read.at_s, fix=fix, limit=limit, has_one_queue=has_one_queue)
            return outlook.as_dict() | {"text": list(outlook.lines())}

        return self._ask_at(ask_at)

    def make_room(
        self, pod: Annotated[str, Field(description="A pending pod, or a gang, as NAMESPACE/NAME.")]
    ) -> Answer:
        """Find the fewest moves of other pods after which a pending pod or gang fits. Nothing is moved."""

        def ask(cluster: Cluster, limit: TimeLimit) -> Answer:
            with _naming("pod"):
                return make_room(cluster, subject_named(cluster, pod), limit).as_dict()

        return self._ask(ask)

    def plan(
        self,
        rules: Annotated[
            Literal["karpenter", "podium"],
            Field(description="Who judges whether a pod fits: Karpenter's simulation, or podium's own plugins."),
        ] = "karpenter",
        adopt_nodes: Annotated[
            bool, Field(description="Buy more nodes like those of a cluster that has no NodePools.")
        ] = False,
        assume_unschedulable: Annotated[
            bool, Field(description="Plan also for pods that kube-scheduler has not tried to place yet.")
        ] = False,
    ) -> Answer:
        """Plan the nodes to buy for pending pods, from the NodePools of the cluster. Nothing is bought."""

        def ask_at(read: ReadCluster, _: TimeLimit) -> Answer:
            question = PlanQuestion(
                node_pools=None,
                adopt_nodes=adopt_nodes,
                catalogue=None,
                workloads=(),
                assume_unschedulable=assume_unschedulable,
                ignore_unknown_labels=False,
                rules=rules,
            )
            return dict(question.answer(read.load_result.cluster, read.originals).as_dict())

        return self._ask_at(ask_at)

    def queue(self, count: Annotated[int, Field(description="How many pods to list.", ge=1, le=1000)] = 100) -> Answer:
        """List the pending pods in the order in which the scheduler tries them, with what it says of each."""

        def ask(cluster: Cluster, _: TimeLimit) -> Answer:
            pending = sorted((pod for pod in cluster.pods if not pod.node_name), key=age_of)
            pods = [_entry(pod) for pod in cluster.in_queue_order(pending)]
            return {"pending": len(pods), "pods": pods[:count]}

        return self._ask(ask)

    # ------------------------------------------------------------ inside

    def _ask(self, ask: Callable[[Cluster, TimeLimit], Answer]) -> Answer:
        return self._ask_at(lambda read, limit: ask(read.load_result.cluster, limit))

    def _ask_at(self, ask: Callable[[ReadCluster, TimeLimit], Answer]) -> Answer:
        """Ask the cluster as it is now, and bound the answer."""
        with self._lock, _naming("cluster"):
            read = self._source.cluster()
            limit = TimeLimit(SystemClock(), self._limit_s or float("inf"))
            try:
                answer = ask(read, limit)
            except TimeIsUpError:
                raise ToolProblemError(
                    f"the time limit of {self._limit_s:g} s is over, and nothing was found"
                ) from None
        answer = {"at": format_time(read.at_s), **answer, **read.load_result.basis()}
        return cut_to_size(answer | ({"partial": True} if limit.is_noticed else {}), self._bytes_max)


@contextmanager
def _naming(argument: str) -> Iterator[None]:
    """Put the name of an argument before what is wrong with it."""
    try:
        yield
    except (ClusterError, ScheduleError, PluginError, OSError) as error:
        raise ToolProblemError(f"{argument}: {cut(str(error))}") from error


def _pod(cluster: Cluster, pod: str | Mapping[str, Any]) -> Pod | Mapping[str, Any]:
    """Return the pod of the cluster, or its manifest."""
    if not isinstance(pod, str):
        return pod
    namespace, _, name = pod.rpartition("/")
    with _naming("pod"):
        return pod_named(cluster, name, namespace or _DEFAULT_NAMESPACE, is_only_there=bool(namespace))


def _apply(objects: Any) -> Apply:
    """Read the value of a step `apply`. Raises: ClusterError: it is neither a manifest nor a list of them."""
    manifests = objects if isinstance(objects, list) else [objects]
    if not all(isinstance(manifest, Mapping) for manifest in manifests):
        # Names of files, which the command takes, would let a client read files.
        raise ClusterError("apply: expected a manifest or a list of manifests")
    items: list[LocatedManifest] = []
    for number, manifest in enumerate(manifests):
        items += unpack_lists(manifest, f"apply[{number}]")
    return Apply("manifests", items)


def _entry(pod: Pod) -> Answer:
    condition = pod.status.condition("PodScheduled")
    entry: Answer = {"pod": pod.key, "priority": pod.priority, "scheduler": pod.spec.scheduler_name}
    if pod.metadata.creation_timestamp:
        entry["created"] = pod.metadata.creation_timestamp
    if gates := [gate.name for gate in pod.spec.scheduling_gates]:
        entry["gates"] = gates
    if pod.status.nominated_node_name:
        entry["nominated"] = pod.status.nominated_node_name
    return entry | ({"message": condition.message} if condition is not None and condition.message else {})

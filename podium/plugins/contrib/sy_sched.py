"""SySched: prefers nodes where the pod adds fewest system calls to those that the pods there must fear of each other.

The system calls of a pod are those that its seccomp profiles allow, by the SeccompProfiles of the Security Profiles
Operator. A node's cost is how many calls its pods and the new one are exposed to without using them.

Runs at: Score.
Verdict: none.
Requeue: none.
Cost: one step for each set of system calls that some node has; and for each pod on a node whose pods have changed.
Source: sigs.k8s.io/scheduler-plugins pkg/sysched (for Kubernetes 1.35).
Differs: every pod on a node counts, from the moment it is assumed there; upstream counts pods only once they run, takes
pods of one name for one pod whatever their namespace, and keeps the calls of a changed profile until a pod leaves. Of
several annotations the first by key counts; upstream takes any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.changed_rows import ChangedRows
from podium.framework import contract as fwk
from podium.objects.core import Pod, PodSpec, once_per_spec
from podium.objects.custom_resources import custom_resource
from podium.objects.meta import NamespacedObject, Value
from podium.plugins.contrib.plugin_args import PluginArgs, first_sentences
from podium.plugins.shared.followed import Followed
from podium.plugins.shared.normalize import default_normalize

_ANNOTATION: Final = "seccomp.security.alpha.kubernetes.io"
_ALLOWING: Final = frozenset({"SCMP_ACT_ALLOW", "SCMP_ACT_LOG"})


class Syscalls(Value, frozen=True):
    """System calls, and what happens to a process that makes one of them."""

    action: str = ""
    names: tuple[str, ...] = ()


class SeccompProfileSpec(Value, frozen=True):
    """The rules of a profile."""

    syscalls: tuple[Syscalls, ...] = ()


class SeccompProfile(NamespacedObject, frozen=True):
    """A seccomp profile of the Security Profiles Operator."""

    spec: SeccompProfileSpec = SeccompProfileSpec()


SECCOMP_PROFILES = custom_resource("security-profiles-operator.x-k8s.io/v1beta1", "seccompprofiles", SeccompProfile)


class SySchedArgs(PluginArgs, frozen=True, kw_only=True):
    """The plugin's args: the profile of pods without one of their own, which allows all system calls."""

    default_profile_namespace: str = "default"
    default_profile_name: str = "all-syscalls"


class SySched(fwk.TableScorePlugin, fwk.ScorePlugin):
    """Scores by the number of system calls that pods are exposed to without using them."""

    Args = SySchedArgs
    args: SySchedArgs

    def __init__(self, args: SySchedArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self._profiles = handle.lister(SECCOMP_PROFILES)
        self._default_key = f"{args.default_profile_namespace}/{args.default_profile_name}"
        self._followed = Followed(self._profiles, self._on_profile_change)
        self._bit_of: dict[str, int] = {}
        self._masks: dict[str, int] = {}
        self._forget_rows()

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Score with the cost, which normalisation turns around; 0 everywhere for a pod without any profile."""
        self._followed.read()
        own_calls = self._calls_of(pod)
        if not own_calls:
            return np.zeros(len(rows), np.int64)
        self._renew(snapshot)
        ids, positions = np.unique(self._set_ids[rows], return_inverse=True)
        foreign_counts = [(self._sets[set_id] & ~own_calls).bit_count() for set_id in ids.tolist()]
        foreign = np.array(foreign_counts, np.int64).take(positions)
        count, call_sum = self._pod_counts[rows], self._call_sums[rows]
        return foreign * (count + 1) + count * own_calls.bit_count() - call_sum

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Score as `score_rows`, for one node."""
        self._followed.read()
        own_calls = self._calls_of(pod)
        if not own_calls:
            return 0
        all_calls, count, call_sum = self._sum(node.pods)
        return (all_calls & ~own_calls).bit_count() * (count + 1) + count * own_calls.bit_count() - call_sum

    def normalize_scores(self, state: fwk.CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Scale to 0..MAX_NODE_SCORE, the lowest cost best."""
        return default_normalize(scores, reverse=True)

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register no event: the plugin rejects no node."""
        return ()

    def notes(self) -> Sequence[str]:
        """Return which profiles allow nothing, and whether the default one is missing, the first few."""
        return first_sentences(self._oddities())

    def _oddities(self) -> Iterator[str]:
        if self._profiles.get(self._default_key) is None:
            yield f"the SeccompProfile {self._default_key} is missing, so nodes are alike for pods without a profile"
        for profile in sorted(self._profiles.list(), key=lambda profile: profile.key):
            if not any(rule.action in _ALLOWING and rule.names for rule in profile.spec.syscalls):
                yield f"SeccompProfile {profile.key}: spec.syscalls: allows nothing, so it counts as none"

    # ------------------------------------------------------------ system calls by node

    def _forget_rows(self) -> None:
        self._rows = ChangedRows()
        self._sets: list[int] = [0]
        self._id_of: dict[int, int] = {0: 0}
        self._set_ids = np.zeros(0, np.intp)
        self._pod_counts: IntArray = np.zeros(0, np.int64)
        self._call_sums: IntArray = np.zeros(0, np.int64)

    def _renew(self, snapshot: Snapshot) -> None:
        """Bring the sets of calls and the counts of pods by row up to date."""
        if len(self._sets) > 2 * len(snapshot.pods) + 64:
            self._forget_rows()
        missing = max(0, len(snapshot.pods) - len(self._set_ids))
        self._set_ids, self._pod_counts, self._call_sums = (
            np.append(column, np.zeros(missing, column.dtype))
            for column in (self._set_ids, self._pod_counts, self._call_sums)
        )
        for row in self._rows.take(snapshot):
            all_calls, self._pod_counts[row], self._call_sums[row] = self._sum(snapshot.pods[row].values())
            if all_calls not in self._id_of:
                self._id_of[all_calls] = len(self._sets)
                self._sets.append(all_calls)
            self._set_ids[row] = self._id_of[all_calls]

    def _sum(self, pods: Iterable[Pod]) -> tuple[int, int, int]:
        """Return the calls of all these pods, how many pods there are, and the sum of their numbers of calls."""
        all_calls = count = call_sum = 0
        for pod in pods:
            calls = self._calls_of(pod)
            all_calls |= calls
            count += 1
            call_sum += calls.bit_count()
        return all_calls, count, call_sum

    # ------------------------------------------------------------ system calls of a pod

    def _on_profile_change(self, old: SeccompProfile | None, new: SeccompProfile | None) -> None:
        for profile in (old, new):
            if profile is not None:
                self._masks.pop(profile.key, None)
        self._forget_rows()

    def _calls_of(self, pod: Pod) -> int:
        """Return the pod's system calls, one bit each: those of all its profiles, or else of the default one."""
        calls = 0
        for key in _profile_keys(pod.spec):
            calls |= self._mask(key)
        calls |= self._mask(self._annotated_key(pod))
        return calls or self._mask(self._default_key)

    def _annotated_key(self, pod: Pod) -> str:
        """Return the first profile by key of the annotations that exists; "" if there is none."""
        for name, path in sorted(pod.metadata.annotations.items()):
            if _ANNOTATION in name:
                key = profile_key(path)
                if not key or self._profiles.get(key) is not None:
                    return key
        return ""

    def _mask(self, key: str) -> int:
        """Return the system calls that the profile allows; none if it does not exist."""
        mask = self._masks.get(key)
        if mask is None:
            profile = self._profiles.get(key) if key else None
            mask = 0
            for rule in () if profile is None else profile.spec.syscalls:
                for name in rule.names if rule.action in _ALLOWING else ():
                    mask |= 1 << self._bit_of.setdefault(name, len(self._bit_of))
            if profile is not None:
                self._masks[key] = mask
        return mask


@once_per_spec
def _profile_keys(spec: PodSpec) -> tuple[str, ...]:
    """Return the profiles of the pod and of its app containers."""
    return tuple(dict.fromkeys(_localhost_profiles(spec)))


def _localhost_profiles(spec: PodSpec) -> Iterator[str]:
    for context in (spec.security_context, *(container.security_context for container in spec.containers)):
        source = context.seccomp_profile
        if source.type == "Localhost" and (key := profile_key(source.localhost_profile)):
            yield key


def profile_key(path: str) -> str:
    """Return the key of the SeccompProfile that the operator has written to that file; "" if the path is another one.

    The last folder is the namespace, and the file without its extension the name.
    """
    folder, slash, file = path.rpartition("/")
    namespace = folder.rpartition("/")[2]
    name = file[: file.rfind(".")] if "." in file else file
    return f"{namespace}/{name}" if slash and namespace and name else ""

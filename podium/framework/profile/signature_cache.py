"""The pod signature cache: an attempt's results about the nodes are reused for the next pod of the same spec.

Owns which answers are cached, for how long, and for how many signatures. A plugin declares its `Scope`; the answers of
a plugin that depends only on the node, or on the pods on it, are cached by row and refreshed only where a row has
changed since. All other plugins are called as if there were no cache, in their place in the order. An attempt has
exactly the same result as without the cache: the same examined nodes, the same diagnosis, scores and failures.

An example: a ReplicaSet has three pods with one hard spread constraint, on nodes n1, n2 and n3, and n1 is tainted.

- The first pod, web-1, makes no signature. Its spec is remembered, and the search calls the plugins as usual.
- For web-2 the spec is seen again, so every node is evaluated once. `filters` is then a run of cached filters
  (NodeUnschedulable, NodeName, TaintToleration and NodeResourcesFit), followed by PodTopologySpread and
  InterPodAffinity themselves, whose scope is CLUSTER. In the column of the run, n1 has the number of TaintToleration's
  status, n2 and n3 have 0. web-2 is placed on n3.
- For web-3 the snapshot's log says that the usage of one row has changed. NodeResourcesFit (scope USAGE) is called for
  n3 alone, TaintToleration (scope NODE) not at all, and PodTopologySpread for all nodes that the run lets pass. If n2
  is relabelled meanwhile, the whole run is called for n2, too.

Some things about it surprise, for these reasons:

- The key is the identity of the spec. Equal specs are one object, because they are interned when they are decoded, so
  no attempt compares or hashes a spec. A pod whose status has amounts or containers is left out: its requests may not
  be those of its spec.
- The first pod pays nothing. A search may stop after a sample of the nodes, a signature needs all of them, and a pod
  without siblings would never earn that back.
- A plugin that must be called ends a run, even between two cached ones: a diagnosis names the first filter that rejects
  a node, so the order of the filters is part of the result.
- Nothing expires. The logs of the snapshot say which rows have changed; when more than half have, or a log no longer
  reaches back, all rows are evaluated in one pass, which is cheaper than many calls for one row.
- Scores lag behind verdicts. No attempt reads the score of a rejected row, so it is scored when a later change
  lets it pass (`_stale`), and no row is scored as long as attempts end before scoring.
- A plugin that raises costs the signature, not the pod: the attempt calls the plugins itself and meets the failure
  where it belongs, or never if the search ends before that node.

- Members of different groups share a signature, and so do pods with different claims for devices: the key is the spec
  without the names of these. Plugins from outside of podium with a scope of their own may read them, and with one of
  these in the profile the key is the spec as it is.
- The simulation of a group uses the signatures of the snapshot that it is a fork of, on the same columns. When a fork
  is left, the rows that its members have touched are evaluated again, which are few, instead of all rows in each fork.

Invariant: only attempts on the live snapshot and on forks of it that know their fork point use it. Other forks,
nominated pods and dry runs always call the plugins.
Cost: the first pod of a spec does not use the cache; for the second one all nodes are evaluated once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from podium.cluster import Snapshot
from podium.framework.contract.plugin import Plugin
from podium.framework.profile.pod_signature import PodSignature, Profile
from podium.objects.core import Pod, PodSpec, has_references, without_references
from podium.objects.pod_limits import excess

ROWS_MAX: Final = 1 << 19
"""The most rows of all signatures together, at about 70 bytes each. The least recently used signature goes first."""

SIGNATURES_MAX: Final = 1024
"""The most specs that are remembered if there are few nodes: each keeps about 10 KB of derived values alive."""


class SignatureCache:
    """The pod signatures of one profile, on one snapshot and the forks of it that know their fork point."""

    def __init__(self, framework: Profile, rows_max: int = ROWS_MAX) -> None:
        """Keep at most this many rows over all signatures; 0 turns the cache off."""
        self._framework = framework
        self._rows_max = rows_max
        self._original: Snapshot | None = None
        self._snapshot: Snapshot | None = None
        """The snapshot of the last attempt: the original or a fork of it."""
        self._turned: list[PodSignature] = []
        """The signatures whose answers are about the last fork."""
        plugins = [*framework.pre_filter, *(form.plugin for form in framework.filters)]
        plugins += [*framework.pre_score, *(scorer.plugin for scorer, _ in framework.scorers)]
        # What is outside of the snapshot knows no forks.
        self._covers_forks = all(type(plugin).outside_changes is Plugin.outside_changes for plugin in plugins)
        self._ignores_references = all(map(_ignores_references, plugins))
        self._known: dict[int, PodSignature | PodSpec] = {}
        """By the identity of a spec: its signature, or the spec itself while only one pod of it has been seen."""

    def of(self, pod: Pod, snapshot: Snapshot) -> PodSignature | None:
        """Return the pod's signature, refreshed, or None if it has none (yet) and the plugins must be called.

        Pods that are rejected for their size have no signature.
        """
        if not self._rows_max or not depends_on_spec_only(pod):
            return None
        # Nearly every attempt is on the snapshot of the one before, and at a pod without a group.
        if (snapshot is not self._snapshot or snapshot.fork_point is not None) and not self._turn_to(snapshot):
            return None
        spec = pod.spec
        if self._ignores_references and has_references(spec):
            spec = without_references(spec)
        key = id(spec)
        signature = self._known.pop(key, None)
        # Only the second pod of a spec pays for a signature: many specs have a single pod.
        if signature is None:
            self._make_room(len(snapshot.nodes))
            self._known[key] = spec
            return None
        try:
            if isinstance(signature, PodSpec):
                if excess(signature):
                    return None
                signature = PodSignature(self._framework, pod, spec, snapshot)
                self._note(signature)
            elif signature.qos_class != pod.status.qos_class:
                # The API server derives the class from the spec, but a file may say anything.
                return None
            else:
                if signature.snapshot is not snapshot:
                    signature.turn_to(snapshot)
                    self._note(signature)
                signature.refresh(pod)
        except BaseException:  # noqa: BLE001 - a plugin may raise anything; the attempt meets it again if it gets there
            return None
        self._known[key] = signature  # the most recently used is last
        return signature

    def forget(self) -> None:
        """Drop everything: plugins' scopes, or answers that they declared to depend on the spec, have changed."""
        self._known.clear()

    def statistics(self) -> Mapping[str, int]:
        """Return the number of cached signatures, and of specs seen only once."""
        signatures = sum(isinstance(entry, PodSignature) for entry in self._known.values())
        return {"signatures": signatures, "specs seen once": len(self._known) - signatures}

    def _turn_to(self, snapshot: Snapshot) -> bool:
        """Note which snapshot the next answers are about, and return whether answers about it are cached."""
        original, point = snapshot, snapshot.fork_point
        if snapshot.is_fork:
            # Most forks live for one attempt, and a cache of them would never be read again.
            if point is None or not self._covers_forks or not point.is_valid_for(snapshot):
                return False
            original = point.original
        if original is not self._original:
            self._original = original
            self._known.clear()
            self._turned.clear()
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            # At once, since a signature that is not asked for again would keep the fork alive.
            for signature in self._turned:
                signature.turn_to(original)
            self._turned.clear()
        return True

    def _note(self, signature: PodSignature) -> None:
        if signature.snapshot.is_fork:
            self._turned.append(signature)

    def _make_room(self, rows: int) -> None:
        # By rows, as one signature of a large cluster takes what hundreds do in a small one.
        signatures_max = min(SIGNATURES_MAX, self._rows_max // max(rows, 1))
        while self._known and len(self._known) >= signatures_max:
            del self._known[next(iter(self._known))]


def _ignores_references(plugin: Plugin) -> bool:
    """Return whether cached answers of the plugin are the same for pods of all groups, and with any claims.

    Those of podium itself read a pod's group and the names of its claims in scope CLUSTER only. Others may read all of
    a spec in any scope.
    """
    kind = type(plugin)
    is_own = kind.__module__.startswith("podium.plugins.")
    has_scope = kind.filter_scope is not Plugin.filter_scope or kind.score_scope is not Plugin.score_scope
    return is_own or not has_scope


def depends_on_spec_only(pod: Pod) -> bool:
    """Return True if node-scoped plugins cannot distinguish the pod from others with the same spec."""
    status = pod.status
    return (
        # A pod with a status was resized or has run, and its requests differ from the spec's.
        not pod.node_name
        and status.resources is None
        and not status.container_statuses
        and not status.init_container_statuses
        and not status.allocated_resources
    )

"""Turns wishes that are given up altogether into the smallest edits that are enough.

Owns the amounts: the largest request that fits on a node, the lowest maxSkew, and the least change of a node affinity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.engine.placing import Engine
from podium.engine.store import ObjectStore
from podium.framework.profile.runtime import Framework
from podium.insight.blockers import blockers_of
from podium.insight.edits import INTRUSIVENESS, Edit, EditKind, EditSet, in_order
from podium.insight.pod_edits import Wish, apply_pod_edits, lower_request, raise_max_skew
from podium.insight.requests import least_request
from podium.lib.time_limit import TimeLimit
from podium.objects.core import Pod
from podium.objects.requests import filter_requests
from podium.objects.resource_types import PODS

_VARIANTS_MAX: Final = 5


@dataclass(frozen=True)
class SmallestEdits:
    """The smallest edits of one pod."""

    pod: Pod
    framework: Framework
    store: ObjectStore
    limit: TimeLimit

    def sets(
        self, concessions: Sequence[Wish], rows: Sequence[int], engine: Engine, evictions: Sequence[Edit] = ()
    ) -> Iterator[EditSet]:
        """Yield sets of edits that give up as little of these wishes as possible, so that one of the rows is enough.

        Args:
            engine: the cluster of the rows.
            evictions: evictions in the same set. The pod may take the requests of the evicted pods.
        """
        plain = [wish.relaxed for wish in concessions if wish.skew is None and not wish.resource and not wish.edits_for]
        resources = [wish.resource for wish in concessions if wish.resource]
        requests = self._lower_requests(resources, rows, engine, evictions)
        if requests is None:
            return
        skews = [wish for wish in concessions if wish.skew is not None]
        for variant in self._variants([wish for wish in concessions if wish.edits_for is not None], rows, engine):
            edits = [*plain, *requests, *variant]
            yield (*edits, *(self._raise_skews(edits, skews, engine) if skews else ()))

    def _lower_requests(
        self, resources: Sequence[str], rows: Sequence[int], engine: Engine, evictions: Sequence[Edit]
    ) -> list[Edit] | None:
        """Lower the requests as little as possible on one of the rows; return None if one cannot be lowered enough."""
        if not resources:
            return []
        snapshot, requests = engine.cache.snapshot(), filter_requests(self.pod.spec)
        free = {name: snapshot.allocatable(name) - snapshot.requested(name) for name in resources}
        for edit in evictions:
            victim = self.store.get(PODS, f"{edit.namespace}/{edit.name}") if edit.kind is EditKind.EVICT else None
            if victim is not None and (row := snapshot.row_of.get(victim.node_name)) is not None:
                usage = snapshot.pod_usage(row, victim)
                for name in resources:
                    free[name][row] += usage.requests.get(name, 0)
        # The node on which most of every request can stay; of equal ones the first.
        candidates = np.sort(np.asarray(rows))
        shares = np.min([free[name][candidates] / requests[name] for name in resources], axis=0)
        best = int(candidates[np.argmax(shares)])
        edits = []
        for name in resources:
            total = max(int(free[name][best]), least_request(self.pod, name))
            reduction = lower_request(self.pod, name, min(total, requests[name]))
            if reduction is None or not reduction.patch:
                return None
            edits.append(reduction)
        return edits

    def _variants(self, choices: Sequence[Wish], rows: Sequence[int], engine: Engine) -> Iterable[Sequence[Edit]]:
        """Return one edit for each way to give up the wish on one of the rows, the least intrusive first."""
        if not choices:
            return [()]
        (wish,) = choices
        assert wish.edits_for is not None
        snapshot = engine.cache.snapshot()
        variants: dict[tuple[object, ...], Edit] = {}
        for row in rows[: _VARIANTS_MAX * 10]:
            node = snapshot.nodes[row]
            assert node is not None
            for edit in wish.edits_for(node):
                variants.setdefault(edit.identity, edit)
        ranking = sorted(variants.values(), key=lambda edit: INTRUSIVENESS[edit.kind])
        return [(edit,) for edit in (*ranking[:_VARIANTS_MAX], *ranking[-1:])]

    def _raise_skews(self, edits: Sequence[Edit], skews: Sequence[Wish], engine: Engine) -> list[Edit]:
        """Raise each maxSkew as little as possible, given the other edits."""
        pod_count = len(self.store.objects(PODS))

        def fits(raises: Iterable[Edit]) -> bool:
            self.limit.check()
            pod = apply_pod_edits(self.pod, in_order([*edits, *raises]))
            return bool(len(blockers_of(engine, self.framework, pod).feasible()))

        raises = {wish.name: wish.relaxed for wish in skews}
        for wish in skews:
            assert wish.skew is not None
            low = self.pod.spec.topology_spread_constraints[wish.skew].max_skew + 1
            # No skew can be larger than the number of pods, plus the one that comes.
            high = max(low, pod_count + 1)
            while low < high:
                middle = (low + high) // 2
                if fits({**raises, wish.name: raise_max_skew(self.pod, wish.skew, middle)}.values()):
                    high = middle
                else:
                    low = middle + 1
            # One constraint after the other: the later ones are bisected with the earlier ones settled.
            raises[wish.name] = raise_max_skew(self.pod, wish.skew, low)
        return list(raises.values())

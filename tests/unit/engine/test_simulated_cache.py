from __future__ import annotations

from typing import Any

import pytest

from podium.cluster import CacheError, Snapshot
from podium.cluster.affinity_terms import TermKind
from podium.cluster.existing_terms import IncomingPod
from podium.cluster.pod_groups import PodGroupState
from podium.engine.simulated_cache import SimulatedCache
from podium.objects.core import Pod
from tests.builders import ZONE_LABEL, node, pod, snapshot_of

TERM = {"topologyKey": ZONE_LABEL, "labelSelector": {"matchLabels": {"app": "web"}}}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]}
PLAIN = pod("plain", group="gang")
ALOOF = pod("aloof", group="gang", affinity={"podAntiAffinity": REQUIRED})
FOND = pod("fond", group="gang", affinity={"podAffinity": PREFERRED})
INCOMING = IncomingPod("default", {"app": "web"}, {})


def simulate(*items: Any, members: tuple[Pod, ...] = (PLAIN, ALOOF, FOND)) -> tuple[SimulatedCache, Snapshot]:
    snapshot = snapshot_of(node("n1", zone="a"), node("n2", zone="b"), *items)
    group = PodGroupState({member.uid: member for member in members})
    return SimulatedCache(snapshot, snapshot.pods, group), snapshot


def terms(cache: SimulatedCache, *kinds: TermKind) -> int:
    return len(cache.snapshot().existing_terms.matching(INCOMING, kinds))


def test_a_pod_that_takes_its_place_counts_only_in_the_simulation() -> None:
    cache, original = simulate()
    cache.assume_pod(PLAIN, "n2")
    assert cache.is_assumed(PLAIN.uid)
    assert cache.pod(PLAIN.uid) is not None
    assert cache.pod(FOND.uid) is None
    assert cache.snapshot().pod_count[original.row_of["n2"]] == 1
    assert original.pod_count.sum() == 0
    assert cache.group.scheduled_count == 1
    with pytest.raises(CacheError):
        cache.assume_pod(PLAIN, "n1")
    assert cache.forget_pod(PLAIN)
    assert not cache.forget_pod(PLAIN)
    assert cache.snapshot().pod_count.sum() == cache.group.scheduled_count == 0


def test_anti_affinity_keeps_no_pod_away_on_a_node_that_had_no_such_pod() -> None:
    cache, _ = simulate()
    cache.assume_pod(ALOOF, "n1")
    assert terms(cache, TermKind.REQUIRED_ANTI_AFFINITY) == 0


def test_anti_affinity_keeps_pods_away_on_a_node_that_had_such_a_pod() -> None:
    affinity = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**TERM, "topologyKey": "rack"}]}
    }
    cache, _ = simulate(pod("there", node="n1", affinity=affinity))
    cache.assume_pod(ALOOF, "n1")
    assert terms(cache, TermKind.REQUIRED_ANTI_AFFINITY) == 2


def test_preferred_terms_are_shown_to_pods_that_have_some_themselves() -> None:
    cache, _ = simulate()
    cache.assume_pod(FOND, "n1")
    cache.assume_pod(PLAIN, "n1")
    assert terms(cache, TermKind.PREFERRED_AFFINITY) == 0
    cache.show_to(FOND)
    assert terms(cache, TermKind.PREFERRED_AFFINITY) == 1
    cache.show_to(ALOOF)
    assert terms(cache, TermKind.PREFERRED_AFFINITY) == 0
    assert cache.forget_pod(FOND)

"""What claims take from volumes that come and go, against a model that looks at each volume."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.client.informer import Informer
from podium.objects.index import Index
from podium.objects.resource_types import PERSISTENT_VOLUMES
from podium.objects.storage import PersistentVolume, PersistentVolumeClaim
from podium.plugins.volumes.claims import place_of_volume
from podium.plugins.volumes.free_volumes import VolumeIndex
from podium.plugins.volumes.grouped import index_of
from podium.plugins.volumes.matching import choice_for, choose, rows_with_volumes
from podium.plugins.volumes.volume_nodes import node_affinity_of
from tests.builders import node, snapshot_of
from tests.unit.plugins.clusters import Listed
from tests.unit.plugins.storage import claim, volume

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
NODES = [node(name, labels={HOST: name, ZONE: zone}) for name, zone in (("n0", "a"), ("n1", "a"), ("n2", "b"))]
CLAIMS = [
    claim("small", size="1Gi"),
    claim("large", size="2Gi"),
    claim("ssd", selector={"matchLabels": {"disk": "ssd"}}),
]
GIBI_NANO = 2**30 * 10**9

reaches = st.sampled_from(
    (
        None,
        *({HOST: [name]} for name in ("n0", "n1", "gone")),
        {ZONE: ["a"]},
        {ZONE: ["a", "b"]},
        {HOST: ["n2"], ZONE: ["b"]},
    )
)
states = st.builds(
    volume,
    st.sampled_from(["v0", "v1", "v2", "v3", "v4"]),
    size=st.sampled_from(("1Gi", "2Gi", "much")),
    reach=reaches,
    labels=st.sampled_from(({}, {}, {"disk": "ssd"})),
    phase=st.sampled_from(("Available", "Available", "Released")),
    deleting=st.sampled_from((False, False, False, True)),
    kept_for=st.sampled_from((None, None, None, *CLAIMS)),
)


def suits(one: PersistentVolume, wanted: PersistentVolumeClaim) -> bool:
    size, asked = one.spec.capacity["storage"], wanted.spec.resources.requests["storage"]
    return size != "much" and size >= asked and one.metadata.deletion_timestamp is None


def taken_first(
    index: Index[PersistentVolume],
    wanted: PersistentVolumeClaim,
    labels: Mapping[str, str],
    taken: Collection[str],
    assumed: Mapping[str, PersistentVolume],
) -> PersistentVolume | None:
    """The volume that the claim takes, as upstream finds it: by a walk over all of its class."""
    seen = [assumed.get(each.key, each) for each in (*index.of("claim " + wanted.key), *index.of("class slow"))]
    named = lambda each: each.spec.claim_ref is not None and each.spec.claim_ref.name == wanted.metadata.name  # noqa: E731
    covers = lambda each: (found := node_affinity_of(each)) is None or found.matches(labels)  # noqa: E731
    for kept in seen:
        if named(kept) and suits(kept, wanted) and kept.key not in taken:
            return kept if covers(kept) else None
    selector = {} if wanted.spec.selector is None else {"disk": "ssd"}
    free = [
        each
        for each in seen
        if each.spec.claim_ref is None
        and suits(each, wanted)
        and each.status.phase == "Available"
        and selector.items() <= each.metadata.labels.items()
    ]
    free.sort(key=lambda each: each.spec.capacity["storage"])
    return next((each for each in free if each.key not in taken and covers(each)), None)


@settings(max_examples=150, deadline=None)
@given(
    changes=st.lists(st.one_of(states, st.sampled_from(["v0", "v1", "v2"])), max_size=14),
    assumptions=st.lists(st.tuples(st.integers(0, 4), st.sampled_from(CLAIMS)), max_size=2),
    wanted=st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=3, unique_by=id),
)
def test_claims_take_what_a_walk_over_all_volumes_finds(
    changes: list[Any], assumptions: list[tuple[int, PersistentVolumeClaim]], wanted: list[PersistentVolumeClaim]
) -> None:
    informer = Informer(PERSISTENT_VOLUMES, lambda resource, error: None)
    plain: Index[PersistentVolume] = Index(place_of_volume)
    informer.keep(plain)
    index, snapshot = index_of(informer, VolumeIndex), snapshot_of(*NODES)
    rows = snapshot.order[::-1].copy()
    for change in changes:
        if isinstance(change, PersistentVolume):
            informer.set(change)
        elif informer.get(change) is not None:
            informer.remove(change)
        # Asked after each change, so that what is kept from the last question has to follow.
        rows_with_volumes([choice_for(each, index()) for each in wanted], snapshot, rows)
    free = [each for each in informer.list() if each.spec.claim_ref is None]
    assumed = {
        each.key: volume(each.key, size=each.spec.capacity["storage"], kept_for=to, reach=_reach_of(each))
        for place, to in assumptions
        if place < len(free) and (each := free[place]).status.phase == "Available"
    }
    choices = [choice_for(each, index(), assumed.values()) for each in wanted]
    found = rows_with_volumes(choices, snapshot, rows)
    for place, row in enumerate(rows.tolist()):
        labels, taken = snapshot.node(row).labels, set[str]()
        for each, choice, has in zip(wanted, choices, found, strict=True):
            expected = taken_first(plain, each, labels, taken, assumed)
            chosen = choose(choice, labels, taken)
            assert (chosen and chosen.key) == (expected and expected.key)
            assert bool(has[place]) == (expected is not None)
            if expected is not None:
                taken.add(expected.key)


def _reach_of(one: PersistentVolume) -> dict[str, tuple[str, ...]] | None:
    affinity = one.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    return {each.key: each.values for each in affinity.required.node_selector_terms[0].match_expressions}


def test_volumes_on_hundreds_of_nodes_are_looked_at_as_one() -> None:
    index = index_of(Listed([volume(f"v{place}", reach={HOST: [f"n{place}"]}) for place in range(300)]), VolumeIndex)()
    choice = choice_for(claim(), index)
    [alike] = choice.free
    assert len(alike.volumes) == 300
    snapshot = snapshot_of(*NODES)
    assert np.count_nonzero(choice.coverage(snapshot, snapshot.order)) == 3
    chosen = choose(choice, {HOST: "n7"}, set())
    assert chosen is not None
    assert chosen.key == "v7"


def test_kinds_of_volumes_that_are_gone_leave_nothing() -> None:
    index = VolumeIndex()
    index.put(volume("v0", labels={"disk": "ssd"}))
    index.replace(volume("v0", labels={"disk": "ssd"}), volume("v0", labels={"disk": "hdd"}))
    assert [dict(each.example.metadata.labels) for each in index.free("slow")] == [{"disk": "hdd"}]
    index.drop(volume("v0", labels={"disk": "hdd"}))
    assert list(index.free("slow")) == []

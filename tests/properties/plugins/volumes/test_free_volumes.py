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


def suits(candidate: PersistentVolume, claim_object: PersistentVolumeClaim) -> bool:
    size, size_requested = candidate.spec.capacity["storage"], claim_object.spec.resources.requests["storage"]
    return size != "much" and size >= size_requested and candidate.metadata.deletion_timestamp is None


def taken_first(
    index: Index[PersistentVolume],
    claim_object: PersistentVolumeClaim,
    labels: Mapping[str, str],
    keys_taken: Collection[str],
    assumptions: Mapping[str, PersistentVolume],
) -> PersistentVolume | None:
    """The volume that the claim takes, as upstream finds it: by a walk over all of its class."""
    candidates = [
        assumptions.get(candidate.key, candidate)
        for candidate in (*index.of("claim " + claim_object.key), *index.of("class slow"))
    ]

    def is_named(candidate: PersistentVolume) -> bool:
        reference = candidate.spec.claim_ref
        return reference is not None and reference.name == claim_object.metadata.name

    covers = lambda candidate: (affinity := node_affinity_of(candidate)) is None or affinity.matches(labels)  # noqa: E731
    for candidate in candidates:
        if is_named(candidate) and suits(candidate, claim_object) and candidate.key not in keys_taken:
            return candidate if covers(candidate) else None
    selector = {} if claim_object.spec.selector is None else {"disk": "ssd"}
    free = [
        candidate
        for candidate in candidates
        if candidate.spec.claim_ref is None
        and suits(candidate, claim_object)
        and candidate.status.phase == "Available"
        and selector.items() <= candidate.metadata.labels.items()
    ]
    free.sort(key=lambda candidate: candidate.spec.capacity["storage"])
    return next((candidate for candidate in free if candidate.key not in keys_taken and covers(candidate)), None)


@settings(max_examples=150, deadline=None)
@given(
    changes=st.lists(st.one_of(states, st.sampled_from(["v0", "v1", "v2"])), max_size=14),
    # One volume at most is assumed for a claim: of two that name it upstream takes either.
    assumptions=st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(CLAIMS)), max_size=2, unique_by=lambda pair: pair[1].key
    ),
    claims=st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=3, unique_by=id),
)
def test_claims_take_what_a_walk_over_all_volumes_finds(
    changes: list[Any], assumptions: list[tuple[int, PersistentVolumeClaim]], claims: list[PersistentVolumeClaim]
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
        rows_with_volumes([choice_for(claim_object, index()) for claim_object in claims], snapshot, rows)
    free = [item for item in informer.list() if item.spec.claim_ref is None]
    names_kept = {item.spec.claim_ref.name for item in informer.list() if item.spec.claim_ref is not None}
    assumed_volumes = {
        item.key: volume(item.key, size=item.spec.capacity["storage"], kept_for=to, reach=_reach_of(item))
        for place, to in assumptions
        if place < len(free)
        and (item := free[place]).status.phase == "Available"
        and to.metadata.name not in names_kept
    }
    choices = [choice_for(claim_object, index(), assumed_volumes.values()) for claim_object in claims]
    masks = rows_with_volumes(choices, snapshot, rows)
    for place, row in enumerate(rows.tolist()):
        labels, keys_taken = snapshot.node(row).labels, set[str]()
        for item, choice, has in zip(claims, choices, masks, strict=True):
            volume_expected = taken_first(plain, item, labels, keys_taken, assumed_volumes)
            volume_chosen = choose(choice, labels, keys_taken)
            assert (volume_chosen and volume_chosen.key) == (volume_expected and volume_expected.key)
            assert bool(has[place]) == (volume_expected is not None)
            if volume_expected is not None:
                keys_taken.add(volume_expected.key)


def _reach_of(item: PersistentVolume) -> dict[str, tuple[str, ...]] | None:
    affinity = item.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    return {
        expression.key: expression.values for expression in affinity.required.node_selector_terms[0].match_expressions
    }


def test_volumes_on_hundreds_of_nodes_are_looked_at_as_one() -> None:
    index = index_of(Listed([volume(f"v{place}", reach={HOST: [f"n{place}"]}) for place in range(300)]), VolumeIndex)()
    choice = choice_for(claim(), index)
    [alike] = choice.free
    assert len(alike.volumes) == 300
    snapshot = snapshot_of(*NODES)
    assert np.count_nonzero(choice.coverage(snapshot, snapshot.order)) == 3
    volume_chosen = choose(choice, {HOST: "n7"}, set())
    assert volume_chosen is not None
    assert volume_chosen.key == "v7"


def test_kinds_of_volumes_that_are_gone_leave_nothing() -> None:
    index = VolumeIndex()
    index.put(volume("v0", labels={"disk": "ssd"}))
    index.replace(volume("v0", labels={"disk": "ssd"}), volume("v0", labels={"disk": "hdd"}))
    assert [dict(kind.example.metadata.labels) for kind in index.free("slow")] == [{"disk": "hdd"}]
    index.drop(volume("v0", labels={"disk": "hdd"}))
    assert list(index.free("slow")) == []

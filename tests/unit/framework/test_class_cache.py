from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.framework import kept_answers, search
from podium.framework.class_cache import CLASSES_KEPT_MAX, ClassCache
from tests.builders import pod
from tests.unit.framework.profiles import cluster, framework
from tests.unit.framework.warm_and_cold import World, histories, kinds
from tests.unit.plugins.random_clusters import clusters


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters, kinds, histories, st.sampled_from((0, 3)), st.sampled_from((0, 40)))
def test_attempts_come_to_what_they_come_to_without_the_cache(cluster, pods, history, few, percentage):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_answers, "FEW_ROWS", few)
        patch.setattr("podium.framework.class_cache.FEW_ROWS", few)
        patch.setattr(search, "MIN_FEASIBLE_NODES", 2)
        world = World(cluster, pods, percentage)
        for step in history:
            world.take(*step)


def test_specs_of_which_one_pod_has_come_are_not_all_remembered() -> None:
    snapshot = cluster(1)
    classes = ClassCache(framework())
    for number in range(CLASSES_KEPT_MAX + 50):
        assert classes.of(pod("web", labels={"number": "same"}, cpu=f"{number + 1}m"), snapshot) is None
    assert classes.statistics() == {"classes": 0, "specs met once": CLASSES_KEPT_MAX}

"""With answers that are kept by the spec of pods, any history comes to what it comes to without them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.framework.cycle import search
from podium.framework.profile import cached_answers as kept_answers
from tests.unit.framework.warm_and_cold import WarmAndCold, histories, histories_of_groups, kinds
from tests.unit.plugins.random_clusters import clusters


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters, kinds, histories, st.sampled_from((0, 3)), st.sampled_from((0, 40)))
def test_attempts_come_to_what_they_come_to_without_the_cache(cluster, pods, history, few_rows, percentage):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_answers, "FEW_ROWS", few_rows)
        patch.setattr("podium.framework.profile.pod_signature.FEW_ROWS", few_rows)
        patch.setattr(search, "MIN_FEASIBLE_NODES", 2)
        pair = WarmAndCold(cluster, pods, percentage)
        for step in history:
            pair.take(*step)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters, kinds, histories_of_groups, st.sampled_from((0, 3)), st.sampled_from((0, 40)))
def test_simulations_of_groups_come_to_what_they_come_to_without_the_cache(
    cluster, pods, history, few_rows, percentage
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_answers, "FEW_ROWS", few_rows)
        patch.setattr("podium.framework.profile.pod_signature.FEW_ROWS", few_rows)
        patch.setattr(search, "MIN_FEASIBLE_NODES", 2)
        # One kind that fits nearly everywhere, and one that fits a node once.
        plain, alone = {"requests": {"cpu": "300m"}}, {"host_ports": [{"hostPort": 80}]}
        pair = WarmAndCold(cluster, [plain, *pods, alone], percentage)
        for step in history:
            pair.take(*step)

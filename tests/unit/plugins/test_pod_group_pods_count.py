from __future__ import annotations

import numpy as np
import pytest

from podium.cluster import Snapshot
from podium.cluster.pod_groups import PodGroupState
from podium.framework.contract.pod_groups import Placement, ProposedGroup
from podium.framework.contract.status import PluginError
from podium.plugins.pod_group_pods_count import PodGroupPodsCount
from tests.builders import pod
from tests.unit.plugins.clusters import RecordingHandle

PLUGIN = PodGroupPodsCount(None, RecordingHandle())


def test_running_and_proposed_pods_count_alike() -> None:
    state = PodGroupState(assumed={"x": pod("x")}, assigned={"y": pod("y")})
    group = ProposedGroup(state, Placement("a", np.empty(0, np.intp)), [pod("z")])
    assert PLUGIN.score_placement(group, Snapshot()) == 3


def test_the_best_placement_gets_the_highest_score() -> None:
    assert PLUGIN.normalize_placement_scores([3, 2, 0]) == [100, 66, 0]
    with pytest.raises(PluginError, match="no pods from pod group"):
        PLUGIN.normalize_placement_scores([0, 0])

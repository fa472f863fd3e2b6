"""On any cluster, a plugin's two forms say the same of every node; a thousand clusters are tried in `tests/parity`."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.framework.contract.filter import FilterPlugin, TableFilterPlugin
from podium.framework.contract.score import ScorePlugin, TableScorePlugin
from podium.plugins import IN_TREE
from tests.unit.plugins.both_forms import CONFIGURED, hold_to_contract
from tests.unit.plugins.random_clusters import NODES, RandomCluster, clusters, new_pods


def test_every_plugin_with_both_forms_is_held_to_the_contract() -> None:
    has_both = {
        name
        for name, plugin in IN_TREE.items()
        if issubclass(plugin, (TableFilterPlugin, TableScorePlugin)) and issubclass(plugin, (FilterPlugin, ScorePlugin))
    }
    assert has_both == CONFIGURED.keys()


@settings(max_examples=60, deadline=None)
@given(cluster=clusters, pod=new_pods, row_count=st.integers(1, NODES))
def test_both_forms_agree(cluster: RandomCluster, pod: dict[str, Any], row_count: int) -> None:
    hold_to_contract(cluster, pod, row_count)

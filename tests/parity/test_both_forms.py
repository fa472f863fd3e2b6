"""Table form and node form of every in-tree plugin agree on a thousand random clusters."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.plugins.both_forms import CONFIGURED, hold_to_contract
from tests.unit.plugins.random_clusters import NODES, clusters, new_pods


def test_both_forms_agree_on_a_thousand_clusters():
    outspoken = set()

    @settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(cluster=clusters, pod=new_pods, row_count=st.integers(1, NODES))
    def hold(cluster, pod, row_count):
        outspoken.update(hold_to_contract(cluster, pod, row_count))

    hold()
    # A pod with devices to claim gets no further than PreFilter, all others are none of that plugin's business.
    assert outspoken == CONFIGURED.keys() - {"DynamicResources"}

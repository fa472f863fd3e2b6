import pytest

from benchmarks import fleets


@pytest.mark.long
def test_a_small_fleet_answers_whatever_has_changed():
    costs = fleets.measure(members=2, nodes=6, pods=12, questions=2)
    clusters = {(latency.kind, latency.clusters_max, latency.state): latency.clusters for latency in costs.latencies}
    assert clusters["plain", 0, fleets.UNCHANGED] == clusters["spread", 0, fleets.CHANGED] == 2
    assert clusters["plain", 1, fleets.NEW] == 1
    # There are fewer nodes than pods that must lie apart.
    assert clusters["apart", 0, fleets.CHANGED] == clusters["too large", 0, fleets.NEW] == 0
    assert fleets.table(costs).row_count == len(costs.latencies)
    assert len(fleets.checks(costs)) == 7

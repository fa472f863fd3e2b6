"""The usages with which pods count on their rows."""

from podium.cluster.pod_usage import PodUsage, pod_usage
from podium.cluster.pod_usages import PodUsages
from tests.builders import pod

UNUSUAL = PodUsage({"cpu": 7}, 7, 7, ())


def test_a_usage_that_does_not_follow_from_the_spec_is_kept_for_the_pod():
    usages, web = PodUsages(), pod("web", cpu="1")
    usages.put(3, web, UNUSUAL)
    assert usages.of(3, web) is UNUSUAL
    assert usages.of(4, web) is pod_usage(web)
    twin = usages.copy()
    usages.put(3, web, pod_usage(web))
    assert usages.of(3, web) is pod_usage(web)
    assert twin.pop(3, web) is UNUSUAL
    assert twin.of(3, web) is pod_usage(web)


def test_a_pod_whose_requests_cannot_be_read_counts_as_it_was_put():
    usages, web = PodUsages(), pod("web", cpu="none")
    usages.put(0, web, UNUSUAL)
    assert usages.of(0, web) is usages.pop(0, web) is UNUSUAL

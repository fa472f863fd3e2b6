"""Sums and comparisons of resources."""

from podium.provisioner.scheduling.amounts import (
    amounts_text,
    largest,
    less,
    requests_of,
    requests_of_all,
    smallest,
    total,
)
from tests.unit.provisioner.clusters import as_pod, pod


def test_a_pod_takes_its_requests_and_a_place() -> None:
    assert requests_of(as_pod(pod("a", cpu="100m", memory="1Ki"))) == {"cpu": 100, "memory": 1024, "pods": 1}
    two = [as_pod(pod("a", cpu="100m", memory="1Ki")), as_pod(pod("b", cpu="1", memory="1Ki"))]
    assert requests_of_all(two) == {"cpu": 1100, "memory": 2048, "pods": 2}
    assert requests_of_all([]) == {"pods": 0}


def test_amounts_are_added_and_taken_away() -> None:
    assert total({"cpu": 1}, {"cpu": 2, "gpu": 1}, {}) == {"cpu": 3, "gpu": 1}
    assert less({"cpu": 1}, {"cpu": 2, "gpu": 1}) == {"cpu": -1}


def test_the_largest_has_every_resource_and_the_smallest_only_common_ones() -> None:
    assert largest([{"cpu": 1}, {"cpu": 2, "gpu": 1}]) == {"cpu": 2, "gpu": 1}
    assert smallest({"cpu": 3, "gpu": 1}, {"cpu": 2}) == {"cpu": 2}


def test_amounts_are_shown_as_quantities() -> None:
    assert amounts_text({}) == "{}"
    assert amounts_text({"pods": 1, "cpu": 1500}) == '{"cpu":"1500m","pods":"1"}'

import pytest

from podium.engine.derivation.limit_ranges import claim_refusals, limit_range_refusals, with_limit_defaults
from tests.workload_manifests import claim, limit_range


def _spec(requests=None, limits=None, group="containers"):
    resources = {"requests": requests, "limits": limits}
    return {group: [{"name": "main", "resources": {name: part for name, part in resources.items() if part}}]}


def _fill(spec, *items):
    (container,) = with_limit_defaults(spec, [limit_range(*items)])["containers"]
    return container["resources"]


def _refusal(item, requests=None, limits=None, group="containers"):
    return limit_range_refusals(_spec(requests, limits, group), [limit_range({"type": "Container", **item})])


def test_missing_requests_and_limits_are_filled_in():
    item = {"type": "Container", "defaultRequest": {"cpu": "100m"}, "default": {"cpu": "1", "memory": "1Gi"}}
    assert _fill(_spec(), item) == {
        "requests": {"cpu": "100m", "memory": "1Gi"},
        "limits": {"cpu": "1", "memory": "1Gi"},
    }
    assert _fill(_spec({"cpu": "2"}, {"cpu": "3"}), item) == {
        "requests": {"cpu": "2", "memory": "1Gi"},
        "limits": {"cpu": "3", "memory": "1Gi"},
    }


def test_init_containers_are_filled_in_too():
    item = {"type": "Container", "defaultRequest": {"cpu": "100m"}}
    spec_after = with_limit_defaults(_spec(group="initContainers"), [limit_range(item)])
    assert spec_after["initContainers"][0]["resources"]["requests"] == {"cpu": "100m"}


def test_the_largest_and_smallest_amounts_are_defaults_where_none_are_given():
    assert _fill(_spec(), {"type": "Container", "max": {"cpu": "2"}}) == {
        "requests": {"cpu": "2"},
        "limits": {"cpu": "2"},
    }
    assert _fill(_spec(), {"type": "Container", "min": {"cpu": "1"}}) == {"requests": {"cpu": "1"}, "limits": {}}


def test_ranges_of_whole_pods_fill_in_nothing():
    assert _fill(_spec(), {"type": "Pod", "max": {"cpu": "2"}}) == {}


@pytest.mark.parametrize("group", ["containers", "initContainers"])
@pytest.mark.parametrize(
    ("item", "requests", "limits", "message"),
    [
        ({"min": {"cpu": "1"}}, {"cpu": "500m"}, None, "minimum cpu usage per Container is 1, but request is 500m"),
        ({"min": {"cpu": "1"}}, {}, None, "minimum cpu usage per Container is 1.  No request is specified"),
        ({"min": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "900m"}, "but limit is 900m"),
        ({"max": {"cpu": "2"}}, {"cpu": "1"}, {"cpu": "3"}, "maximum cpu usage per Container is 2, but limit is 3"),
        ({"max": {"cpu": "2"}}, {"cpu": "1"}, None, "maximum cpu usage per Container is 2.  No limit is specified"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {"cpu": "1"}, {"cpu": "3"}, "but provided ratio is 3.000000"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {}, {"cpu": "3"}, "but no request is specified or request is 0"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {"cpu": "1"}, {}, "but no limit is specified or limit is 0"),
    ],
)
def test_containers_outside_the_range_are_refused(item, requests, limits, message, group):
    assert message in _refusal(item, requests, limits, group)


def test_containers_within_the_range_are_not_refused():
    item = {"min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "2"}}
    assert _refusal(item, {"cpu": "1"}, {"cpu": "2"}) == ""


def test_a_range_of_pods_counts_all_containers_together():
    spec = {"containers": [*_spec({"cpu": "1"})["containers"], *_spec({"cpu": "1500m"}, {"cpu": "2"})["containers"]]}
    least = limit_range({"type": "Pod", "min": {"cpu": "2"}})
    assert limit_range_refusals(spec, [least]) == ""
    least = limit_range({"type": "Pod", "min": {"cpu": "3"}})
    assert limit_range_refusals(spec, [least]) == "minimum cpu usage per Pod is 3, but request is 2500m"
    spec_with_amounts = {**spec, "resources": {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}}
    assert limit_range_refusals(spec_with_amounts, [least]) == ""


def test_several_reasons_stand_in_a_list():
    message = _refusal({"min": {"cpu": "1", "memory": "1Gi"}}, {"cpu": "500m", "memory": "1Mi"})
    assert message == (
        "[minimum cpu usage per Container is 1, but request is 500m, "
        "minimum memory usage per Container is 1Gi, but request is 1Mi]"
    )


def test_a_reason_that_several_containers_give_stands_once():
    spec = {"containers": [{"name": name, "resources": {"requests": {"cpu": "1"}}} for name in ("main", "log")]}
    ratio = limit_range({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}})
    reason = "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"
    assert limit_range_refusals(spec, [ratio]) == reason


def test_amounts_that_cannot_be_read_refuse_nothing():
    assert _refusal({"min": {"cpu": "x"}}, {"cpu": "1"}) == ""


def test_claims_to_storage_outside_the_range_are_refused():
    limits = [limit_range({"type": "PersistentVolumeClaim", "min": {"storage": "2Gi"}, "max": {"storage": "8Gi"}})]
    assert claim_refusals(claim("data", "5Gi"), limits) == ""
    assert claim_refusals(claim("data", "1Gi"), limits).endswith("is 2Gi, but request is 1Gi")
    assert claim_refusals(claim("data", "9Gi"), limits) == (
        "maximum storage usage per PersistentVolumeClaim is 8Gi, but request is 9Gi"
    )
    assert claim_refusals(claim("data", "x"), limits) == ""

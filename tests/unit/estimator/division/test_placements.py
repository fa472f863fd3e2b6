import pytest
from msgspec import convert

from podium.estimator.division.bindings import Placement
from podium.estimator.division.placements import admitted_placement
from podium.estimator.errors import EstimateError


def _admit(**fields):
    return admitted_placement(convert(fields, Placement))


def test_defaults_are_those_of_the_webhook():
    placement = _admit(spreadConstraints=[{}, {"spreadByLabel": "rack"}], replicaScheduling={})
    assert [(item.spread_by_field, item.min_groups) for item in placement.spread_constraints] == [
        ("cluster", 1),
        ("", 1),
    ]
    strategy = placement.replica_scheduling
    assert (strategy.replica_scheduling_type, strategy.replica_division_preference) == ("Divided", "Weighted")


def test_an_empty_placement_is_left_as_it_is():
    assert _admit() == Placement()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"spreadConstraints": [{"spreadByField": "region"}]}, "a constraint by cluster is required"),
        ({"spreadConstraints": [{"spreadByField": "rack"}]}, r"spreadConstraints\[0\].spreadByField: expected one of"),
        ({"spreadConstraints": [{"spreadByField": "cluster", "spreadByLabel": "x"}]}, "should not co-exist"),
        ({"spreadConstraints": [{"minGroups": -1}]}, "must not be negative"),
        ({"spreadConstraints": [{"minGroups": 3, "maxGroups": 2}]}, "maxGroups must not be less than minGroups"),
        ({"spreadConstraints": [{}, {}]}, "several constraints by cluster"),
        ({"replicaScheduling": {"replicaSchedulingType": "Random"}}, "replicaSchedulingType: expected one of"),
        ({"replicaScheduling": {"replicaDivisionPreference": "Best"}}, "replicaDivisionPreference: expected one of"),
        ({"replicaScheduling": {"weightPreference": {"dynamicWeight": "Free"}}}, "expected AvailableReplicas"),
        (
            {"replicaScheduling": {"weightPreference": {"staticWeightList": [{"weight": 0}]}}},
            r"staticWeightList\[0\].weight: must be at least 1",
        ),
        ({"clusterAffinity": {}, "clusterAffinities": [{"affinityName": "a"}]}, "must not be combined"),
        ({"clusterAffinities": [{}]}, r"clusterAffinities\[0\].affinityName: Required value"),
        ({"clusterAffinities": [{"affinityName": "a"}, {"affinityName": "a"}]}, "a is given twice"),
        ({"clusterAffinities": [{"affinityName": "a", "overflowAffinities": []}]}, "overflowAffinities need dynamic"),
    ],
)
def test_what_the_webhook_refuses_is_refused_with_its_field(fields, text):
    with pytest.raises(EstimateError, match=text):
        _admit(**fields)

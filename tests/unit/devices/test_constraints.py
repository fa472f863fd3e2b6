from podium.devices.answers import Looks
from podium.devices.constraints import DistinctAttribute, DistinctRequests, MatchAttribute, new_constraint
from podium.devices.inventory import InventorySlice
from podium.objects.claims import DeviceConstraint
from tests.unit.devices.cluster import DRIVER, NEW, OLD, a_slice, device

NAME = f"{DRIVER}/model"


def gpu(**attributes):
    return InventorySlice(a_slice("s", device("g", attributes=attributes)), Looks()).devices[0]


def test_devices_must_have_the_same_value_of_the_same_type():
    constraint = MatchAttribute(NAME, ())
    assert constraint.add("r", "", gpu(model=1))
    assert not constraint.add("r", "", gpu(model=True))
    assert not constraint.add("r", "", gpu(model="1"))
    assert constraint.add("q", "", gpu(model=1))
    for name in ("r", "q"):
        constraint.remove(name, "")
    assert constraint.add("r", "", gpu(model="other"))


def test_devices_must_have_different_values():
    constraint = DistinctAttribute(NAME, ())
    assert constraint.add("r", "", gpu(model=1))
    assert not constraint.add("q", "", gpu(model=1))
    assert constraint.add("r", "", gpu(model="1"))
    assert not constraint.add("r", "", gpu(model=1))
    constraint.remove("r", "")
    assert constraint.add("p", "", gpu(model="1"))


def test_only_the_latest_value_of_a_request_is_remembered_in_older_minors():
    constraint = DistinctRequests(NAME, ())
    assert [constraint.add("r", "", gpu(model=number)) for number in (1, 2, 1, 1)] == [True, True, True, False]


def test_device_without_the_attribute_is_refused():
    for constraint in (MatchAttribute(NAME, ()), DistinctAttribute(NAME, ()), DistinctRequests(NAME, ())):
        assert not constraint.add("r", "", gpu())
        assert not constraint.add("r", "", gpu(**{"other.example.com/model": 1}))


def test_attribute_is_found_by_its_full_name_and_by_its_id_in_the_drivers_domain():
    assert MatchAttribute("x.org/model", ()).add("r", "", gpu(**{"x.org/model": 1}))
    assert not MatchAttribute("x.org/model", ()).add("r", "", gpu(model=1))
    assert not MatchAttribute("model2", ()).add("r", "", gpu(model=1))


def test_other_requests_are_not_affected():
    constraint = MatchAttribute(NAME, ("a", "b/one"))
    assert constraint.add("a", "any", gpu(model=1))
    assert constraint.add("b", "two", gpu(model=2))
    constraint.remove("b", "two")
    assert not constraint.add("b", "one", gpu(model=2))
    assert not constraint.add("a", "", gpu(model=2))


def test_unknown_kind_gives_no_constraint():
    for release, kind in ((OLD, DistinctRequests), (NEW, DistinctAttribute)):
        assert new_constraint(DeviceConstraint(), release.devices) is None
        assert isinstance(new_constraint(DeviceConstraint(match_attribute=NAME), release.devices), MatchAttribute)
        assert isinstance(new_constraint(DeviceConstraint(distinct_attribute=NAME), release.devices), kind)


def test_a_list_may_only_be_the_first_value():
    values = InventorySlice(a_slice("s", {"name": "g", "attributes": {"model": {"strings": ["a"]}}}), Looks())
    for constraint in (MatchAttribute(NAME, ()), DistinctAttribute(NAME, ())):
        assert constraint.add("r", "", values.devices[0])
        assert not constraint.add("r", "", values.devices[0])

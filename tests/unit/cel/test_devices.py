import pytest

from podium.cel import EvaluationError
from tests.unit.cel.devices import bound, holds


def test_name_without_a_domain_belongs_to_the_driver():
    assert bound().variables["attributes"]["gpu.example.com"]["model"] == "a100"
    assert bound().variables["attributes"]["vendor.example.com"] == {"uuid": "GPU-0"}
    assert bound(driver="d").variables["attributes"]["d"]["index"] == 3


def test_device_without_anything_can_be_asked():
    assert holds("device.attributes == {} && !device.allowMultipleAllocations", attributes={}, capacity={})
    assert holds("device.allowMultipleAllocations", allowMultipleAllocations=True)


@pytest.mark.parametrize("attribute", [{}, {"version": "1"}, {"version": "v1.2.3"}])
def test_attribute_without_a_value_is_an_error_that_names_it(attribute):
    with pytest.raises(EvaluationError, match="attribute odd: "):
        bound(attributes={"odd": attribute})


def test_capacity_that_is_no_quantity_is_an_error_that_names_it():
    with pytest.raises(EvaluationError, match="capacity memory: "):
        bound(capacity={"memory": {"value": "40GB"}})


def test_costs_are_counted_where_a_device_is_larger_than_the_api_allows():
    assert bound().is_small
    assert not bound(attributes={"model": {"string": "x" * 10_000}}).is_small

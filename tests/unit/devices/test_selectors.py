"""Device selectors over the API's devices."""

import pytest

from podium.cel import EvaluationError
from podium.devices.selectors import compile_selector
from tests.unit.cel.devices import device_values, holds


def test_selectors_use_podiums_quantities():
    assert compile_selector('quantity("1Gi") == quantity("1024Mi")').matches(device_values())
    assert not compile_selector('isQuantity("1GB")').matches(device_values())
    with pytest.raises(EvaluationError, match="quantit"):
        compile_selector("sign(quantity(device.driver)) == 1").matches(device_values())


def test_device_without_attributes_and_capacity_can_be_bound():
    assert holds("device.attributes == {} && !device.allowMultipleAllocations", attributes={}, capacity={})
    assert holds("device.allowMultipleAllocations", allowMultipleAllocations=True)


@pytest.mark.parametrize("attribute", [{}, {"version": "1"}, {"version": "v1.2.3"}])
def test_attribute_without_a_value_is_an_error_that_names_it(attribute):
    with pytest.raises(EvaluationError, match="attribute odd: "):
        device_values(attributes={"odd": attribute})


def test_capacity_that_is_no_quantity_is_an_error_that_names_it():
    with pytest.raises(EvaluationError, match="capacity memory: "):
        device_values(capacity={"memory": {"value": "40GB"}})

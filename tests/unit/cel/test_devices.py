from tests.unit.cel.devices import device_values


def test_name_without_a_domain_belongs_to_the_driver():
    assert device_values().variables["attributes"]["gpu.example.com"]["model"] == "a100"
    assert device_values().variables["attributes"]["vendor.example.com"] == {"uuid": "GPU-0"}
    assert device_values(driver="d").variables["attributes"]["d"]["index"] == 3


def test_costs_are_counted_where_a_device_is_larger_than_the_api_allows():
    assert device_values().is_small
    assert not device_values(attributes={"model": {"string": "x" * 10_000}}).is_small

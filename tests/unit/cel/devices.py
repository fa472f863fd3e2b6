"""A device to ask selectors about."""

import msgspec

from podium.config import RELEASES
from podium.devices.selectors import bind_device, compile_selector
from podium.objects.devices import Device

GPU = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": "a100"},
        "index": {"int": 3},
        "healthy": {"bool": True},
        "driverVersion": {"version": "1.2.3"},
        "vendor.example.com/uuid": {"string": "GPU-0"},
    },
    "capacity": {"memory": {"value": "40Gi"}, "cores": {"value": "108"}},
}
ATTRIBUTES = 'device.attributes["gpu.example.com"]'
CAPACITY = 'device.capacity["gpu.example.com"]'


OLD, NEW = (RELEASES[minor].devices.selectors for minor in ("1.36", "1.37"))


def device_values(driver="gpu.example.com", rules=NEW, **changes):
    return bind_device(driver, msgspec.convert({**GPU, **changes}, Device), rules)


def holds(expression, rules=NEW, **changes):
    """Return True if the expression chooses the device, with costs and without."""
    selector = compile_selector(expression, rules)
    device = device_values(rules=rules, **changes)
    answer = selector.matches(device)
    assert selector.evaluate(device)[0] is answer
    return answer

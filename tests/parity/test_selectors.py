"""400 device selectors with a device each: podium chooses the devices that Kubernetes' CEL environment chooses.

With which words an expression is found wrong, and when, is not compared: CEL libraries differ there from version to
version.
"""

import msgspec

from podium.cel import BoundDevice, compile_selector
from podium.objects.devices import Device
from tests.parity.recorded import SELECTORS, cases, scenarios


def test_selector_chooses_the_devices_that_upstream_chooses():
    found = cases(SELECTORS, "cel")
    assert len(found) == 400
    assert [line for each in found for line in each.differences] == []


def test_counting_costs_changes_no_answer():
    for scenario, _ in scenarios(SELECTORS):
        if "matches" in scenario["expect"]:
            device = BoundDevice(scenario["driver"], msgspec.convert(scenario["device"], Device))
            assert compile_selector(scenario["expression"]).evaluate(device)[0] == scenario["expect"]["matches"]

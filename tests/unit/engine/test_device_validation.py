from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from podium.engine.device_validation import invalid_device_fields
from podium.objects.claims import ResourceClaim
from podium.objects.core import Pod
from podium.objects.devices import DeviceClass, ResourceSlice

GPU: Mapping[str, Any] = {"deviceClassName": "gpu"}
REQUESTS = [{"name": "r", "exactly": GPU}]


def errors_of_claim(**devices: Any) -> list[str]:
    claim = msgspec.convert({"metadata": {"name": "c"}, "spec": {"devices": devices}}, ResourceClaim)
    return list(invalid_device_fields(claim))


def errors_of_request(**fields: Any) -> list[str]:
    errors = errors_of_claim(requests=[{"name": "r", "exactly": GPU | fields}])
    return [error.removeprefix("spec.devices.requests[0].exactly.") for error in errors]


def errors_of_policy(policy: Mapping[str, Any], *, value: str = "40Gi", is_shared: bool = True) -> list[str]:
    device = {"name": "d", "capacity": {"memory": {"value": value, "requestPolicy": policy}}}
    spec = {"driver": "x", "devices": [device | {"allowMultipleAllocations": is_shared}]}
    errors = invalid_device_fields(msgspec.convert({"metadata": {"name": "s"}, "spec": spec}, ResourceSlice))
    return [error.removeprefix("spec.devices[0].capacity[memory].requestPolicy") for error in errors]


def test_valid_claims_have_no_errors():
    assert errors_of_claim() == []
    assert errors_of_request(allocationMode="All") == []
    assert errors_of_request(count=2, adminAccess=True, capacity={"requests": {"memory": "4Gi"}}) == []
    tolerations = [{"operator": "Exists", "effect": "None"}, {"key": "a", "value": "b", "operator": "Equal"}]
    assert errors_of_request(tolerations=tolerations, selectors=[{"cel": {"expression": "true"}}]) == []
    alternatives = {"name": "r", "firstAvailable": [GPU | {"name": "a"}, GPU | {"name": "b"}]}
    constraints = [{"requests": ["r", "r/b"], "matchAttribute": "x.example.com/model"}]
    assert errors_of_claim(requests=[alternatives], constraints=constraints) == []


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"allocationMode": "All", "count": 2}, "count: 2 must not be specified when allocationMode is All"),
        ({"allocationMode": "Al"}, 'allocationMode: unsupported value "Al", supported are All, ExactCount'),
        ({"count": -1}, "count: -1 must be greater than zero"),
        ({"deviceClassName": ""}, "deviceClassName: required"),
        ({"selectors": [{}]}, "selectors[0].cel: required"),
        ({"selectors": [{"cel": {}}]}, "selectors[0].cel.expression: required"),
        (
            {"tolerations": [{"operator": "Exits"}]},
            'tolerations[0].operator: unsupported value "Exits", supported are Equal, Exists',
        ),
        (
            {"tolerations": [{"operator": "Exists", "value": "a"}]},
            'tolerations[0].value: "a" must be empty for the operator Exists',
        ),
        (
            {"tolerations": [{"effect": "No"}]},
            'tolerations[0].effect: unsupported value "No", supported are NoExecute, NoSchedule, None',
        ),
    ],
)
def test_contradictory_request_is_refused_with_the_field(fields, error):
    assert errors_of_request(**fields) == [error]


def test_amount_that_is_no_quantity_is_refused():
    (error,) = errors_of_request(capacity={"requests": {"memory": "4 GB"}})
    assert error.startswith("capacity.requests[memory]: ")


def test_request_is_either_exact_or_a_list_of_alternatives():
    ambiguous_request = {"name": "r", "exactly": GPU, "firstAvailable": [GPU | {"name": "a"}]}
    assert errors_of_claim(requests=[ambiguous_request, {"name": "s"}]) == [
        "spec.devices.requests[0]: exactly one of `exactly` or `firstAvailable` is required, but both are set",
        "spec.devices.requests[1]: exactly one of `exactly` or `firstAvailable` is required",
    ]


def test_names_are_required_and_unique():
    requests = [*REQUESTS, *REQUESTS, {"name": "s", "firstAvailable": [GPU, GPU | {"name": "a"}, GPU | {"name": "a"}]}]
    assert errors_of_claim(requests=requests) == [
        'spec.devices.requests[1].name: duplicate "r"',
        "spec.devices.requests[2].firstAvailable[0].name: required",
        'spec.devices.requests[2].firstAvailable[2].name: duplicate "a"',
    ]


def test_constraints_and_configurations_refer_to_requests_of_the_claim():
    reference = "must be the name of a request in the claim, or of a request and a subrequest separated by '/'"
    constraints = [{"requests": ["zz", "r/a"], "matchAttribute": "x.example.com/model"}]
    config = [{"requests": ["zz"], "opaque": {"driver": "x", "parameters": {}}}]
    assert errors_of_claim(requests=REQUESTS, constraints=constraints, config=config) == [
        f'spec.devices.constraints[0].requests[0]: "zz" {reference}',
        f'spec.devices.constraints[0].requests[1]: "r/a" {reference}',
        f'spec.devices.config[0].requests[0]: "zz" {reference}',
    ]


def test_constraint_names_a_full_attribute():
    assert errors_of_claim(requests=REQUESTS, constraints=[{}, {"matchAttribute": "model"}]) == [
        "spec.devices.constraints[0]: one of matchAttribute or distinctAttribute is required",
        'spec.devices.constraints[1].matchAttribute: "model" must be a domain and a name separated by a slash',
    ]


def test_class_with_an_empty_selector_is_refused():
    device_class = msgspec.convert({"metadata": {"name": "gpu"}, "spec": {"selectors": [{}]}}, DeviceClass)
    assert list(invalid_device_fields(device_class)) == ["spec.selectors[0].cel: required"]


def test_devices_of_a_slice_have_unique_names():
    spec = {"driver": "x", "devices": [{"name": "d"}, {"name": "d"}, {}]}
    assert list(invalid_device_fields(msgspec.convert({"spec": spec}, ResourceSlice))) == [
        'spec.devices[1].name: duplicate "d"',
        "spec.devices[2].name: required",
    ]


RANGE = {"min": "1Gi", "max": "40Gi", "step": "1Gi"}


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        (
            {"default": "1Gi", "validValues": ["1Gi"], "validRange": RANGE},
            ": cannot specify validValues and validRange",
        ),
        ({"validRange": RANGE}, ".default: required when validValues or validRange is defined"),
        ({"default": "1Gi", "validValues": ["2Gi", "4Gi"]}, ".default: 1Gi is not among validValues"),
        ({"default": "1Gi", "validValues": ["1Gi", "41Gi"]}, ".validValues[1]: 41Gi is larger than the capacity"),
        (
            {"default": "1Gi", "validValues": ["2Gi", "1Gi"]},
            ".validValues[1]: 1Gi must be larger than the value before",
        ),
        ({"default": "1Gi", "validRange": {"max": "2Gi"}}, ".validRange.min: required when validRange is defined"),
        ({"default": "1Gi", "validRange": {"min": "2Gi"}}, ".default: 1Gi is less than the min of validRange, 2Gi"),
        ({"default": "3Gi", "validRange": {"min": "1Gi", "max": "2Gi"}}, ".default: 3Gi is more than the max"),
        (
            {"default": "1Gi", "validRange": RANGE | {"max": "50Gi"}},
            ".validRange.max: 50Gi is larger than the capacity",
        ),
        ({"default": "1Gi", "validRange": RANGE | {"step": "0"}}, ".validRange.step: 0 must be greater than zero"),
        (
            {"default": "2Gi", "validRange": {"min": "1Gi", "step": "3Gi"}},
            ".validRange.step: 2Gi is not 1Gi and a multiple",
        ),
        ({"default": "many"}, ".default: "),
        ({"default": "1Gi", "validRange": {"min": "1Gi", "step": "1 GB"}}, ".validRange.step: "),
    ],
)
def test_contradicting_request_policy_is_refused_with_the_field(policy, error):
    errors = errors_of_policy(policy)
    assert errors
    assert errors[0].startswith(error)


def test_consistent_request_policies_pass():
    assert errors_of_policy({}) == []
    assert errors_of_policy({"default": "1Gi"}) == []
    assert errors_of_policy({"default": "1Gi", "validRange": RANGE}) == []
    assert errors_of_policy({"default": "1", "validValues": ["500m", "1000m"]}) == []


def test_request_policy_needs_a_device_that_is_shared():
    assert errors_of_policy({"default": "1Gi"}, is_shared=False) == [": allowMultipleAllocations must be true"]


def test_objects_of_other_kinds_have_no_errors():
    assert list(invalid_device_fields(Pod())) == []

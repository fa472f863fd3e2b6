from functools import partial

import pytest

from podium.engine.derivation import pod_validation

invalid_fields = partial(pod_validation.invalid_fields, labels={"app": "web", "tier": "front"})

REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def _container(request, limit):
    return {"resources": {"requests": {"cpu": request}, "limits": {"cpu": limit}}}


@pytest.mark.parametrize("group", ["containers", "initContainers"])
def test_requests_above_limits_are_named_with_their_container(group):
    spec = {group: [_container("1", "1"), _container("1500m", "1")]}
    assert invalid_fields({}, spec) == [
        f'spec.{group}[1].resources.requests: Invalid value: "1500m": must be less than or equal to cpu limit of 1'
    ]


def _whole(requests=None, limits=None, *containers):
    return {"resources": {"requests": requests or {}, "limits": limits or {}}, "containers": list(containers)}


def test_requests_of_a_pod_cover_those_of_its_containers():
    containers = [_container("3188m", "9"), {"resources": {"requests": {"cpu": "347m", "memory": "1659Mi"}}}]
    least = "must be greater than or equal to aggregate container requests of"
    assert invalid_fields({}, _whole({"cpu": "3475m", "memory": "1Gi"}, None, *containers)) == [
        f'spec.resources.requests[cpu]: Invalid value: "3475m": {least} 3535m',
        f'spec.resources.requests[memory]: Invalid value: "1Gi": {least} 1659Mi',
    ]
    assert invalid_fields({}, _whole({"cpu": "3535m"}, None, *containers)) == []
    sidecar = {"restartPolicy": "Always", **_container("1", "1")}
    assert invalid_fields({}, {**_whole({"cpu": "1"}, None, _container("1", "1")), "initContainers": [sidecar]})


def test_limits_of_a_pod_are_above_its_requests_and_those_of_its_containers():
    assert invalid_fields({}, _whole({"cpu": "2"}, {"cpu": "1"})) == [
        'spec.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'
    ]
    assert invalid_fields({}, _whole({"cpu": "2"}, {"cpu": "2"}, _container("1", "1"), _container("1", "3"))) == [
        'spec.resources.containers[1][cpu].limits: Invalid value: "3": must be less than or equal to pod limits of 2'
    ]
    assert invalid_fields({}, _whole({"cpu": "x"}, {"cpu": "2"})) == []


def test_amounts_that_cannot_be_read_and_requests_without_a_limit_are_not_judged():
    without = {"resources": {"requests": {"cpu": "9"}, "limits": {"memory": "1"}}}
    assert invalid_fields({}, {"containers": [_container("x", "1"), without]}) == []


@pytest.mark.parametrize(
    "selector",
    [{"matchLabels": {"app": "web"}}, {"matchExpressions": [{"key": "app", "operator": "Exists"}]}],
)
def test_a_key_that_the_selector_has_too_is_named_with_its_field(selector):
    term = {"labelSelector": selector, "matchLabelKeys": ["tier", "app"]}
    message = 'Invalid value: "app": exists in both matchLabelKeys and labelSelector'
    spec = {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
    (error,) = invalid_fields(spec, {})
    assert error.endswith(message)
    assert error.startswith(f"spec.affinity.podAntiAffinity.{REQUIRED}[0]")
    spec = {"affinity": {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}}}
    (error,) = invalid_fields(spec, {})
    assert error.startswith(f"spec.affinity.podAffinity.{PREFERRED}[0].podAffinityTerm")
    (error,) = invalid_fields({"topologySpreadConstraints": [term]}, {})
    assert error == f"spec.topologySpreadConstraints[0].matchLabelKeys[1]: {message}"


def test_a_key_that_the_pod_lacks_as_a_label_stands_nowhere_twice():
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["app"]}
    spec = {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
    assert pod_validation.invalid_fields(spec, {}, {}) == []
    assert len(pod_validation.invalid_fields(spec, {}, {"app": "web"})) == 1


def test_a_key_that_is_to_match_and_to_differ_is_refused():
    term = {"labelSelector": {}, "matchLabelKeys": ["app"], "mismatchLabelKeys": ["app"]}
    (error,) = invalid_fields({"affinity": {"podAffinity": {REQUIRED: [term]}}}, {})
    assert error.endswith(
        'matchLabelKeys[0]: Invalid value: "app": exists in both matchLabelKeys and mismatchLabelKeys'
    )


def test_merged_requirements_of_the_filled_spec_are_no_error():
    term = {"labelSelector": {}, "matchLabelKeys": ["app"]}
    merged_spread = {"labelSelector": {"matchExpressions": [{"key": "app"}]}, "matchLabelKeys": ["app"]}
    assert invalid_fields({"topologySpreadConstraints": [term]}, {"topologySpreadConstraints": [merged_spread]}) == []


@pytest.mark.parametrize("keys", ["matchLabelKeys", "mismatchLabelKeys"])
def test_keys_without_a_selector_are_forbidden(keys):
    message = "Forbidden: must not be specified when labelSelector is not set"
    spec = {"affinity": {"podAffinity": {REQUIRED: [{keys: ["app"]}]}}}
    assert invalid_fields(spec, {}) == [f"spec.affinity.podAffinity.{REQUIRED}[0].{keys}: {message}"]
    spread = invalid_fields({"topologySpreadConstraints": [{keys: ["app"]}]}, {})
    field = "spec.topologySpreadConstraints[0].matchLabelKeys"
    assert spread == ([f"{field}: {message}"] if keys == "matchLabelKeys" else [])

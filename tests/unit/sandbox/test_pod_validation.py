import pytest

from podium.sandbox.pod_validation import misfit_amounts


def spec(container_requests, container_limits, **pod_resources):
    amounts = {"requests": container_requests, "limits": container_limits}
    container = {"name": "c", "resources": amounts}
    return {"containers": [container], "resources": pod_resources}


@pytest.mark.parametrize(
    ("pod", "messages"),
    [
        (spec({"cpu": "1"}, {"cpu": "1000m"}), []),
        (spec({"cpu": "2"}, {"memory": "1Gi"}), []),
        (
            spec({"cpu": "2"}, {"cpu": "1500m"}),
            [
                (
                    "spec.containers[0].resources.requests: "
                    'Invalid value: "2": must be less than or equal to cpu limit of 1500m'
                )
            ],
        ),
        (
            spec({"example.com/gpu": "1"}, {"example.com/gpu": "2"}),
            ['spec.containers[0].resources.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2'],
        ),
        (
            spec({"cpu": "2"}, {}, requests={"cpu": "1"}, limits={"cpu": "1"}),
            [
                (
                    "spec.resources.requests[cpu]: "
                    'Invalid value: "1": must be greater than or equal to aggregate container requests of 2'
                )
            ],
        ),
        (
            spec({}, {"cpu": "2"}, limits={"cpu": "1"}),
            [
                (
                    "spec.resources.containers[0][cpu].limits: "
                    'Invalid value: "2": must be less than or equal to pod limits of 1'
                )
            ],
        ),
        (
            spec({}, {}, requests={"memory": "2Gi"}, limits={"memory": "1Gi"}),
            ['spec.resources.requests: Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi'],
        ),
    ],
)
def test_amounts_must_fit_limits_and_the_pod_as_a_whole(pod, messages):
    assert [f"{cause.field}: {cause.message}" for cause in misfit_amounts("spec", pod)] == messages

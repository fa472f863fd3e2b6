import pytest


def test_the_pods_own_resources_decide_on_its_quality_of_service(store, pod):
    whole_pod = pod()
    whole_pod["spec"]["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    assert store.create(whole_pod)["status"]["qosClass"] == "Guaranteed"


@pytest.mark.parametrize(
    ("resources", "qos_class"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1000m", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1024Mi"}}, "Guaranteed"),
    ],
)
def test_the_containers_decide_if_the_pod_has_no_resources_of_its_own(store, pod, resources, qos_class):
    assert store.create(pod(resources))["status"]["qosClass"] == qos_class


def test_a_pod_gets_its_default_class_and_its_priority(store, pod):
    usual = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "usual"}, "value": 7}
    store.create(usual | {"globalDefault": True})
    spec = store.create(pod())["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 7)


def test_a_missing_class_is_named_though_the_pod_is_invalid_besides(refusal, pod):
    assert "no PriorityClass with name urgent was found" in refusal(pod(priorityClassName="urgent", containers=[]))

import pytest


@pytest.fixture
def runtime_class(store):
    def make(**fields):
        obj = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "vm"}, "handler": "vm"}
        return store.create(obj | fields)

    return make


def test_a_class_adds_overhead_node_selector_and_tolerations(store, runtime_class, pod):
    wide = {"key": "vm", "operator": "Exists"}
    narrow = {"key": "vm", "operator": "Equal", "value": "a", "effect": "NoSchedule"}
    runtime_class(
        overhead={"podFixed": {"cpu": "250m"}}, scheduling={"nodeSelector": {"vm": "yes"}, "tolerations": [wide]}
    )
    spec = store.create(pod(runtimeClassName="vm", nodeSelector={"disk": "ssd"}, tolerations=[narrow]))["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"disk": "ssd", "vm": "yes"}
    # The toleration of the class covers the pod's own one.
    assert [toleration for toleration in spec["tolerations"] if toleration.get("key") == "vm"] == [wide]


def test_a_class_that_does_not_exist_is_refused(refusal, pod):
    message = refusal(pod(runtimeClassName="vm"))
    assert message == 'pods "web" is forbidden: pod rejected: RuntimeClass "vm" not found'


def test_a_contradicting_node_selector_is_refused(runtime_class, refusal, pod):
    runtime_class(scheduling={"nodeSelector": {"disk": "ssd"}})
    message = refusal(pod(runtimeClassName="vm", nodeSelector={"disk": "hdd"}))
    assert "conflict: runtimeClass.scheduling.nodeSelector[disk] = ssd; pod.spec.nodeSelector[disk] = hdd" in message


def test_the_overhead_of_a_pod_must_be_that_of_its_class(store, runtime_class, refusal, pod):
    runtime_class(overhead={"podFixed": {"cpu": "1"}})
    store.create(pod(runtimeClassName="vm", overhead={"cpu": "1000m"}))
    assert "doesn't match RuntimeClass's defined Overhead" in refusal(pod(runtimeClassName="vm", overhead={"cpu": "2"}))
    assert "Overhead set without corresponding RuntimeClass" in refusal(pod(overhead={"cpu": "1"}))


def test_a_class_needs_a_handler(refusal):
    runtime_class = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "vm"}}
    assert "handler: Required value" in refusal(runtime_class)


def test_a_class_adds_no_toleration_that_the_pod_has_already(store, runtime_class, pod):
    own = {"key": "vm", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    shorter = own | {"tolerationSeconds": 10}
    runtime_class(scheduling={"tolerations": [shorter]})
    spec = store.create(pod(runtimeClassName="vm", tolerations=[own]))["spec"]
    assert [toleration for toleration in spec["tolerations"] if toleration["key"] == "vm"] == [own]

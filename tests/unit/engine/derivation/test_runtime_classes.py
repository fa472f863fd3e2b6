from podium.engine.derivation.runtime_classes import runtime_class_refusal, with_runtime_class
from tests.workload_manifests import runtime_class

KATA = runtime_class(
    overhead={"podFixed": {"cpu": "250m"}},
    scheduling={"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
)
SPEC = {"runtimeClassName": "kata", "nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "team"}]}


def test_a_class_adds_overhead_node_selector_and_tolerations():
    assert with_runtime_class(SPEC, KATA) == {
        "runtimeClassName": "kata",
        "overhead": {"cpu": "250m"},
        "nodeSelector": {"disk": "ssd", "kata": "yes"},
        "tolerations": [{"key": "team"}, {"key": "kata", "operator": "Exists"}],
    }


def test_an_empty_class_or_none_adds_nothing():
    assert with_runtime_class(SPEC, runtime_class()) == SPEC
    assert with_runtime_class(SPEC, None) == SPEC


def test_a_class_that_does_not_exist_refuses_the_pod():
    assert runtime_class_refusal(SPEC, {}) == 'pod rejected: RuntimeClass "kata" not found'
    assert runtime_class_refusal(SPEC, None) == ""
    assert runtime_class_refusal(SPEC, KATA) == ""


def test_another_overhead_or_selector_than_the_classs_is_refused():
    assert (
        runtime_class_refusal({**SPEC, "overhead": {"cpu": "1"}}, KATA)
        == "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    )
    assert runtime_class_refusal({**SPEC, "overhead": {"cpu": "250m"}}, KATA) == ""
    assert runtime_class_refusal({**SPEC, "nodeSelector": {"kata": "no"}}, KATA) == (
        "conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; pod.spec.nodeSelector[kata] = no"
    )

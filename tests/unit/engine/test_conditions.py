import pytest

from podium.engine.conditions import condition_report
from podium.objects.core import Pod
from tests.builders import pod

SAID = "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
PREEMPTION = " preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."


def waiting(message: str = SAID + PREEMPTION, **fields: object) -> Pod:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message, **fields}
    return pod("web", metadata={"generation": 2}, status={"conditions": [condition]})


def differences(item: Pod, message: str = SAID, node_count: int = 3, *other_messages: str) -> tuple[str, ...]:
    report = condition_report(item, message, node_count, other_messages)
    assert report is not None
    return report.differences


def test_a_pod_without_the_condition_has_no_report() -> None:
    assert condition_report(pod("web"), SAID, 3) is None


def test_equal_answers_about_nodes_agree_whatever_they_say_about_preemption() -> None:
    assert differences(waiting()) == ()
    assert differences(waiting(SAID), SAID + " no new claims to deallocate") == ()
    assert differences(waiting(), SAID, 3, "another scheduler wrote it") == ()


@pytest.mark.parametrize(
    ("item", "message", "node_count", "difference"),
    [
        (waiting(), "0/4 nodes are available: 4 Insufficient cpu.", 4, "it counts 3 nodes, and there are 4 now"),
        (
            waiting(),
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient memory.",
            3,
            'it counts 2 nodes with "Insufficient cpu", and there are 0 now',
        ),
        (waiting(), "", 3, "nodes or pods have changed since that attempt, and no later one has written its condition"),
        (
            waiting(observedGeneration=1),
            "",
            3,
            "the pod has changed since: it is of generation 2, the condition is about 1",
        ),
        (waiting("error", reason="SchedulerError"), SAID, 3, "that attempt ended with an error"),
        (waiting("gated", reason="SchedulingGated"), SAID, 3, "the gates that it names have been removed since"),
        (waiting("odd"), SAID, 3, "objects have changed since it was written"),
    ],
)
def test_a_difference_has_its_reason(item: Pod, message: str, node_count: int, difference: str) -> None:
    assert any(text.startswith(difference) for text in differences(item, message, node_count))


def test_reasons_of_the_caller_come_first() -> None:
    assert differences(waiting(), "", 3, "another scheduler wrote it")[0] == "another scheduler wrote it"


def test_a_gated_pod_that_says_so_agrees() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    gated_pod = pod("web", spec={"schedulingGates": [{"name": "hold"}]}, status={"conditions": [condition]})
    assert differences(gated_pod, "") == ()

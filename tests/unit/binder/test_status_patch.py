from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from podium.binder import changes_status, not_scheduled, pod_group_status_patch, status_patch
from podium.binder.status_patch import MESSAGE_BYTES_MAX
from podium.objects.core import PodCondition
from tests.builders import pod, pod_group

NOW_S = 1_700_000_000.0
NOW = "2023-11-14T22:13:20Z"
MESSAGE = "0/2 nodes are available: 2 Insufficient cpu."


def condition(
    *, status: str = "False", message: str = MESSAGE, since: str | None = "2020-01-01T00:00:00Z"
) -> PodCondition:
    return PodCondition(
        type="PodScheduled",
        status=status,
        reason="Unschedulable",
        message=message,
        last_transition_time=since,
        observed_generation=1,
    )


def test_the_first_failure_sets_the_whole_condition() -> None:
    failed_pod = pod(metadata={"generation": 3})
    patch = status_patch(failed_pod, NOW_S, condition=not_scheduled(failed_pod, MESSAGE, is_rejected=True))
    assert patch is not None
    assert json.loads(patch) == {
        "metadata": {"uid": "uid-web-1"},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": MESSAGE,
                    "observedGeneration": 3,
                    "lastProbeTime": None,
                    "lastTransitionTime": NOW,
                }
            ]
        },
    }


def test_a_new_message_keeps_the_transition_time() -> None:
    failed_pod = pod(status={"conditions": [condition(message="0/1 nodes are available.")]})
    patch = status_patch(failed_pod, NOW_S, condition=not_scheduled(failed_pod, MESSAGE, is_rejected=True))
    assert patch is not None
    [written_condition] = json.loads(patch)["status"]["conditions"]
    assert written_condition["lastTransitionTime"] == "2020-01-01T00:00:00Z"
    assert written_condition["message"] == MESSAGE


def test_a_new_status_value_moves_the_transition_time() -> None:
    failed_pod = pod(status={"conditions": [condition(status="True")]})
    patch = status_patch(failed_pod, NOW_S, condition=not_scheduled(failed_pod, MESSAGE, is_rejected=True))
    assert patch is not None
    assert json.loads(patch)["status"]["conditions"][0]["lastTransitionTime"] == NOW


def test_nothing_is_sent_when_nothing_changes_but_the_generation() -> None:
    failed_pod = pod(nominated="n1", status={"conditions": [condition()]}, metadata={"generation": 9})
    pod_condition = not_scheduled(failed_pod, MESSAGE, is_rejected=True)
    assert status_patch(failed_pod, NOW_S, condition=pod_condition) is None
    assert status_patch(failed_pod, NOW_S, condition=pod_condition, nominated_node_name="n1") is None
    assert status_patch(failed_pod, NOW_S) is None


@given(
    st.none() | st.builds(condition, status=st.sampled_from(["True", "False"]), message=st.sampled_from("ab")),
    st.none() | st.builds(condition, message=st.sampled_from("ab")),
    st.sampled_from(["", "n1"]),
    st.sampled_from([None, "", "n1"]),
)
def test_a_write_changes_the_status_exactly_if_there_is_a_patch(
    old: PodCondition | None, new: PodCondition | None, old_node: str, new_node: str | None
) -> None:
    conditions = [] if old is None else [old]
    failed_pod = pod(status={"conditions": conditions, "nominatedNodeName": old_node})
    patch = status_patch(failed_pod, NOW_S, condition=new, nominated_node_name=new_node)
    assert changes_status(failed_pod, condition=new, nominated_node_name=new_node) == (patch is not None)


def test_a_nomination_alone_leaves_the_conditions_alone() -> None:
    patch = status_patch(pod(), NOW_S, nominated_node_name="n1")
    assert patch == b'{"metadata":{"uid":"uid-web-1"},"status":{"nominatedNodeName":"n1"}}'


def test_a_nomination_is_cleared_with_null() -> None:
    patch = status_patch(pod(nominated="n1"), NOW_S, nominated_node_name="")
    assert patch == b'{"metadata":{"uid":"uid-web-1"},"status":{"nominatedNodeName":null}}'


def test_the_nomination_goes_along_even_if_the_condition_stays() -> None:
    failed_pod = pod(nominated="n1", status={"conditions": [condition()]})
    pod_condition = not_scheduled(failed_pod, MESSAGE, is_rejected=True)
    patch = status_patch(failed_pod, NOW_S, condition=pod_condition, nominated_node_name="")
    assert patch is not None
    assert json.loads(patch)["status"] == {"nominatedNodeName": None}


def test_rejections_are_unschedulable_and_all_else_is_the_schedulers_error() -> None:
    for is_rejected, reason in ((True, "Unschedulable"), (False, "SchedulerError")):
        pod_condition = not_scheduled(pod(), "x", is_rejected=is_rejected)
        assert (pod_condition.type, pod_condition.status, pod_condition.reason, pod_condition.message) == (
            "PodScheduled",
            "False",
            reason,
            "x",
        )


def test_a_message_that_utf8_cannot_say_is_still_sent() -> None:
    pod_condition = not_scheduled(pod(), "no such file: \udcff", is_rejected=False)
    patch = status_patch(pod(), NOW_S, condition=pod_condition)
    assert patch is not None
    assert json.loads(patch)["status"]["conditions"][0]["message"] == "no such file: ?"


def test_a_message_without_end_is_cut() -> None:
    pod_condition = not_scheduled(pod(), "ä" * 10_000_000, is_rejected=True)
    assert len(pod_condition.message.encode()) <= MESSAGE_BYTES_MAX
    assert pod_condition.message.endswith("ä ...")


def test_the_condition_of_a_pod_group_is_written_once() -> None:
    pod_condition = condition()
    patch = pod_group_status_patch(pod_group("gang"), NOW_S, pod_condition)
    assert patch is not None
    document = json.loads(patch)
    assert document["metadata"] == {"uid": "uid-gang"}
    (stored_condition,) = document["status"]["conditions"]
    assert stored_condition["lastTransitionTime"] == NOW
    assert "lastProbeTime" not in stored_condition
    pod_group_object = pod_group("gang", status={"conditions": [stored_condition]})
    assert pod_group_status_patch(pod_group_object, NOW_S, pod_condition) is None


def test_a_pod_groups_condition_of_another_generation_keeps_its_transition_time() -> None:
    old_condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": MESSAGE}
    pod_group_object = pod_group(
        "gang", status={"conditions": [{**old_condition, "lastTransitionTime": "2020-01-01T00:00:00Z"}]}
    )
    patch = pod_group_status_patch(pod_group_object, NOW_S, condition())
    assert patch is not None
    (written_condition,) = json.loads(patch)["status"]["conditions"]
    assert (written_condition["observedGeneration"], written_condition["lastTransitionTime"]) == (
        1,
        "2020-01-01T00:00:00Z",
    )

from datetime import UTC, datetime

import pytest

from podium.sandbox.resources import resource_named
from podium.sandbox.tables import human_duration, table

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (330, "5m30s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (47 * 3600, "47h"),
        (50 * 3600, "2d2h"),
        (9 * 86400, "9d"),
        (800 * 86400, "2y70d"),
        (3000 * 86400, "8y"),
    ],
)
def test_ages_read_as_kubectl_writes_them(seconds, text):
    assert human_duration(seconds) == text


def cells(resource, obj):
    (row,) = table(resource_named(resource), [(obj, None)], {}, NOW)["rows"]
    return row["cells"]


def test_a_pod_has_readiness_status_and_age():
    pod = {
        "metadata": {"name": "web", "creationTimestamp": "2026-01-01T11:59:00Z"},
        "spec": {"containers": [{}, {}], "nodeName": "n1"},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [{"ready": True, "restartCount": 2}]},
    }
    assert cells("pods", pod) == ["web", "1/2", "Running", "2", "60s", "10.0.0.1", "n1", "<none>", "<none>"]


def test_a_pod_being_deleted_is_terminating_and_a_gated_one_is_gated():
    gated_status = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
    assert cells("pods", {"metadata": {"name": "a", "deletionTimestamp": "x"}})[2] == "Terminating"
    assert cells("pods", {"metadata": {"name": "a"}, "status": gated_status})[2] == "SchedulingGated"


def test_a_node_says_whether_it_is_ready_and_cordoned():
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    node = {"metadata": {"name": "n", "labels": {"node-role.kubernetes.io/control-plane": ""}}, "status": ready}
    assert cells("nodes", node)[1:3] == ["Ready", "control-plane"]
    assert cells("nodes", node | {"spec": {"unschedulable": True}})[1] == "Ready,SchedulingDisabled"
    assert cells("nodes", {"metadata": {"name": "n"}})[1] == "Unknown"


def test_an_event_names_its_object():
    event = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T11:58:00.000000Z",
        "type": "Normal",
        "reason": "Scheduled",
        "involvedObject": {"kind": "Pod", "name": "web"},
        "message": "ok",
        "reportingComponent": "podium",
    }
    assert cells("events", event)[:7] == ["2m", "Normal", "Scheduled", "pod/web", "", "podium", "ok"]


def test_a_type_without_columns_of_its_own_shows_name_and_age():
    assert cells("configmaps", {"metadata": {"name": "c"}}) == ["c", "<unknown>"]


def test_daemon_sets_are_shown_with_their_counts_and_their_node_selector():
    template = {"spec": {"nodeSelector": {"disk": "ssd"}}}
    status = {"desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberReady": 2}
    metadata = {"name": "agent", "creationTimestamp": "2026-01-01T11:59:00Z"}
    daemon_set = {"metadata": metadata, "spec": {"template": template}, "status": status}
    daemon_sets = table(resource_named("daemonsets"), [(daemon_set, None)], {}, NOW)
    assert daemon_sets["rows"][0]["cells"] == ["agent", 3, 3, 2, 0, 0, "disk=ssd", "60s"]

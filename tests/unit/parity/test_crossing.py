from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.parity.cross.changes import crossed_changes
from tests.parity.cross.configurations import crossed_configurations
from tests.parity.cross.drawing import ask_as, distinct, key
from tests.parity.cross.scenarios import crossed_scenarios, crossed_sequences

SEED, COUNT = 7, 40
CONFIGS: list[Any] = [None, {"profiles": [{"schedulerName": "second"}, {"schedulerName": "third"}]}, {"profiles": []}]


def _recorded_pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"app": name}},
        "spec": {"containers": [{"name": name}], **spec},
    }


def _recorded_node(name: str, cluster: int) -> dict[str, Any]:
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, "cluster": str(cluster)}}
    return {"kind": "Node", "metadata": meta, "spec": {}, "status": {"capacity": {"cpu": str(cluster)}}}


def _cluster(cluster: int) -> list[dict[str, Any]]:
    nodes = [_recorded_node(f"n{number}", cluster) for number in range(cluster, cluster + 2)]
    return [
        *nodes,
        _recorded_pod("bound", nodeName=f"n{cluster}"),
        _recorded_pod(f"own-{cluster}", nodeName=f"n{cluster}"),
    ]


def _recorded_scenarios() -> list[dict[str, Any]]:
    return [
        {
            "id": f"{category}-000{cluster}",
            "objects": _cluster(cluster),
            "pod": _recorded_pod("x", schedulerName="gone", priority=cluster),
            "pods": [_recorded_pod(f"q{number}", schedulerName="gone") for number in range(35)],
            "config": CONFIGS[cluster],
        }
        for category in ("taints", "volumes")
        for cluster in range(3)
    ]


def _changes() -> list[dict[str, Any]]:
    pod = _recorded_pod("x")
    updated = {**pod, "metadata": {**pod["metadata"], "labels": {"app": "other"}}}
    events = [
        {"action": "Update", "old": pod, "new": updated},
        {"action": "Update", "old": _recorded_node("n1", 1), "new": _recorded_node("n1", 2)},
        {"action": "Delete", "old": _recorded_node("n1", 1), "new": None},
    ]
    return [
        {
            "id": f"change-{number}",
            "objects": [_recorded_node("n1", 2)],
            "pod": pod,
            "config": CONFIGS[1],
            "event": event,
        }
        for number, event in enumerate(events)
    ]


TEXTS = [
    "parallelism: 3\nprofiles: [{schedulerName: a, plugins: {score: {enabled: [{name: A}]}}}]\n",
    "parallelism: 5\nprofiles: [{schedulerName: b, plugins: {score: {disabled: [{name: B}]}}}, {schedulerName: c}]\n",
    "- no mapping\n",
    "{no yaml\n",
]


def _cross(kind: str, seed: int, count: int) -> Iterator[Any]:
    if kind == "scenarios":
        return crossed_scenarios(_recorded_scenarios(), seed, count)
    if kind == "sequences":
        return crossed_sequences(_recorded_scenarios(), seed, count)
    if kind == "changes":
        return crossed_changes(_changes(), _recorded_scenarios(), seed, count)
    return crossed_configurations(TEXTS, seed, count)


KINDS = ("scenarios", "sequences", "changes", "configurations")


@pytest.mark.parametrize("kind", KINDS)
def test_one_seed_gives_the_same_questions_and_another_seed_others(kind: str) -> None:
    questions = list(_cross(kind, SEED, COUNT))
    assert questions == list(_cross(kind, SEED, COUNT))
    assert questions[:3] == list(_cross(kind, SEED, 3))
    assert questions != list(_cross(kind, SEED + 1, COUNT))
    names = [question[0] if kind == "configurations" else question["id"] for question in questions]
    assert len(set(names)) == COUNT
    assert all(f"-{SEED}x" in name for name in names)


def test_crossing_leaves_what_was_recorded_as_it_was() -> None:
    recorded_scenarios, changes = _recorded_scenarios(), _changes()
    for crossed in (
        crossed_scenarios(recorded_scenarios, SEED, COUNT),
        crossed_sequences(recorded_scenarios, SEED, COUNT),
        crossed_changes(changes, recorded_scenarios, SEED, COUNT),
    ):
        assert len(list(crossed)) == COUNT
    assert (recorded_scenarios, changes) == (_recorded_scenarios(), _changes())


@pytest.mark.parametrize("kind", ["scenarios", "sequences"])
def test_objects_of_a_crossed_cluster_have_names_and_uids_of_their_own(kind: str) -> None:
    joined_count = 0
    for question in _cross(kind, SEED, COUNT):
        objects = question["objects"]
        assert len({key(item) for item in objects}) == len(objects)
        uids = [item["metadata"]["uid"] for item in objects if item["kind"] == "Pod"]
        assert len(set(uids)) == len(uids)
        nodes = {item["metadata"]["name"] for item in objects if item["kind"] == "Node"}
        assert {item["spec"]["nodeName"] for item in objects if item["kind"] == "Pod"} <= nodes
        joined_count += len(nodes) > 2
    assert (joined_count > 0) == (kind == "scenarios")


def test_pods_that_share_a_uid_or_have_none_or_the_asked_one_get_their_own() -> None:
    first, second, third = (_recorded_pod(name) for name in "abc")
    second["metadata"]["uid"] = first["metadata"]["uid"]
    third["metadata"]["uid"] = "asked-uid"
    bare = {"kind": "Pod", "metadata": {"name": "d", "namespace": "team"}, "spec": {}}
    distinct_items = distinct([first, _recorded_pod("a", priority=1), second, third, bare])
    pairs = [(item["metadata"]["name"], item["metadata"]["uid"]) for item in distinct_items]
    assert pairs == [("a", "uid-a"), ("b", "Pod/default/b"), ("c", "Pod/default/c"), ("d", "Pod/team/d")]


@pytest.mark.parametrize(("config", "scheduler"), list(zip(CONFIGS, [None, "second", None], strict=True)))
def test_pod_that_is_asked_about_has_a_profile(config: Any, scheduler: str | None) -> None:
    pod = ask_as(_recorded_pod("x", schedulerName="gone"), config)
    assert (pod["metadata"]["name"], pod["metadata"]["uid"]) == ("asked", "asked-uid")
    assert pod["spec"].get("schedulerName") == scheduler


def test_queue_is_of_distinct_pods_of_one_profile() -> None:
    for question in crossed_sequences(_recorded_scenarios(), SEED, COUNT):
        pods = question["pods"]
        assert 20 <= len(pods) <= 60
        for identity in ("name", "uid"):
            assert len({pod["metadata"][identity] for pod in pods}) == len(pods)
        assert {pod["spec"].get("schedulerName") for pod in pods} <= {None, "second"}


def test_crossed_change_is_still_one_of_the_same_object() -> None:
    for question in _cross("changes", SEED, COUNT):
        event = question["event"]
        sides = [event[side] for side in ("old", "new") if event[side]]
        assert len({key(side) for side in sides}) == 1
        assert len(sides) == (1 if event["action"] == "Delete" else 2)
        if event["new"] and event["new"]["kind"] == "Node":
            assert event["new"] in question["objects"]


def test_crossed_configurations_are_mappings_with_parts_of_several_files() -> None:
    documents = [yaml.safe_load(text) for _, text in _cross("configurations", SEED, COUNT)]
    assert all(isinstance(document, dict) for document in documents)
    assert len({str(document) for document in documents}) > 4
    names = {tuple(profile.get("schedulerName") for profile in document["profiles"]) for document in documents}
    assert ("a", "b", "c") in names

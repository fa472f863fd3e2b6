"""SySched: how many system calls pods are exposed to without using them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.framework.profile.plugin_args import typed_args
from podium.objects.core import Pod
from podium.plugins.contrib.sy_sched import SECCOMP_PROFILES, SeccompProfile, SySched, profile_key
from podium.testing import RecordingHandle, check_contract
from tests.builders import node, pod, snapshot_of
from tests.unit.plugins.clusters import normalize, score_nodes, scored_one_by_one

ANNOTATION = "container.seccomp.security.alpha.kubernetes.io/app"


def profile(name: str, allowed_calls: str, *, logged: str = "", killed: str = "", namespace: str = "default") -> Any:
    """A profile with one letter for each system call."""
    rules = [("SCMP_ACT_ALLOW", allowed_calls), ("SCMP_ACT_LOG", logged), ("SCMP_ACT_KILL", killed)]
    syscalls = [{"action": action, "names": list(names)} for action, names in rules]
    metadata = {"name": name, "namespace": namespace}
    return msgspec.convert({"metadata": metadata, "spec": {"syscalls": syscalls}}, SeccompProfile)


def localhost(name: str) -> dict[str, Any]:
    source = {"type": "Localhost", "localhostProfile": f"operator/default/{name}.json"}
    return {"seccompProfile": source}


def confined_pod(name: str, of: str, on: str = "", **fields: Any) -> Pod:
    return pod(name, node=on, spec={"securityContext": localhost(of)}, **fields)


PROFILES = [profile("all-syscalls", "abcdefgh"), profile("ab", "ab"), profile("bc", "bc"), profile("d", "d")]
NODES = [node("n1"), node("n2"), node("n3")]


def make_plugin(*items: Any, args: Any = None) -> tuple[Any, SySched]:
    pods = [item for item in items if isinstance(item, Pod)]
    profiles = [item for item in items if isinstance(item, SeccompProfile)] or PROFILES
    snapshot = snapshot_of(*NODES, *(item for item in pods if item.node_name))
    return snapshot, SySched(typed_args(SySched, args), RecordingHandle(snapshot, [*profiles, *pods]))


def raw(incoming: Pod, *items: Any, args: Any = None) -> dict[str, int]:
    snapshot, plugin = make_plugin(*items, args=args)
    table = score_nodes(plugin, incoming, snapshot)
    assert scored_one_by_one(plugin, incoming, snapshot) == table
    return table


def test_it_keeps_the_contract() -> None:
    check_contract(SySched)


def test_calls_that_are_not_used_count_for_the_new_pod_and_for_those_that_run() -> None:
    running = [confined_pod("x", "ab", "n1"), confined_pod("y", "d", "n1"), confined_pod("z", "ab", "n2")]
    # On n1 the new pod sees c beside a and d, the two others see the union abcd less their own.
    assert raw(confined_pod("new", "bc"), *running) == {"n1": 2 + 2 + 3, "n2": 1 + 1, "n3": 0}


def test_the_fewest_foreign_calls_win() -> None:
    snapshot, plugin = make_plugin(confined_pod("x", "d", "n1"), confined_pod("z", "ab", "n2"))
    assert normalize(plugin, confined_pod("new", "ab"), snapshot) == {"n1": 0, "n2": 100, "n3": 100}


def test_a_pod_without_a_profile_has_the_default_one() -> None:
    assert raw(pod("new"), confined_pod("x", "ab", "n1")) == {"n1": 6, "n2": 0, "n3": 0}
    args = {"defaultProfileNamespace": "ops", "defaultProfileName": "small"}
    small = [profile("small", "a", namespace="ops"), profile("ab", "ab")]
    assert raw(pod("new"), confined_pod("x", "ab", "n1"), *small, args=args) == {"n1": 1, "n2": 0, "n3": 0}


def test_without_any_profile_every_node_gets_100() -> None:
    snapshot, plugin = make_plugin(profile("other", "x"), confined_pod("x", "other", "n1"))
    assert normalize(plugin, pod("new"), snapshot) == {"n1": 100, "n2": 100, "n3": 100}


def test_calls_that_are_logged_count_and_those_that_kill_do_not() -> None:
    mixed = profile("mixed", "a", logged="b", killed="c")
    assert raw(confined_pod("new", "mixed"), confined_pod("x", "d", "n1"), mixed, profile("d", "d"))["n1"] == 1 + 2


def test_profiles_of_pod_containers_and_annotation_add_up_but_not_those_of_init_containers() -> None:
    spec = {
        "securityContext": localhost("ab"),
        "containers": [{"name": "c", "securityContext": localhost("bc")}],
        "initContainers": [{"name": "i", "securityContext": localhost("e")}],
    }
    annotated = pod("new", spec=spec, metadata={"annotations": {ANNOTATION: "localhost/operator/default/d.json"}})
    profiles = [*PROFILES, profile("e", "e"), profile("f", "abcdef")]
    assert raw(annotated, confined_pod("x", "f", "n1"), *profiles)["n1"] == 2


def test_of_several_annotations_the_first_with_a_profile_counts() -> None:
    annotations = {f"{ANNOTATION}-{index}": f"default/{name}.json" for index, name in enumerate(("gone", "ab", "bc"))}
    several = pod("new", metadata={"annotations": annotations})
    assert raw(several, confined_pod("x", "ab", "n1"))["n1"] == 0


def test_other_types_of_profiles_are_not_read() -> None:
    source = {"type": "RuntimeDefault", "localhostProfile": "operator/default/ab.json"}
    default = pod("new", spec={"securityContext": {"seccompProfile": source}})
    assert raw(default, confined_pod("x", "ab", "n1"))["n1"] == 6


def test_pods_of_one_name_in_two_namespaces_are_two_pods() -> None:
    running = [confined_pod("x", "d", "n1", uid="1"), confined_pod("x", "d", "n1", uid="2", namespace="other")]
    assert raw(confined_pod("new", "ab"), *running)["n1"] == 1 + 2 + 2


def test_a_changed_profile_counts_at_once() -> None:
    running = confined_pod("x", "d", "n1")
    snapshot, plugin = make_plugin(running)
    incoming = confined_pod("new", "ab")
    assert score_nodes(plugin, incoming, snapshot)["n1"] == 1 + 2
    lister: Any = plugin.handle.lister(SECCOMP_PROFILES)
    lister._store.put(SECCOMP_PROFILES, profile("d", "abde"))
    assert score_nodes(plugin, incoming, snapshot)["n1"] == 2 + 0


def test_scores_follow_the_pods_of_a_fork() -> None:
    running = confined_pod("x", "d", "n1")
    snapshot, plugin = make_plugin(running)
    incoming = confined_pod("new", "ab")
    assert score_nodes(plugin, incoming, snapshot) == {"n1": 3, "n2": 0, "n3": 0}
    world = snapshot.fork()
    world.remove_pod(world.row_of["n1"], running.uid)
    assert score_nodes(plugin, incoming, world) == {"n1": 0, "n2": 0, "n3": 0}
    assert score_nodes(plugin, incoming, snapshot) == {"n1": 3, "n2": 0, "n3": 0}


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("localhost/operator/team/web.json", "team/web"),
        ("operator/team/web.v2.json", "team/web.v2"),
        ("team/web", "team/web"),
        ("web.json", ""),
        ("team/.json", ""),
        ("/web.json", ""),
        ("", ""),
    ],
)
def test_the_file_names_the_profile(path: str, key: str) -> None:
    assert profile_key(path) == key


def test_profiles_that_are_missing_or_allow_nothing_are_named() -> None:
    _, plugin = make_plugin(profile("kill", "", killed="ab"), profile("ab", "ab"))
    assert plugin.notes() == (
        "the SeccompProfile default/all-syscalls is missing, so nodes are alike for pods without a profile",
        "SeccompProfile default/kill: spec.syscalls: allows nothing, so it counts as none",
    )
    assert make_plugin()[1].notes() == ()

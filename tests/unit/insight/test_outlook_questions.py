"""Questions about when pods get a node that are misunderstood, or about pods that no scheduler tries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import podium
from podium.config import default_configuration
from podium.engine.errors import ManifestError
from podium.engine.files import LocatedManifest
from podium.insight.loading import Loader
from podium.insight.outlook import Outlook, Verdict
from podium.insight.outlook_questions import outlook_of
from podium.plugins import IN_TREE
from tests.gang_manifests import UPSTREAM, group, members
from tests.manifests import Json, node, pod
from tests.virtual_time import START_S

NODES = [node("n1", "4"), node("n2", "4")]


def outlook_on(target: str | Sequence[Json], *objects: Json) -> Outlook:
    """The answer of a podium that does not know which scheduler uses which profile."""
    loader = Loader(default_configuration(), IN_TREE, any_scheduler=True)
    items = [] if isinstance(target, str) else [LocatedManifest(manifest, "question") for manifest in target]
    pods = [item for item in items if item.manifest["kind"] == "Pod"]
    cluster = loader.read([LocatedManifest(manifest, "cluster") for manifest in (*NODES, *objects)], pods).cluster
    return outlook_of(cluster, target if isinstance(target, str) else items, START_S, has_one_queue=False)


def deployment(**spec: Any) -> Json:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("any", "1")["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template} | spec,
    }


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([deployment(replicas=0)], "question: Deployment default/web: spec: it asks for no pods"),
        ([deployment(template=None)], "question: Deployment default/web: spec.template: required"),
        ([group(UPSTREAM, 2)], "question: there is neither a pod nor a workload with pods"),
        (
            [group(UPSTREAM, -1, "train"), *members(UPSTREAM, 2, "train")],
            "question: PodGroup default/train: spec.schedulingPolicy.gang.minCount: -1 is not a positive number",
        ),
    ],
)
def test_a_question_that_asks_about_no_pod_is_refused_by_its_field(objects: Sequence[Json], message: str) -> None:
    with pytest.raises(ManifestError) as refusal:
        outlook_on(objects)
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({}, "kind: required"),
        ({"kind": 7}, "kind: expected a string"),
        (pod("web") | {"apiVersion": 1}, "apiVersion: expected a string"),
        (pod("web") | {"kind": None}, "kind: required"),
    ],
)
def test_what_is_no_manifest_is_refused_by_its_field(manifest: Json, message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        podium.Cluster.load(NODES).outlook(manifest)


def test_a_pod_that_comes_with_a_node_has_it_and_a_node_that_does_not_exist_is_named() -> None:
    answer = outlook_on([pod("web", "1", node="n1")])
    assert (answer.running, answer.warnings) == ([("default/web", "n1")], [])
    answer = outlook_on([pod("web", "1", node="n9")])
    assert answer.warnings == ["default/web: spec.nodeName: there is no node n9"]
    # One that waits and is placed at once had no node when the question was asked.
    answer = outlook_on("default/web", pod("web", "1"))
    assert (answer.running, answer.verdict) == ([], Verdict.NOW)


def test_a_pod_of_a_scheduler_that_nothing_shows_to_exist_is_warned_of() -> None:
    assert "spec.schedulerName ghost" in outlook_on([pod("web", "1", scheduler="ghost")]).warnings[0]
    assert "did you mean podium?" in outlook_on("default/web", pod("web", "1", scheduler="podiun")).warnings[0]
    neighbor = pod("other", "1", node="n1", scheduler="ghost")
    assert outlook_on([pod("web", "1", scheduler="ghost")], neighbor).warnings == []
    assert outlook_on("default/other", pod("other", "1", node="n1", scheduler="ghost")).warnings == []


def test_members_of_a_gang_that_cannot_be_tried_are_not_ahead_of_others_nor_others_of_them() -> None:
    gangs = [*members(UPSTREAM, 2, "lost"), group(UPSTREAM, 3, "short"), *members(UPSTREAM, 2, "short")]
    for number, manifest in enumerate((*gangs, late := pod("web", "1", scheduler="podium"))):
        manifest["metadata"]["creationTimestamp"] = f"2023-11-14T22:00:{number:02}Z"
    (web,) = outlook_on("default/web", *gangs, late).pods
    assert (web.verdict, web.ahead) == (Verdict.NOW, 0)
    for name, reason in (("lost", "does not exist"), ("short", "only 2 of the 3 pods that it needs exist")):
        for member in outlook_on(f"default/{name}-0", *gangs, late).pods:
            assert (member.verdict, member.ahead, reason in member.why) == (Verdict.NEVER, 0, True)


def test_of_two_gangs_that_need_the_same_nodes_the_later_one_waits_for_the_first() -> None:
    gangs = [manifest for name in ("a", "b") for manifest in (group(UPSTREAM, 2, name), *members(UPSTREAM, 2, name))]
    for number, manifest in enumerate(gangs):
        manifest["metadata"]["creationTimestamp"] = f"2023-11-14T22:00:{number:02}Z"
        if manifest["kind"] == "Pod":
            manifest["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
    first, second = outlook_on("default/a-0", *gangs), outlook_on("default/b-0", *gangs)
    assert [entry.verdict for entry in first.pods] == [Verdict.NOW] * 2
    assert [(entry.verdict, entry.ahead) for entry in second.pods] == [(Verdict.LATER, 2), (Verdict.LATER, 3)]


def test_members_in_another_namespace_are_of_another_gang() -> None:
    strays = members(UPSTREAM, 2, "train")
    strays[1]["metadata"]["namespace"] = "elsewhere"
    objects = [group(UPSTREAM, 2, "train"), *strays]
    assert "only 1 of the 2 pods" in outlook_on("default/train-0", *objects).pods[0].why
    assert "elsewhere/train does not exist" in outlook_on("elsewhere/train-1", *objects).pods[0].why

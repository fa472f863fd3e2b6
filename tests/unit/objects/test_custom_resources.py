"""Resource types that plugins make of a group, a version and a plural."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.manifests import read_manifest, resource_of
from podium.framework import (
    ActionType,
    ClusterObject,
    FilterPlugin,
    NamespacedObject,
    Value,
    custom_resource,
    on,
    raw_objects,
    unschedulable,
)
from podium.library import Cluster
from podium.objects.custom_resources import all_resources, custom_resources
from podium.recording import entries
from podium.recording.columns import entries_of
from podium.recording.hashed_names import NameHasher
from podium.testing import node, pod, schedule_once
from tests.manifests import nodes
from tests.manifests import pod as pod_manifest
from tests.unit.recording.contents import content_of


class CurfewSpec(Value, frozen=True):
    """The app that a curfew keeps off all nodes."""

    app: str = ""


class Curfew(NamespacedObject, frozen=True):
    """A custom object with declared fields."""

    spec: CurfewSpec = CurfewSpec()


CURFEWS = custom_resource("policy.example.com/v1", "curfews", Curfew)
RAW = custom_resource("policy.example.com/v1", "zones", raw_objects("PolicyZone", ("spec", "rows"), namespaced=False))


class KeepsCurfews(FilterPlugin):
    """Rejects the pods of apps under a curfew of their namespace."""

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        self.curfews = handle.lister(CURFEWS)

    def filter(self, state: Any, pod: Any, node: Any) -> Any:
        app = pod.metadata.labels.get("app")
        if any(curfew.spec.app == app for curfew in self.curfews.in_namespace(pod.metadata.namespace)):
            return unschedulable(f"{app} is under a curfew")
        return None

    def events_to_register(self) -> Any:
        return [on("curfews.v1.policy.example.com", ActionType.DELETE)]


def curfew(name: str, app: str) -> dict[str, Any]:
    return {
        "apiVersion": "policy.example.com/v1",
        "kind": "Curfew",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"app": app},
    }


def test_a_resource_is_made_of_group_version_and_plural() -> None:
    assert (CURFEWS.kind, CURFEWS.group, CURFEWS.plural, CURFEWS.api_version) == (
        "Curfew",
        "policy.example.com",
        "curfews",
        "policy.example.com/v1",
    )
    assert CURFEWS.is_namespaced
    assert not RAW.is_namespaced
    assert CURFEWS.event is not None
    assert CURFEWS.event.value == "curfews.v1.policy.example.com"
    assert {CURFEWS, RAW} <= set(custom_resources()) < set(all_resources())
    assert custom_resource("policy.example.com/v1", "curfews", Curfew) is CURFEWS


def test_raw_objects_keep_what_was_parsed() -> None:
    manifest = {
        "apiVersion": "policy.example.com/v1",
        "kind": "PolicyZone",
        "metadata": {"name": "a"},
        "spec": {"deep": [{"x": 1}]},
        "rows": ["1", 2.5],
        "others": "are dropped",
    }
    assert resource_of(manifest) is RAW
    item = read_manifest(manifest, RAW)
    assert (item.spec, item.rows, item.key) == ({"deep": [{"x": 1}]}, ["1", 2.5], "a")
    assert read_manifest({"metadata": {"name": "b"}}, RAW).rows == {}


@pytest.mark.parametrize(
    ("api_version", "plural", "field"),
    [("v1", "curfews", "api_version"), ("example/v1", "curfews", "api_version"), ("a.b/v1", "Curfews", "plural")],
)
def test_a_malformed_name_is_refused(api_version: str, plural: str, field: str) -> None:
    with pytest.raises(ValueError, match=f"^{field}: "):
        custom_resource(api_version, plural, Curfew)


def test_a_second_type_for_the_same_resource_is_refused() -> None:
    class Other(ClusterObject, frozen=True, tag="Curfew"):
        pass

    with pytest.raises(ValueError, match=r"are decoded to .*Curfew already"):
        custom_resource("policy.example.com/v1", "curfews", Other)
    with pytest.raises(TypeError, match="not derived from NamespacedObject"):
        custom_resource("policy.example.com/v1", "others", Value)  # type: ignore[type-var]
    with pytest.raises(ValueError, match=r"^kind: "):
        raw_objects("zone")


def test_events_are_registered_by_their_upstream_name() -> None:
    registration = on("curfews.v1.policy.example.com", ActionType.ADD)
    assert registration.event.label == "curfews.v1.policy.example.comAdd"
    with pytest.raises(ValueError, match=r"expected <plural>\.<version>\.<group>"):
        on("curfews", ActionType.ADD)


def test_a_plugin_reads_the_objects_in_tests_and_in_a_cluster_in_memory() -> None:
    item = read_manifest(curfew("night", "web"), CURFEWS)
    late = pod("web-1", labels={"app": "web"})
    result = schedule_once(late, [node("n1")], plugins=[KeepsCurfews], objects=[item])
    assert result.rejected["n1"].message == "web is under a curfew"

    manifest = pod_manifest("web-1")
    manifest["metadata"]["labels"] = {"app": "web"}
    cluster = Cluster.load([*nodes(1), curfew("night", "web")], plugins=[KeepsCurfews])
    manifest["spec"]["schedulerName"] = "default-scheduler"
    assert cluster.schedule(manifest).node is None
    without = cluster.fork()
    without.remove("Curfew", "night")
    assert without.schedule(manifest).node is not None
    assert cluster.manifest_of("Curfew", "night")["spec"] == {"app": "web"}


def test_an_object_that_does_not_parse_is_named_with_its_field() -> None:
    broken = curfew("night", "web") | {"spec": {"app": 7}}
    with pytest.raises(Exception, match=r"Curfew default/night: spec\.app: ") as caught:
        Cluster.load([*nodes(1), broken], plugins=[KeepsCurfews])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("hasher", [None, NameHasher(b"key")], ids=["plain", "hashed"])
def test_a_recording_keeps_custom_objects(hasher: NameHasher | None) -> None:
    typed = read_manifest(curfew("night", "web"), CURFEWS)
    raw = read_manifest({"metadata": {"name": "a"}, "spec": {"n": 1}}, RAW)
    content = content_of((entries.PUT, (CURFEWS.path, typed)), (entries.PUT, (RAW.path, raw)), hasher=hasher)
    first, second = entries_of(content)
    assert first[:2] == (entries.PUT, CURFEWS.path)
    assert type(first[2]) is Curfew
    assert list(second[2].spec.values()) == [1]
    assert hasher or second[2] == raw

"""Clusters that serve kinds only in other versions than the current one."""

from __future__ import annotations

from typing import Any, Self

import msgspec
import pytest

from podium.engine.errors import ClusterError
from podium.insight import running_cluster
from podium.objects.api_errors import NotFound
from podium.objects.resource_types import DEVICE_TAINT_RULES, NODES, RESOURCE_CLAIMS, RESOURCE_SLICES, ResourceType

pytestmark = pytest.mark.anyio

GROUP = "/apis/resource.k8s.io"


class Served:
    """A session with a cluster that serves these paths, each with the items of a list."""

    base_url = "https://cluster"

    def __init__(self, lists: dict[str, list[dict[str, Any]]], group_versions: tuple[str, ...] = ()) -> None:
        self._lists = lists
        self._group_versions = group_versions

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        path = path.partition("?")[0]
        if path == GROUP and self._group_versions:
            versions = [{"groupVersion": f"resource.k8s.io/{name}", "version": name} for name in self._group_versions]
            return msgspec.json.encode({"kind": "APIGroup", "versions": versions})
        if path not in self._lists:
            raise NotFound("the server could not find the requested resource")
        kinds = {
            "resourceclaims": "ResourceClaim",
            "resourceslices": "ResourceSlice",
            "devicetaintrules": "DeviceTaintRule",
        }
        _, _, group, version, plural = path.split("/")
        kind = {"kind": f"{kinds[plural]}List", "apiVersion": f"{group}/{version}"}
        return msgspec.json.encode({**kind, "metadata": {}, "items": self._lists[path]})


async def manifests(
    session: Served, *resources: ResourceType[Any], monkeypatch: pytest.MonkeyPatch
) -> list[dict[str, Any]]:
    """The manifests of these kinds."""

    async def load(**_: Any) -> Served:
        return session

    monkeypatch.setattr(running_cluster, "load", load)
    monkeypatch.setattr(running_cluster, "ApiSession", lambda *_, **__: session)
    monkeypatch.setattr(running_cluster, "CONTROL_RESOURCES", ())
    monkeypatch.setattr(running_cluster, "_GROUPS", ())
    objects, _ = await running_cluster.list_objects(None, None, resources)
    return [dict(item.manifest) for item in objects]


CLAIM = {"metadata": {"name": "gpu"}, "spec": {"devices": {"requests": [{"name": "one", "deviceClassName": "gpu"}]}}}
SLICE = {"metadata": {"name": "gpus"}, "spec": {"devices": [{"name": "gpu-0", "basic": {"attributes": {}}}]}}


async def test_objects_of_v1beta1_are_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Served({f"{GROUP}/v1beta1/resourceclaims": [CLAIM], f"{GROUP}/v1beta1/resourceslices": [SLICE]})
    claim, devices = await manifests(session, RESOURCE_CLAIMS, RESOURCE_SLICES, monkeypatch=monkeypatch)
    assert claim["apiVersion"] == devices["apiVersion"] == "resource.k8s.io/v1"
    assert claim["spec"]["devices"]["requests"] == [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]
    assert devices["spec"]["devices"] == [{"name": "gpu-0", "attributes": {}}]


async def test_the_newest_version_that_is_served_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = {"metadata": {"name": "gpu"}, "spec": {"devices": {"requests": [{"name": "one", "exactly": {}}]}}}
    session = Served({f"{GROUP}/v1beta1/resourceclaims": [CLAIM], f"{GROUP}/v1beta2/resourceclaims": [exact]})
    (claim,) = await manifests(session, RESOURCE_CLAIMS, monkeypatch=monkeypatch)
    assert (claim["apiVersion"], claim["spec"]) == ("resource.k8s.io/v1", exact["spec"])


async def test_taint_rules_of_v1beta2_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = {"metadata": {"name": "rule"}, "spec": {"taint": {"key": "x", "effect": "NoSchedule"}}}
    session = Served({f"{GROUP}/v1beta2/devicetaintrules": [rule]})
    (manifest,) = await manifests(session, DEVICE_TAINT_RULES, monkeypatch=monkeypatch)
    assert manifest["apiVersion"] == "resource.k8s.io/v1"


async def test_objects_of_a_version_that_is_not_read_are_refused_by_group_and_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = Served({f"{GROUP}/v1alpha3/resourceclaims": [CLAIM]}, ("v1alpha3",))
    with pytest.raises(
        ClusterError, match=r"ResourceClaim of resource\.k8s\.io/v1alpha3 is not read, only of .*/v1 and"
    ):
        await manifests(session, RESOURCE_CLAIMS, monkeypatch=monkeypatch)


async def test_without_objects_no_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Served({f"{GROUP}/v1alpha3/resourceclaims": []}, ("v1alpha3",))
    assert await manifests(session, RESOURCE_CLAIMS, monkeypatch=monkeypatch) == []
    assert await manifests(Served({}), RESOURCE_CLAIMS, NODES, monkeypatch=monkeypatch) == []

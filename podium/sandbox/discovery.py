"""The discovery documents: versions, groups, types, and the minimal OpenAPI document that kubectl needs.

Before it creates, applies or patches, kubectl reads one fact from OpenAPI v3: whether the server validates fields
itself (the `fieldValidation` parameter of PATCH). The document says that it does, so the schemas only tell
`kubectl explain` that there is nothing to explain.
"""

from __future__ import annotations

from typing import Any, Final

from podium.sandbox.resources import RESOURCES, VERBS, ResourceType

Json = dict[str, Any]

_MAJOR, _MINOR, _PATCH = 1, 37, 2
KUBELET_VERSION: Final = f"v{_MAJOR}.{_MINOR}.{_PATCH}"
VERSION: Json = {
    "major": str(_MAJOR),
    "minor": str(_MINOR),
    "gitVersion": f"{KUBELET_VERSION}+podium-sandbox",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
_REVIEWS = {
    "authentication.k8s.io/v1": (
        ("tokenreviews", "TokenReview", False),
        ("selfsubjectreviews", "SelfSubjectReview", False),
    ),
    "authorization.k8s.io/v1": (
        ("selfsubjectaccessreviews", "SelfSubjectAccessReview", False),
        ("selfsubjectrulesreviews", "SelfSubjectRulesReview", False),
        ("subjectaccessreviews", "SubjectAccessReview", False),
        ("localsubjectaccessreviews", "LocalSubjectAccessReview", True),
    ),
}
_SUBRESOURCE_KINDS = {
    "binding": {"kind": "Binding", "verbs": ["create"]},
    "eviction": {"kind": "Eviction", "group": "policy", "version": "v1", "verbs": ["create"]},
    "scale": {"kind": "Scale", "group": "autoscaling", "version": "v1", "verbs": ["get", "patch", "update"]},
    "token": {"kind": "TokenRequest", "group": "authentication.k8s.io", "version": "v1", "verbs": ["create"]},
}


_NO_FIELDS = (
    "The sandbox does not describe fields: see https://kubernetes.io/docs/reference/kubernetes-api, or ask a cluster."
)


def group_versions() -> list[str]:
    """Return every served `group/version`, core first."""
    return list(dict.fromkeys([*(resource.api_version for resource in RESOURCES), *_REVIEWS]))


def answer(path: str, *, aggregated: bool) -> Json | None:
    """Return the discovery document at a path, or None if the path has none."""
    if path == "/version":
        return VERSION
    if path == "/api":
        return _aggregated_discovery(["v1"]) if aggregated else {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        named_groups = [group_version for group_version in group_versions() if "/" in group_version]
        return (
            _aggregated_discovery(named_groups)
            if aggregated
            else {
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": [_group(name) for name in named_groups],
            }
        )
    if path == "/openapi/v3":
        return {"paths": {root[1:]: {"serverRelativeURL": f"/openapi/v3{root}"} for root in _roots().values()}}
    for group_version, root in _roots().items():
        if path == root:
            return _resource_list(group_version)
        if path == f"/openapi/v3{root}":
            return _openapi_v3(group_version)
        if path == root.rpartition("/")[0] and root != "/api/v1":
            return _group(group_version) | {"kind": "APIGroup", "apiVersion": "v1"}
    return None


def openapi_v2() -> Json:
    """Return an OpenAPI v2 document without definitions."""
    return {"swagger": "2.0", "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]}, "paths": {}}


def _roots() -> dict[str, str]:
    return {name: f"/apis/{name}" if "/" in name else f"/api/{name}" for name in group_versions()}


def _group(group_version: str) -> Json:
    group, _, version = group_version.rpartition("/")
    entry = {"groupVersion": group_version, "version": version}
    return {"name": group, "versions": [entry], "preferredVersion": entry}


def _types(group_version: str) -> list[ResourceType]:
    return [resource for resource in RESOURCES if resource.api_version == group_version]


def _resource_list(group_version: str) -> Json:
    entries: list[Json] = []
    for resource in _types(group_version):
        entry = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(VERBS),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        entries.append(entry)
        for name in resource.subresources:
            subresource = _SUBRESOURCE_KINDS.get(name, {"kind": resource.kind, "verbs": ["get", "patch", "update"]})
            entries.append(
                {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced}
                | subresource
            )
    for plural, kind, namespaced in _REVIEWS.get(group_version, ()):
        entries.append(
            {"name": plural, "singularName": kind.lower(), "namespaced": namespaced, "kind": kind, "verbs": ["create"]}
        )
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}


def _aggregated_discovery(names: list[str]) -> Json:
    items = []
    for group_version in names:
        group, _, version = group_version.rpartition("/")
        resources = [_aggregated_type(resource) for resource in _types(group_version)]
        resources += [
            {
                "resource": plural,
                "responseKind": {"group": group, "version": version, "kind": kind},
                "scope": "Namespaced" if namespaced else "Cluster",
                "singularResource": kind.lower(),
                "verbs": ["create"],
            }
            for plural, kind, namespaced in _REVIEWS.get(group_version, ())
        ]
        versions = [{"version": version, "resources": resources, "freshness": "Current"}]
        items.append({"metadata": {"name": group, "creationTimestamp": None}, "versions": versions})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_type(resource: ResourceType) -> Json:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    subresources = []
    for name in resource.subresources:
        subresource = _SUBRESOURCE_KINDS.get(name, {"kind": resource.kind, "verbs": ["get", "patch", "update"]})
        response_kind = {
            "group": subresource.get("group", resource.group),
            "version": subresource.get("version", resource.version),
            "kind": subresource["kind"],
        }
        subresources.append({"subresource": name, "responseKind": response_kind, "verbs": subresource["verbs"]})
    return {
        "resource": resource.plural,
        "responseKind": kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(VERBS),
        "shortNames": list(resource.short_names),
        "categories": list(resource.categories),
        "subresources": subresources,
    }


def _openapi_v3(group_version: str) -> Json:
    root = _roots()[group_version]
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string"}}
        for name in ("dryRun", "fieldManager", "fieldValidation")
    ]
    # Only what kubectl looks up: whether fields are validated on the server.
    paths, schemas = {}, {}
    for resource in _types(group_version):
        scope = "/namespaces/{namespace}" if resource.namespaced else ""
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        operation = {"x-kubernetes-group-version-kind": kind, "parameters": parameters}
        paths[f"{root}{scope}/{resource.plural}"] = {"post": operation}
        paths[f"{root}{scope}/{resource.plural}/{{name}}"] = {"patch": operation, "put": operation}
        schemas[resource.kind] = {
            "type": "object",
            "description": _NO_FIELDS,
            "x-kubernetes-group-version-kind": [kind],
        }
    info = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}

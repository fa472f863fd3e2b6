"""Parse an HTTP request to its resource type, verb, namespace, name and subresource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import yaml
from aiohttp import web

from podium.sandbox.errors import ApiError, bad_request, nested_too_deep
from podium.sandbox.protobuf import decode_object
from podium.sandbox.resources import BY_PATH, ResourceType

Json = dict[str, Any]

_OF_RUNNING_CONTAINERS = frozenset({"attach", "ephemeralcontainers", "exec", "log", "portforward", "proxy"})
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ACCEPTED = "accepted media types include: application/json, application/yaml"
PATCH_TYPES = {
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/json-patch+json": "json",
    "application/apply-patch+yaml": "apply",
    "application/apply-patch+cbor": "",
}


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """One request for a resource. `namespace` is None for all namespaces and for cluster-wide types."""

    resource: ResourceType
    verb: str
    namespace: str | None
    name: str | None
    subresource: str | None
    query: Mapping[str, str]

    @property
    def dry_run(self) -> bool:
        """Return whether the write must not be persisted."""
        return self.query.get("dryRun") == "All"


def parse_request(method: str, path: str, query: Mapping[str, str]) -> ResourceRequest:
    """Read `/api/v1/...` and `/apis/<group>/<version>/...`.

    Raises:
        ApiError: 404, the path does not exist; 405, the verb is not allowed; 501, it needs a running container.
    """
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, segments = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, segments = parts[1], parts[2], parts[3:]
    else:
        raise path_not_found()
    namespace = None
    if segments[0] == "namespaces" and len(segments) > 2 and segments[2] not in ("status", "finalize"):
        namespace, segments = segments[1], segments[2:]
    resource = BY_PATH.get((group, version, segments[0]))
    if resource is None or len(segments) > 3 or (namespace is not None and not resource.namespaced):
        raise path_not_found()
    name = segments[1] if len(segments) > 1 else None
    subresource = segments[2] if len(segments) > 2 else None
    if resource.storage == "pods" and subresource in _OF_RUNNING_CONTAINERS:
        raise ApiError(501, "NotImplemented", f"the sandbox runs no containers, so its pods have no {subresource}")
    if subresource is not None and subresource not in resource.subresources:
        raise path_not_found()
    verb = _verb(method, name, query)
    return ResourceRequest(resource, verb, namespace, name, subresource, query)


def _verb(method: str, name: str | None, query: Mapping[str, str]) -> str:
    verb = _VERBS.get(method)
    if verb is None:
        raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    if verb == "get" and flag(query, "watch"):
        return "watch"
    if name is None and verb in ("get", "delete"):
        return {"get": "list", "delete": "deletecollection"}[verb]
    if name is None and verb in ("update", "patch"):
        raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    return verb


def flag(query: Mapping[str, str], name: str) -> bool:
    """Return a boolean parameter, read as the API server does: anything but false and 0 is true."""
    return query.get(name, "false").lower() not in ("false", "0")


def path_not_found() -> ApiError:
    """Return the error 404 for a path that does not exist."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


async def read_body(request: web.BaseRequest) -> Any:
    """Parse the body as JSON, or as YAML if the client says so. An empty body is an empty object.

    A body whose Content-Type is missing is JSON; one of any other type, such as that of a web form, is refused.

    Raises:
        ApiError: 400, the body cannot be parsed; 415, its format is not supported.
    """
    content_type = request.content_type
    body = await request.read()
    if not body:
        return {}
    if "protobuf" in content_type or "cbor" in content_type:
        return _read_protobuf(body, content_type)
    if "Content-Type" in request.headers and not content_type.endswith(("json", "yaml")):
        message = f"the body of the request was in an unknown format - {_ACCEPTED}"
        raise ApiError(415, "UnsupportedMediaType", message)
    try:
        # Not by podium's own reader: the sandbox shares no code with what it tests.
        return yaml.safe_load(body) if content_type.endswith("yaml") else orjson.loads(body)
    except RecursionError:
        raise nested_too_deep() from None
    except (orjson.JSONDecodeError, yaml.YAMLError) as error:
        raise bad_request(f"the body of the request is unparsable: {error}") from None


def _read_protobuf(body: bytes, content_type: str) -> Json:
    try:
        return decode_object(body)
    except ValueError as error:
        message = f"the body of the request was in an unknown format ({content_type}: {error}) - {_ACCEPTED}"
        raise ApiError(415, "UnsupportedMediaType", message) from None


async def read_object(request: web.BaseRequest) -> Json:
    """Parse the body, which must be an object.

    Raises:
        ApiError: 400, 415.
    """
    body = await read_body(request)
    if not isinstance(body, dict):
        raise bad_request("the body of the request is not an object")
    return body

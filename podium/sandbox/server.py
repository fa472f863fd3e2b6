"""The HTTP server in front of the store: authentication, injected faults, and the verbs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import orjson
from aiohttp import web

from podium.lib.web_sites import site_refusal
from podium.sandbox import discovery, pods, reviews
from podium.sandbox.errors import ApiError, bad_request
from podium.sandbox.faults import Faults
from podium.sandbox.field_selectors import name_requirement
from podium.sandbox.paging import list_page
from podium.sandbox.patches import apply_patch
from podium.sandbox.presentation import Presentation, negotiate
from podium.sandbox.requests import PATCH_TYPES, ResourceRequest, parse_request, path_not_found, read_body, read_object
from podium.sandbox.scale import replace_replicas, scale_of
from podium.sandbox.selectors import Selection, selection
from podium.sandbox.store import Store
from podium.sandbox.tokens import Tokens
from podium.sandbox.views import to_stored
from podium.sandbox.watches import Watch

Json = dict[str, Any]

_OPEN_PATHS = {"/healthz", "/livez", "/readyz", "/version"}
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_OPENAPI_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


@dataclass(frozen=True, slots=True)
class Call:
    """One resource request and everything that its answer needs."""

    http: web.BaseRequest
    request: ResourceRequest
    presentation: Presentation


class ApiServer:
    """Answers requests. `handle` is the entry point for `aiohttp.web.Server`."""

    def __init__(self, store: Store, faults: Faults, *, token: str | None, bookmark_interval_s: float) -> None:
        self._store = store
        self._faults = faults
        self._tokens = Tokens(token, store.now)
        self._bookmark_interval_s = bookmark_interval_s
        self._verbs: dict[str, Callable[[Call], Awaitable[web.StreamResponse]]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one HTTP request. An ApiError is answered with its Status."""
        try:
            if refusal := site_refusal(request.headers):
                raise ApiError(403, "Forbidden", f"forbidden: {refusal}")
            self._authenticate(request)
            if request.path.startswith(("/api/v1/", "/apis/")):
                if request.method == "POST" and reviews.is_review(request.path):
                    return _json(reviews.answer_review(request.path, await read_object(request), self._tokens), 201)
                # Deeper paths name a resource; shorter ones are discovery.
                if request.path.count("/") > (2 if request.path.startswith("/api/") else 3):
                    return await self._resource(request)
            return await self._other(request)
        except ApiError as error:
            headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
            return _json(error.status(), error.code, headers)
        except ConnectionResetError:
            # The client has disconnected, or a fault has cut the connection. aiohttp ignores an answer that cannot be
            # sent, but logs an exception.
            return web.Response()

    def _authenticate(self, request: web.BaseRequest) -> None:
        if self._tokens.admits_everybody or request.path in _OPEN_PATHS:
            return
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or self._tokens.user_of(token) is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")

    async def _resource(self, http: web.BaseRequest) -> web.StreamResponse:
        request = parse_request(http.method, http.path, http.query)
        await self._faults.delay(request)
        if fault := self._faults.take("error", request):
            raise fault.error()
        if fault := self._faults.take("invalid", request):
            return web.Response(status=fault.code, body=fault.body.encode(), content_type="text/html")
        # Taken before the write, which happens all the same: the client then does not know whether it did.
        lost_fault, torn = self._faults.take("lost", request), self._faults.take("torn", request)
        accept = http.headers.get("Accept", "")
        presentation = negotiate(accept, request.query.get("includeObject", ""), request.resource, self._store.now)
        response = await self._verbs[request.verb](Call(http, request, presentation))
        if lost_fault is not None and http.transport is not None:
            http.transport.abort()
        if torn is not None and isinstance(response, web.Response):
            return await _send_half(http, response)
        return response

    async def _get(self, call: Call) -> web.StreamResponse:
        request = call.request
        record = self._store.record(request.resource, request.namespace, request.name or "")
        if request.subresource == "scale":
            return _json(scale_of(record))
        return _raw(call.presentation.one(record))

    async def _list(self, call: Call) -> web.StreamResponse:
        collection = self._store.collection(call.request.resource)
        records, meta = list_page(collection, _selection(call.request), call.request, self._store.revision)
        return _raw(call.presentation.many(records, meta))

    async def _watch(self, call: Call) -> web.StreamResponse:
        collection = self._store.collection(call.request.resource)
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache"})
        try:
            watch = Watch(
                self._store,
                collection,
                _selection(call.request),
                call.presentation,
                call.request,
                self._bookmark_interval_s,
            )
        except ApiError as error:
            if error.code != 410:
                raise
            # Like upstream's watch cache, answer with 200 and a first event of code 410.
            return _raw(b'{"type":"ERROR","object":' + orjson.dumps(error.status()) + b"}\n")
        self._faults.watches[watch] = None
        try:
            response.enable_chunked_encoding()
            await response.prepare(call.http)
            await watch.stream(response)
        finally:
            self._faults.watches.pop(watch, None)
        # A fault ends the watch without the final chunk, as a dying server would.
        if watch.cut and call.http.transport is not None:
            call.http.transport.close()
        return response

    async def _create(self, call: Call) -> web.StreamResponse:
        request, body = call.request, await read_object(call.http)
        if request.name is None:
            if not body:
                raise bad_request(f"the object provided is unrecognized (must be of type {request.resource.kind})")
            _check_kind(request, body)
            with self._store.dry_run(request.dry_run):
                record = self._store.create_record(request.resource, request.namespace, body)
            return _raw(call.presentation.one(record), 201)
        if request.subresource == "token":
            account = self._store.record(request.resource, request.namespace, request.name)
            return _json(self._tokens.issue(account.obj, body), 201)
        action = {"binding": pods.bind, "eviction": pods.evict}.get(request.subresource or "")
        if action is None:
            raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        with self._store.dry_run(request.dry_run):
            return _json(action(self._store, request.namespace or "", request.name, body), 201)

    async def _update(self, call: Call) -> web.StreamResponse:
        request, body = call.request, await read_object(call.http)
        if request.subresource != "scale":
            _check_kind(request, body)
        record = self._store.record(request.resource, request.namespace, request.name or "")
        with self._store.dry_run(request.dry_run):
            if request.subresource == "scale":
                return _json(scale_of(replace_replicas(self._store, request.resource, record, body)))
            obj = to_stored(request.resource, body)
            return _raw(
                call.presentation.one(self._store.update_record(request.resource, record, obj, request.subresource))
            )

    async def _patch(self, call: Call) -> web.StreamResponse:
        request = call.request
        patch_type = PATCH_TYPES.get(call.http.content_type)
        if not patch_type:
            raise ApiError(415, "UnsupportedMediaType", f"unknown patch type {call.http.content_type!r}")
        body = await read_body(call.http)
        with self._store.dry_run(request.dry_run):
            return self._apply_patch(call, patch_type, body)

    def _apply_patch(self, call: Call, patch_type: str, body: Any) -> web.StreamResponse:
        request, store = call.request, self._store
        resource, name = request.resource, request.name or ""
        key = (request.namespace or "" if resource.namespaced else "", name)
        # Server-side apply creates what does not exist; other patches do not.
        if patch_type == "apply" and isinstance(body, dict) and key not in store.collection(resource).records:
            body.setdefault("metadata", {}).setdefault("name", name)
            record = store.create_record(resource, request.namespace, body)
            return _raw(call.presentation.one(record), 201)
        record = store.record(resource, request.namespace, name)
        if request.subresource == "scale":
            new_scale = apply_patch(scale_of(record), body, patch_type, "Scale")
            return _json(scale_of(replace_replicas(store, resource, record, new_scale)))
        return _raw(call.presentation.one(store.patch_record(resource, record, body, patch_type, request.subresource)))

    async def _delete(self, call: Call) -> web.StreamResponse:
        request, options = call.request, await _delete_options(call)
        record = self._store.record(request.resource, request.namespace, request.name or "")
        with self._store.dry_run(request.dry_run):
            last, is_gone = self._store.delete_record(request.resource, record, options)
        # The API server answers with the object where it may live on for a while.
        if not is_gone or request.resource.storage in ("pods", "namespaces"):
            return _raw(call.presentation.one(last))
        metadata = last.obj["metadata"]
        details = {
            "name": metadata["name"],
            "group": request.resource.group,
            "kind": request.resource.plural,
            "uid": metadata.get("uid", ""),
        }
        return _json({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})

    async def _delete_collection(self, call: Call) -> web.StreamResponse:
        request, options = call.request, await _delete_options(call)
        # Neither limit nor continue: all selected objects are deleted.
        whole_selection = replace(
            request, query={name: value for name, value in request.query.items() if name.endswith("Selector")}
        )
        collection = self._store.collection(request.resource)
        records, meta = list_page(collection, _selection(request), whole_selection, self._store.revision)
        with self._store.dry_run(request.dry_run):
            for record in records:
                self._store.delete_record(request.resource, record, options)
        return _raw(call.presentation.many(records, meta))

    async def _other(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        if path.startswith(("/healthz", "/livez", "/readyz")):
            return web.Response(text="ok")
        if path == "/sandbox/faults":
            return await self._administer(request)
        accept = request.headers.get("Accept", "")
        if path == "/openapi/v2":
            # kubectl falls back to v3 when this document is empty.
            if "protobuf" in accept:
                return web.Response(body=b"", headers={"Content-Type": _OPENAPI_V2_PROTOBUF})
            return _json(discovery.openapi_v2())
        aggregated = "as=APIGroupDiscoveryList" in accept and "v=v2;" in accept + ";"
        document = discovery.answer(path, aggregated=aggregated)
        if document is None:
            raise path_not_found()
        if document.get("kind") == "APIGroupDiscoveryList":
            return _json(document, headers={"Content-Type": _AGGREGATED})
        return _json(document)

    async def _administer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "POST":
            return _json(self._faults.inject(await read_object(request)))
        if request.method == "DELETE":
            self._faults.clear()
        return _json(self._faults.as_json())


async def _send_half(http: web.BaseRequest, answer: web.Response) -> web.StreamResponse:
    assert isinstance(answer.body, bytes)
    response = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
    response.content_length = len(answer.body)
    await response.prepare(http)
    # Half a body under a whole Content-Length is what a cut connection looks like.
    await response.write(answer.body[: len(answer.body) // 2])
    if http.transport is not None:
        http.transport.close()
    return response


def _selection(request: ResourceRequest) -> Selection:
    query = request.query
    objects = selection(
        request.resource, request.namespace, query.get("labelSelector", ""), query.get("fieldSelector", "")
    )
    if request.name is not None:
        return replace(objects, fields=(*objects.fields, name_requirement(request.name)))
    return objects


async def _delete_options(call: Call) -> Json:
    options = await read_object(call.http)
    grace_text = call.request.query.get("gracePeriodSeconds", "")
    if grace_text.isdecimal():
        options.setdefault("gracePeriodSeconds", int(grace_text))
    return options


def _check_kind(request: ResourceRequest, body: Json) -> None:
    resource = request.resource
    type_meta = body.get("apiVersion", resource.api_version), body.get("kind", resource.kind)
    if type_meta != (resource.api_version, resource.kind):
        raise bad_request(
            f"the API version and kind in the data ({type_meta[0]}, {type_meta[1]}) do not match the expected "
            f"({resource.api_version}, {resource.kind})"
        )


def _json(body: Json, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        body=orjson.dumps(body), status=status, headers={"Content-Type": "application/json"} | (headers or {})
    )


def _raw(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, headers={"Content-Type": "application/json"})

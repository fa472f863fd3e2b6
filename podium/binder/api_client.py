"""Writes pods: the binding, the status of pods that were not bound, and changes that plugins request.

Owns the meaning of a response of the API server, or of its absence, for these writes. Never guesses: if it is unknown
whether a binding or a change has happened, the object is read again.

Source: kubernetes pkg/scheduler/framework/plugins/defaultbinder and pkg/scheduler/util/utils.go, v1.37.2.
Differs: upstream treats a lost response as a failure until the next update of the pod says otherwise, and most invalid
responses as a success; podium treats both as an unknown outcome. Of a binding that an internal error answers, podium
finds out whether it has happened before it sends it again; upstream then fails with a conflict. podium retries
bindings whatever release it decides as; older releases of upstream do not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any, Literal

import anyio
import msgspec
from msgspec import Struct

from podium.binder.object_lifecycle import create_object, delete_object, read_object
from podium.binder.object_patch import patch_object
from podium.binder.status_patch import condition_removal, status_patch
from podium.client.answers import check_deleted, check_object, check_success, read
from podium.client.dispatcher import RETRIES_MAX, Compose, Dispatcher, Priority
from podium.client.requests import JSON, STRATEGIC_MERGE_PATCH, Method
from podium.lib.clock import Clock
from podium.objects.api_errors import (
    UNDER_WAY_S,
    ApiError,
    Conflict,
    InternalError,
    Malformed,
    NotFound,
    OutcomeUnknown,
    ServerTimeout,
    Unavailable,
    Unreachable,
)
from podium.objects.core import Pod, PodCondition
from podium.objects.meta import ObjectMeta
from podium.objects.pod_groups import PodGroup
from podium.objects.resource_types import PODS, ObjectT, ResourceType

_BIND_TRIES = 3
_BIND_PAUSES_S = (0.01, 0.05, 0.25)
"""The waits before a binding is sent again that could not reach the server."""
_BIND_PAUSE_S = 0.1
_BIND_PAUSE_S_MAX = 5.0
_READ_PAUSES_S = (0.0, 0.1, 0.5, 2.0)
_STATUS_PAUSES_S = (0.0, 0.01, 0.05, 0.25)
_JITTER = 0.1
_DELETE_RETRIED = (InternalError, Unavailable, ServerTimeout, Unreachable, OutcomeUnknown, Malformed)
_STATUS_RETRIED = (*_DELETE_RETRIED, Conflict)

_encode = msgspec.json.Encoder().encode


class NodeFilled(ApiError):  # noqa: N818 - named after what happened, as in `objects.api_errors`
    """Another scheduler filled the node before the binding was sent."""


class _BindingMeta(Struct, gc=False):
    namespace: str
    name: str
    uid: str


class _Target(Struct, gc=False):
    name: str
    apiVersion: str = "v1"  # noqa: N815 - the API's spelling
    kind: str = "Node"


class _Binding(Struct, gc=False):
    metadata: _BindingMeta
    target: _Target
    apiVersion: str = "v1"  # noqa: N815
    kind: str = "Binding"


class _Preconditions(Struct, gc=False):
    uid: str


class _DeleteOptions(Struct, gc=False):
    preconditions: _Preconditions
    apiVersion: str = "v1"  # noqa: N815
    kind: str = "DeleteOptions"


class _ResponseMeta(Struct):
    name: str
    namespace: str
    uid: str


class _ResponseSpec(Struct):
    node_name: str | None = msgspec.field(default=None, name="nodeName")


class _ResponseStatus(Struct):
    phase: str = ""
    reason: str = ""


class _ResponsePod(Struct):
    kind: Literal["Pod"]
    metadata: _ResponseMeta
    spec: _ResponseSpec
    status: _ResponseStatus = msgspec.field(default_factory=_ResponseStatus)


_decode_pod = msgspec.json.Decoder(_ResponsePod).decode


class ApiClient:
    """Binds pods, patches their status and deletes them, through the dispatcher.

    Args:
        retries_max: how often `create`, `patch` and `delete` are sent again after a 429. A caller that has other work
            meanwhile tries again by itself.

    Cost: bind adds about 2 us to the time of the dispatcher and the session.
    """

    def __init__(self, dispatcher: Dispatcher, clock: Clock, *, retries_max: int = RETRIES_MAX) -> None:
        self._dispatcher = dispatcher
        self._retries_max = retries_max
        self._clock = clock
        self._is_too_late: Callable[[Pod], bool] | None = None

    def refuse_bindings_if(self, is_too_late: Callable[[Pod], bool]) -> None:
        """Set a check that runs just before a binding is sent; if it is true, `bind` raises `NodeFilled`."""
        self._is_too_late = is_too_late

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod to the node; on return it is bound there, whether or not the server's response was received.

        Raises:
            Conflict: the pod is bound elsewhere, was recreated, or must not be bound.
            NotFound: the pod was deleted.
            NodeFilled: the binding was not sent, see `refuse_bindings_if`.
            ApiError: any other error response; `OutcomeUnknown` if the outcome could not be found out.
        """
        metadata, path = pod.metadata, _path(pod)
        body = _encode(_Binding(_BindingMeta(metadata.namespace, metadata.name, metadata.uid), _Target(node_name)))
        try:
            await self._send_binding(pod, path, self._with_check(pod, node_name, body))
        except ApiError as error:
            # The server has refused: nothing was bound, and the caller may try another node.
            if not error.may_have_happened:
                raise
            await self._settle(pod, node_name, path, body, error)

    def _with_check(self, pod: Pod, node_name: str, body: bytes) -> bytes | Compose:
        is_too_late = self._is_too_late
        if is_too_late is None:
            return body

        # Called when the request is sent, which may be long after it was queued.
        def compose() -> bytes:
            if is_too_late(pod):
                raise NodeFilled(f'node "{node_name}" has been filled by another scheduler')
            return body

        return compose

    async def is_bound(self, pod: Pod, node_name: str) -> bool:
        """Return whether the pod is bound to the node; False if it is not bound at all.

        Raises: `NotFound`, `Conflict` as `bind`; `OutcomeUnknown` if the pod cannot be read.
        """
        return await self._is_bound(pod, node_name, _path(pod), OutcomeUnknown("the pod may be bound"))

    async def read_failure(self, pod: Pod) -> str:
        """Read the reason with which the pod failed; "" if it has not failed, or was recreated.

        Raises: ApiError if the pod cannot be read.
        """
        answer = await self._dispatcher.send(Priority.STATUS, "GET", _path(pod), namespace=pod.metadata.namespace)
        current_pod = _decode_response(pod, answer)
        has_failed = current_pod.metadata.uid == pod.uid and current_pod.status.phase == "Failed"
        return current_pod.status.reason if has_failed else ""

    async def patch_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> bool:
        """Set a condition or the nominated node, if that changes anything; see `status_patch`.

        Returns:
            False if nothing had to be changed.

        Raises:
            NotFound: the pod was deleted.
            Invalid: another pod has its name now.
            ApiError: four tries have failed, or the error is not worth a retry.
        """
        patch = status_patch(pod, self._clock.now(), condition=condition, nominated_node_name=nominated_node_name)
        if patch is None:
            return False
        await self._patch_status(pod, patch)
        return True

    async def send_status(self, item: Pod | PodGroup, compose: Compose, resource: ResourceType[Any] = PODS) -> None:
        """Patch the status of a pod, or of another object, with the result of `compose` at the time of sending.

        Raises: as `patch_status`.
        """
        await self._patch_status(item, compose, resource)

    async def remove_condition(self, pod: Pod, kind: str) -> None:
        """Remove the condition of that type.

        Raises: as `patch_status`.
        """
        await self._patch_status(pod, condition_removal(pod, kind))

    async def delete_pod(self, pod: Pod) -> bool:
        """Delete this very pod, with the grace period in its spec.

        Returns:
            False if it was deleted already, even if another pod has its name now.

        Raises:
            ApiError: four tries have failed, or the error is not worth a retry.
        """
        body = _encode(_DeleteOptions(_Preconditions(pod.uid)))
        try:
            await self._retry("DELETE", pod, PODS, "", body, JSON, _DELETE_RETRIED, check_deleted)
        except (NotFound, Conflict):
            # By uid: a pod of a StatefulSet that was recreated has the same name.
            return False
        return True

    async def evict_pod(self, pod: Pod) -> bool:
        """Evict this very pod, with the grace period in its spec.

        Returns:
            False if it was deleted already, even if another pod has its name now.

        Raises:
            TooManyRequests: a PodDisruptionBudget does not allow it now.
            ApiError: any other error response; one that `may_have_happened` is settled by evicting again.
        """
        return await self._evict(pod, "")

    async def try_eviction(self, pod: Pod) -> bool:
        """Ask whether the pod may be evicted now, without any effect. Returns and raises: as `evict_pod`."""
        return await self._evict(pod, "?dryRun=All")

    async def _evict(self, pod: Pod, query: str) -> bool:
        metadata, path = pod.metadata, f"{_path(pod)}/eviction{query}"
        body = _encode(
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": metadata.name, "namespace": metadata.namespace},
                "deleteOptions": {"preconditions": {"uid": metadata.uid}},
            }
        )
        try:
            # A refusal for a budget is an answer here, not a fault to retry.
            answer = await self._dispatcher.send(
                Priority.STATUS, "POST", path, body, namespace=metadata.namespace, retries_max=0
            )
        except (NotFound, Conflict):
            return False
        check_success(answer)
        return True

    def _patch_status(
        self, item: Pod | PodGroup, patch: bytes | Compose, resource: ResourceType[Any] = PODS
    ) -> Awaitable[None]:
        return self._retry(
            "PATCH", item, resource, "/status", patch, STRATEGIC_MERGE_PATCH, _STATUS_RETRIED, check_object
        )

    async def _retry(
        self,
        method: Method,
        item: Pod | PodGroup,
        resource: ResourceType[Any],
        subresource: str,
        body: bytes | Compose,
        content_type: str,
        retried: tuple[type[ApiError], ...],
        check: Callable[[bytes, str, str, ObjectMeta], None],
    ) -> None:
        """Make an idempotent write, with up to four tries, until the response passes the check."""
        failure: ApiError | None = None
        path = resource.object_path(item) + subresource
        is_sent = True

        def compose() -> bytes | None:
            nonlocal is_sent
            content = body() if callable(body) else body
            is_sent = content is not None
            return content

        for pause_s in _STATUS_PAUSES_S:
            if pause_s:
                await anyio.sleep(_with_jitter(pause_s, item))
            try:
                answer = await self._dispatcher.send(
                    Priority.STATUS,
                    method,
                    path,
                    compose,
                    content_type=content_type,
                    namespace=item.metadata.namespace,
                    urgency=item.spec.priority,
                )
                # Nothing was left to write when its turn came, so there is no response to check.
                if is_sent:
                    check(answer, resource.api_version, resource.kind, item.metadata)
                return
            except retried as error:
                failure = error
        assert failure is not None
        raise failure

    async def patch(
        self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any], subresource: str = ""
    ) -> ObjectT:
        """Apply the change, a JSON merge patch, to the object, if it is unchanged since `item` was read.

        Raises: as `patch_object`.
        """
        return await patch_object(self._dispatcher, resource, item, change, subresource, self._retries_max)

    async def create(self, resource: ResourceType[ObjectT], item: ObjectT, manifest: Mapping[str, Any]) -> ObjectT:
        """Create an object. Raises: as `create_object`."""
        return await create_object(self._dispatcher, resource, item, manifest, self._retries_max)

    async def read(self, resource: ResourceType[ObjectT], item: ObjectT) -> ObjectT:
        """Read the object of that name as it is now. Raises: as `read_object`."""
        return await read_object(self._dispatcher, resource, item)

    async def delete(self, resource: ResourceType[ObjectT], item: ObjectT) -> None:
        """Delete this very object. Raises: as `delete_object`."""
        await delete_object(self._dispatcher, resource, item, self._retries_max)

    async def merge_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Merge these fields into the pod's status. Raises: as `patch_status`."""
        await self._patch_status(pod, _encode({"metadata": {"uid": pod.uid}, "status": status}))

    async def _send_binding(self, pod: Pod, path: str, body: bytes | Compose) -> None:
        binding, namespace = path + "/binding", pod.metadata.namespace
        for pause_s in (*_BIND_PAUSES_S, None):
            try:
                answer = await self._dispatcher.send(
                    Priority.BINDING, "POST", binding, body, namespace=namespace, urgency=pod.spec.priority
                )
                return check_success(answer)
            except Unreachable:
                if pause_s is None:
                    raise
                await anyio.sleep(_with_jitter(pause_s, pod))
        raise AssertionError("the last try returns or raises")

    async def _settle(self, pod: Pod, node_name: str, path: str, body: bytes, doubt: ApiError) -> None:
        """Find out whether a binding with an unknown outcome has happened, and send it again if it has not.

        A delayed request can still arrive after the pod was read unbound, and after the server has refused a later one.
        So neither settles the question before the server has dropped the request.
        """
        monotonic = self._clock.monotonic
        failure, tries_left, pause_s = doubt, _BIND_TRIES - 1, _BIND_PAUSE_S
        tried_until_s = dropped_at_s = monotonic() + _seconds_under_way(doubt)
        while True:
            is_readable = True
            try:
                if await self._is_bound(pod, node_name, path, doubt):
                    return
            except OutcomeUnknown as error:
                failure, is_readable = error, False
            now_s = monotonic()
            may_send = is_readable and (tries_left > 0 or now_s < tried_until_s)
            if not may_send and now_s >= dropped_at_s:
                raise failure
            await anyio.sleep(pause_s)
            pause_s = min(2.0 * pause_s, _BIND_PAUSE_S_MAX)
            if not may_send:
                continue
            tries_left -= 1
            try:
                await self._send_binding(pod, path, body)
                return
            except ApiError as error:
                failure = error
                if error.may_have_happened:
                    doubt = error
                    dropped_at_s = max(dropped_at_s, monotonic() + _seconds_under_way(doubt))
                else:
                    # Also the conflict with that delayed request: a second binding is refused, to the right node too.
                    tries_left = 0

    async def _is_bound(self, pod: Pod, node_name: str, path: str, doubt: ApiError) -> bool:
        """Return whether the pod is bound to the node; False if it is not bound at all.

        Raises: `NotFound`, `Conflict` as `bind`; `OutcomeUnknown` if the pod cannot be read.
        """
        current_pod = await self._read(pod, path, doubt)
        # The pod was deleted, and another one of its name exists: this one was never bound, nor will be.
        if current_pod.metadata.uid != pod.uid:
            raise Conflict(
                f'pod "{pod.key}" was recreated: its uid is {current_pod.metadata.uid}, not {pod.uid}',
                code=409,
                reason="Conflict",
            )
        if current_pod.spec.node_name and current_pod.spec.node_name != node_name:
            raise Conflict(
                f'pod "{pod.key}" is already assigned to node "{current_pod.spec.node_name}"',
                code=409,
                reason="Conflict",
            )
        return bool(current_pod.spec.node_name)

    async def _read(self, pod: Pod, path: str, doubt: ApiError) -> _ResponsePod:
        failure: Exception = doubt
        for pause_s in _READ_PAUSES_S:
            if pause_s:
                await anyio.sleep(pause_s)
            try:
                return _decode_response(
                    pod, await self._dispatcher.send(Priority.BINDING, "GET", path, namespace=pod.metadata.namespace)
                )
            except NotFound:
                raise
            except ApiError as error:
                failure = error
        raise OutcomeUnknown(f"{doubt}; and the pod could not be read again: {failure}") from failure


def _seconds_under_way(doubt: ApiError) -> float:
    """Return for how long a server may still carry out the request after this error."""
    return UNDER_WAY_S if isinstance(doubt, (OutcomeUnknown, ServerTimeout)) else 0.0


def _with_jitter(pause_s: float, item: Pod | PodGroup) -> float:
    """Return the pause, longer by up to a tenth, so that writes that failed together are not sent again together."""
    # By the uid: no other source of chance, which a simulation or a replay would have to repeat.
    return pause_s * (1.0 + _JITTER * Random(item.metadata.uid).random())


def _decode_response(pod: Pod, answer: bytes) -> _ResponsePod:
    """Decode the response: the pod, or another one that has its name now. Raises: `Malformed`."""
    response = read(_decode_pod, answer, lambda: f"pod {pod.key}")
    if (response.metadata.namespace, response.metadata.name) != (pod.metadata.namespace, pod.metadata.name):
        raise Malformed(
            f"asked for pod {pod.key}, answered with {response.metadata.namespace}/{response.metadata.name}"
        )
    return response


def _path(pod: Pod) -> str:
    # Names and namespaces that an API server accepts need no percent-encoding.
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"

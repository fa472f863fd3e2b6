"""The gRPC service with its three methods.

Owns the method names and the status of a failure: UNKNOWN with a text for every failed estimate, like a plain error of
a Go server.

Cost: an estimate runs on the event loop. Sets of many components run in a thread, on a copy of the free capacity.
Accurate estimates run in turns (`in_turns`).
Source: karmada pkg/estimator/service/service.proto and pkg/estimator/server/server.go, v1.18.
Differs: a request with more than `COMPONENTS_MAX` components is refused.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

import grpc
import grpc.aio

from podium.estimator.errors import EstimateError
from podium.estimator.member import MemberCluster
from podium.estimator.requirements import MAX_INT32
from podium.estimator.server.in_turns import InTurns
from podium.estimator.server.members import Members
from podium.estimator.server.messages import (
    MessageError,
    PartError,
    SetsRequest,
    read_replicas_request,
    read_sets_request,
    read_unschedulable_request,
    replicas_response,
    sets_response,
    unschedulable_response,
    workload_named,
)
from podium.estimator.server.metrics import EstimatorMetrics, Question
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.telemetry.slow_trace import LONG_S, Step, log_if_long

log = get_logger("estimator")

SERVICE: Final = "github.com.karmada_io.karmada.pkg.estimator.service.Estimator"
COMPONENTS_MAX: Final = 1000
_SNAPSHOT_DONE: Final = "Snapshotting estimator cache and node infos done"
_COMPONENTS_ON_THE_LOOP: Final = 1
_REMEMBERED_MAX: Final = 1024
_REMEMBERED_BYTES_MAX: Final = 4096

_Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
RequestT = TypeVar("RequestT")


class _Remembered(Generic[RequestT]):
    """A cache of decoded requests, since Karmada sends the same request for every cluster."""

    def __init__(self, read: Callable[[bytes], RequestT]) -> None:
        self._read = read
        self._known: OrderedDict[bytes, RequestT] = OrderedDict()

    def __call__(self, content: bytes) -> RequestT:
        decoded_request = self._known.get(content)
        if decoded_request is not None:
            self._known.move_to_end(content)
            return decoded_request
        request = self._read(content)
        # Large requests are rare and different; remembering them would only take memory.
        if len(content) <= _REMEMBERED_BYTES_MAX:
            self._known[content] = request
            if len(self._known) > _REMEMBERED_MAX:
                self._known.popitem(last=False)
        return request


class EstimatorService:
    """Answers the requests for all member clusters."""

    def __init__(self, members: Members, metrics: EstimatorMetrics, clock: Clock) -> None:
        self._members = members
        self._metrics = metrics
        self._clock = clock
        self._read_replicas = _Remembered(read_replicas_request)
        self._in_turns = InTurns(clock)

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the handler to register with a gRPC server."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "MaxAvailableReplicas": self._method("MaxAvailableReplicas", self._replicas),
                "MaxAvailableComponentSets": self._method("MaxAvailableComponentSets", self._sets),
                "GetUnschedulableReplicas": self._method("GetUnschedulableReplicas", self._unschedulable),
            },
        )

    def _method(
        self, question: Question, answer: Callable[[bytes, _Context, list[Step]], Awaitable[bytes]]
    ) -> grpc.RpcMethodHandler[bytes, bytes]:
        async def handle(content: bytes, context: _Context) -> bytes:
            started_s = self._clock.monotonic()
            code, text, response = grpc.StatusCode.UNKNOWN, "", b""
            steps: list[Step] = []
            try:
                response = await answer(content, context, steps)
            except MessageError as error:
                code, text = grpc.StatusCode.INTERNAL, f"grpc: error unmarshalling request: {error}"
            except (EstimateError, PartError) as error:
                text = str(error)
            ended_s = self._clock.monotonic()
            # By the text, since the code is UNKNOWN until it succeeds.
            self._metrics.answered(question, ended_s - started_s, is_error=bool(text))
            if ended_s - started_s >= LONG_S:
                if not text:
                    steps.append(("Computing estimation done", ended_s))
                log_if_long(log, "Estimating", started_s, steps, ended_s, namespacedName=_object(context))
            if text:
                log.warning("Estimate failed", question=question, object=_object(context), error=text)
                await context.abort(code, text)
            return response

        return grpc.unary_unary_rpc_method_handler(handle)

    async def _replicas(self, content: bytes, context: _Context, steps: list[Step]) -> bytes:
        request = self._read_replicas(content)
        cluster = self._members.find(request.cluster)
        if cluster is None:
            # The least of all estimators' answers counts, so the largest number leaves the cluster to the others.
            return replicas_response(MAX_INT32)
        cluster.snapshot()
        steps.append((_SNAPSHOT_DONE, self._clock.monotonic()))
        if cluster.is_accurate:
            workload = workload_named(_object(context))
            begin = partial(cluster.replicas_in_steps, request.requirements, request.assumed_workloads, workload)
            return replicas_response(await self._in_turns.run(cluster.name, begin))
        return replicas_response(cluster.max_available_replicas(request.requirements, request.assumed_workloads))

    async def _sets(self, content: bytes, context: _Context, steps: list[Step]) -> bytes:
        del context
        request = read_sets_request(content)
        cluster = self._members.find(request.cluster)
        if cluster is None:
            return sets_response(MAX_INT32)
        cluster.snapshot()
        steps.append((_SNAPSHOT_DONE, self._clock.monotonic()))
        return sets_response(await _estimated_sets(cluster, request))

    async def _unschedulable(self, content: bytes, context: _Context, steps: list[Step]) -> bytes:
        del context, steps
        request = read_unschedulable_request(content)
        cluster = self._members.find(request.cluster)
        if cluster is None:
            return unschedulable_response(0)
        return unschedulable_response(
            cluster.unschedulable_replicas(request.workload, request.threshold_s, self._clock.now())
        )


async def _estimated_sets(cluster: MemberCluster, request: SetsRequest) -> int:
    count = len(request.components) + sum(len(workload.components) for workload in request.assumed_workloads)
    # Placing sets takes quadratic time, and any client may ask.
    if count > COMPONENTS_MAX:
        raise EstimateError(f"failed to estimate component sets: {count} components are more than {COMPONENTS_MAX}")
    estimate = cluster.prepare_component_sets(request.components, request.namespace, request.assumed_workloads)
    # Several components can take long, and the event loop also serves watches.
    return estimate() if count <= _COMPONENTS_ON_THE_LOOP else await asyncio.to_thread(estimate)


def _object(context: _Context) -> str:
    """Return the workload that the caller names in the gRPC metadata."""
    metadata: Iterable[tuple[str, str | bytes]] = context.invocation_metadata() or ()
    return next((str(value) for key, value in metadata if key == "object"), "")

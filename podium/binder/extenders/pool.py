"""The configured extenders: answers the questions of attempts, and lets extenders bind pods.

Owns the concurrency of requests, the logging of failures, and the handling of a binding that an extender has not
confirmed. Never decides: attempts do, from the answers.

Source: kubernetes pkg/scheduler/schedule_one.go (prioritizeNodes, extendersBinding), v1.36.2.
Differs: after a binding without a clear response the pod is read again, and counts as bound if it is; at most 32
bindings are under way at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self

import anyio

from podium.client.write_lanes import SLOW_S, SLOW_WAITING_MAX
from podium.config import Extender
from podium.framework.contract.questions import (
    MAX_EXTENDER_PRIORITY,
    Answer,
    AskFilter,
    AskPrioritize,
    ExtenderFailed,
    Question,
    Scored,
    name_of,
)
from podium.framework.contract.status import SKIP, PluginError, Status, error_status
from podium.framework.cycle.extenders import Extenders
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError
from podium.objects.core import Pod

if TYPE_CHECKING:
    from podium.binder.extenders.client import ExtenderClient

log = get_logger("binder")

_BINDINGS_MAX: Final = 32


class PodReader(Protocol):
    """Reads whether a pod is bound; `ApiClient` is one."""

    def is_bound(self, pod: Pod, node_name: str) -> Awaitable[bool]:
        """Return whether the pod is bound to the node; raise if it was deleted or is bound elsewhere."""


class TaskCounter(Protocol):
    """Counts tasks; `Metrics` is one."""

    def add_goroutines(self, operation: str, change: int) -> None:
        """Count a task of that operation that started (1) or ended (-1)."""


class ExtenderPool:
    """Sends requests to extenders. An asynchronous context manager, to be entered on the loop that sends them.

    Raises:
        ConnectionConfigError: the TLS settings of an extender cannot be used.
    """

    def __init__(
        self,
        extenders: Extenders,
        reader: PodReader,
        counter: TaskCounter,
        *,
        may_bind: Callable[[], bool] = lambda: True,
    ) -> None:
        self._waiting_to_bind = 0
        self._was_slow = False
        self._progress_s = 0.0
        self._extenders = extenders
        self._reader = reader
        self._may_bind = may_bind
        self._counter = counter
        self._clients: dict[Extender, ExtenderClient] = {}
        if extenders:
            # Imported here: it loads aiohttp, which many schedulers need for nothing else, and a replay not at all.
            from podium.binder.extenders.client import ExtenderClient

            self._clients = {extender: ExtenderClient(extender) for extender in extenders}
        self._bindings = anyio.Semaphore(_BINDINGS_MAX)
        self._without_good_scores: set[Extender] = set()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Create the connection pools."""
        for client in self._clients.values():
            await self._stack.enter_async_context(client)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        await self._stack.aclose()

    # ------------------------------------------------------------ questions of an attempt

    async def answer(self, question: Question) -> Answer:
        """Ask the extenders, and return their answer to the question."""
        if isinstance(question, AskPrioritize):
            return Scored(await self._prioritize(question))
        client = self._clients[question.extender]
        answer = await (client.filter(question) if isinstance(question, AskFilter) else client.preempt(question))
        if isinstance(answer, ExtenderFailed):
            self._log_failure(answer, question.pod)
        return answer

    async def _prioritize(self, question: AskPrioritize) -> Sequence[Sequence[tuple[str, int]] | ExtenderFailed]:
        """Ask all extenders for scores, in the order of the configuration."""
        answers: dict[int, Sequence[tuple[str, int]] | ExtenderFailed] = {}

        async def ask(position: int, extender: Extender) -> None:
            answers[position] = await self._scores(extender, question)

        # One extender, as is usual, needs no task group.
        if len(question.extenders) == 1:
            return [await self._scores(question.extenders[0], question)]
        async with anyio.create_task_group() as tasks:
            for position, extender in enumerate(question.extenders):
                tasks.start_soon(ask, position, extender, name="prioritizing extender")
        return [answers[position] for position in range(len(answers))]

    async def _scores(self, extender: Extender, question: AskPrioritize) -> Sequence[tuple[str, int]] | ExtenderFailed:
        self._counter.add_goroutines("prioritizing_extender", 1)
        try:
            scores = await self._clients[extender].prioritize(question)
        finally:
            self._counter.add_goroutines("prioritizing_extender", -1)
        self._check_scores(extender, scores, question.pod)
        return scores

    def _check_scores(self, extender: Extender, scores: Sequence[tuple[str, int]] | ExtenderFailed, pod: Pod) -> None:
        """Log it when an extender starts to return no scores, or invalid ones; the scores are used unchanged."""
        if isinstance(scores, ExtenderFailed):
            wrong = f"no score given by this extender: {scores.detail}"
        else:
            odd = next((entry for entry in scores if not 0 <= entry[1] <= MAX_EXTENDER_PRIORITY), None)
            if odd is None:
                self._without_good_scores.discard(extender)
                return
            wrong = (
                f'score {odd[1]} of node "{odd[0]}" is not between 0 and {MAX_EXTENDER_PRIORITY}; it counts as it is'
            )
        if extender not in self._without_good_scores:
            self._without_good_scores.add(extender)
            log.warning("Extender does not return valid scores", extender=name_of(extender), pod=pod.key, error=wrong)

    @staticmethod
    def _log_failure(failure: ExtenderFailed, pod: Pod) -> None:
        text = (
            "Skipping extender as it returned error and has ignorable flag set"
            if failure.extender.ignorable
            else "Extender failed"
        )
        log.warning(text, extender=name_of(failure.extender), pod=pod.key, error=failure.detail)

    # ------------------------------------------------------------ bindings

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        """Let the extender that is responsible for the pod bind it.

        Returns: Skip if there is no such extender, or it failed and is ignorable: a plugin binds the pod then.
        """
        for extender in self._extenders.interested_in(pod):
            if not extender.bind_verb:
                continue
            failure = await self._bind(self._clients[extender], pod, node_name)
            if failure is None:
                return None
            self._log_failure(failure, pod)
            status = await self._after_failure(failure, pod, node_name)
            if status is None or not extender.ignorable:
                return status
        return SKIP

    async def _bind(self, client: ExtenderClient, pod: Pod, node_name: str) -> ExtenderFailed | None:
        loop = asyncio.get_running_loop()
        self._waiting_to_bind += 1
        try:
            await self._bindings.acquire()
        finally:
            self._waiting_to_bind -= 1
        started_s = self._progress_s = loop.time()
        try:
            # The wait for the semaphore may have outlasted the lease.
            if not self._may_bind():
                return ExtenderFailed(client.extender, "not asked to bind: this process is no longer the leader")
            return await client.bind(pod, node_name)
        finally:
            self._progress_s = loop.time()
            self._was_slow = self._progress_s - started_s > SLOW_S
            self._bindings.release()

    def backlog(self) -> int:
        """Count the pods that wait until their binding may be requested.

        If the extenders are slow, only few count: pods that no extender binds must not wait for those.
        """
        waiting = self._waiting_to_bind
        if not waiting:
            return 0
        # With slow extenders only a few pods may wait, or they would hold resources for minutes.
        is_slow = self._was_slow or asyncio.get_running_loop().time() - self._progress_s > SLOW_S
        return max(0, waiting - SLOW_WAITING_MAX) if is_slow else waiting

    async def _after_failure(self, failure: ExtenderFailed, pod: Pod, node_name: str) -> Status | None:
        """Read the pod again: return None if it is bound to the node despite the failure, else the error."""
        message = failure.message
        try:
            if await self._reader.is_bound(pod, node_name):
                log.info("Pod is bound although the extender did not confirm it", pod=pod.key, node=node_name)
                return None
        except ApiError as error:
            message = f"{message}; and the pod: {error.message}"
        return error_status(PluginError(message))

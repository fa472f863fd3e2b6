"""Fault injection: which requests fail, how, and how often.

Kinds of fault, each limited to the next `times` matching requests (None: until cleared):
  error        answer with `code` (429 and 410 included) and, if given, Retry-After
  latency      wait `delay_s` first
  lost         carry the request out, then cut the connection without an answer
  torn         carry the request out, then cut the connection in the middle of the answer
  invalid      answer with `code` and `body`, and do not carry the request out
Two faults act at once: ending open watches, and refusing connections for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import anyio

from podium.sandbox.errors import ApiError, bad_request, expired, too_many_requests
from podium.sandbox.requests import ResourceRequest
from podium.sandbox.resources import resource_named
from podium.sandbox.watches import Watch

Json = dict[str, Any]

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    422: "Invalid",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Target(TypedDict, total=False):
    """The requests that a rule matches, as the fields of `Fault` of these names."""

    verb: str
    resource: str
    subresource: str
    namespace: str


@dataclass(slots=True)
class Fault:
    """One rule. An empty `verb`, `resource`, `subresource` or `namespace` matches any; subresource "-" matches none."""

    kind: str
    verb: str = ""
    resource: str = ""
    subresource: str = ""
    times: int | None = 1
    code: int = 500
    retry_after_s: int | None = None
    delay_s: float = 0.0
    namespace: str = ""
    body: str = ""

    def matches(self, request: ResourceRequest) -> bool:
        """Return whether the rule matches this request and is not used up."""
        return (
            self.times != 0
            and self.verb in ("", request.verb)
            and (not self.resource or resource_named(self.resource).plural == request.resource.plural)
            and self.subresource in ("", request.subresource or "-")
            and self.namespace in ("", request.namespace)
        )

    def error(self) -> ApiError:
        """Return the error that a rule of kind "error" answers with."""
        if self.code == 429:
            return too_many_requests("the server has received too many requests", self.retry_after_s or 1)
        if self.code == 410:
            return expired("too old resource version")
        reason = _REASONS.get(self.code, "InternalError")
        return ApiError(self.code, reason, "an injected fault", retry_after_s=self.retry_after_s)


class Faults:
    """The active rules. Their `times` count down as requests match.

    Args:
        refuse: closes the listener and every connection for a number of seconds.
    """

    def __init__(self, refuse: Callable[[float], None]) -> None:
        self.rules: list[Fault] = []
        self.watches: dict[Watch, None] = {}
        self._refuse = refuse
        self._cleared = asyncio.Event()

    def server_error(self, times: int | None = 1, *, code: int = 500, **target: Unpack[Target]) -> None:
        """Answer the next matching requests with an error code."""
        self._add(Fault("error", times=times, code=code, **target))

    def too_many_requests(self, times: int | None = 1, *, retry_after_s: int = 1, **target: Unpack[Target]) -> None:
        """Answer the next matching requests with 429 and Retry-After."""
        self._add(Fault("error", times=times, code=429, retry_after_s=retry_after_s, **target))

    def invalid_answer(
        self, times: int | None = 1, *, code: int = 200, body: str = "", **target: Unpack[Target]
    ) -> None:
        """Answer the next matching requests with that code and body, and do not carry them out."""
        self._add(Fault("invalid", times=times, code=code, body=body, **target))

    def gone(self, times: int | None = 1, *, verb: str = "watch", resource: str = "") -> None:
        """Answer the next matching requests with HTTP 410."""
        self._add(Fault("error", verb, resource, times=times, code=410))

    def latency(self, delay_s: float, times: int | None = None, **target: Unpack[Target]) -> None:
        """Delay matching requests before they are processed, at most until `clear`."""
        self._add(Fault("latency", times=times, delay_s=delay_s, **target))

    def lose_response(self, times: int | None = 1, **target: Unpack[Target]) -> None:
        """Carry matching requests out, then cut the connection instead of answering."""
        self._add(Fault("lost", times=times, **target))

    def tear_response(self, times: int | None = 1, **target: Unpack[Target]) -> None:
        """Carry matching requests out, then cut the connection halfway through the answer."""
        self._add(Fault("torn", times=times, **target))

    def drop_watches(self, *, resource: str = "", mid_line: bool = False) -> int:
        """Cut the connections of open watches, and return how many there were."""
        return self._end_watches("mid-line" if mid_line else "drop", resource)

    def expire_watches(self, *, resource: str = "") -> int:
        """Send open watches an ERROR event of code 410 and end them. Returns how many there were."""
        return self._end_watches("gone", resource)

    def refuse_connections(self, duration_s: float) -> None:
        """Close every connection and accept none for a while."""
        self._refuse(duration_s)

    def clear(self) -> None:
        """Remove all rules, and let go the requests that are delayed."""
        self.rules.clear()
        self._cleared.set()
        self._cleared = asyncio.Event()

    async def delay(self, request: ResourceRequest) -> None:
        """Wait as long as a rule wants this request to."""
        if rule := self.take("latency", request):
            with anyio.move_on_after(rule.delay_s):
                await self._cleared.wait()

    def take(self, kind: str, request: ResourceRequest) -> Fault | None:
        """Find the first rule of a kind that matches the request, and count down its `times`."""
        for rule in self.rules:
            if rule.kind == kind and rule.matches(request):
                if rule.times is not None:
                    rule.times -= 1
                    if not rule.times:
                        self.rules.remove(rule)
                return rule
        return None

    def inject(self, command: Json) -> Json:
        """Carry out a command of the admin endpoint: `{"fault": <method name>, ...its arguments}`.

        Raises:
            ApiError: 400, the fault is unknown or its arguments are wrong.
        """
        arguments = dict(command)
        name = arguments.pop("fault", None)
        if name not in _COMMANDS:
            raise bad_request(f"fault is one of {', '.join(_COMMANDS)}; not {name!r}")
        try:
            result = getattr(self, name)(**arguments)
        except (TypeError, KeyError) as error:
            raise bad_request(f"{name}: {error}") from None
        return {"fault": name, "affected": result}

    def as_json(self) -> Json:
        """Return the active rules and the number of open watches."""
        rules = [{slot: getattr(rule, slot) for slot in Fault.__slots__} for rule in self.rules]
        return {"rules": rules, "watches": len(self.watches)}

    def _add(self, fault: Fault) -> None:
        if fault.resource:
            resource_named(fault.resource)
        self.rules.append(fault)

    def _end_watches(self, kind: str, resource: str) -> int:
        plural = resource_named(resource).plural if resource else ""
        watches = [watch for watch in self.watches if plural in ("", watch.resource.plural)]
        for watch in watches:
            watch.end(kind)
        return len(watches)


_COMMANDS = (
    "server_error",
    "too_many_requests",
    "invalid_answer",
    "gone",
    "latency",
    "lose_response",
    "tear_response",
    "drop_watches",
    "expire_watches",
    "refuse_connections",
    "clear",
)

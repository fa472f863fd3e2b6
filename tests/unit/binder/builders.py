from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any


class Request:
    def __init__(self, method: str, path: str, body: bytes | None) -> None:
        self.at_s = asyncio.get_running_loop().time()
        self.method = method
        self.path = path
        self.body: Any = None if body is None else json.loads(body)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def regular_answer(request: Request) -> Any:
    """Return the answer of an API server that accepts the write."""
    *_, plural, name = request.path.split("/")
    namespace = request.path.partition("/namespaces/")[2].partition("/")[0]
    if name == "binding":
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    if "events" in (plural, name):
        name_sent = name if request.method == "PATCH" else request.body["metadata"]["name"]
        metadata = {"name": name_sent, "namespace": namespace}
        return {"kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": metadata}
    uid = (request.body or {}).get("metadata", {}).get("uid") or (request.body or {}).get("preconditions", {})["uid"]
    metadata = {"name": plural if name == "status" else name, "namespace": namespace, "uid": uid}
    if "/podgroups/" in request.path:
        return {"kind": "PodGroup", "apiVersion": "scheduling.k8s.io/v1beta1", "metadata": metadata}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}


class Wire:
    """The far end of a dispatcher: gives each request to a function that answers, or raises what the network would.

    An answer of `{}` stands for the regular one; bytes are sent as they are.
    """

    def __init__(self, answer: Callable[[Request], Any] = lambda request: {}) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.latency_s = 0.0
        self.latency_of: Callable[[Request], float] = lambda request: self.latency_s

    async def request(self, method: str, path: str, body: bytes | None = None, **options: Any) -> bytes:
        request = Request(method, path, body)
        self.requests.append(request)
        if latency_s := self.latency_of(request):
            await asyncio.sleep(latency_s)
        answer = self.answer(request)
        if isinstance(answer, bytes):
            return answer
        return json.dumps(regular_answer(request) if answer == {} and method != "GET" else answer).encode()

    @property
    def calls(self) -> list[str]:
        return [str(request) for request in self.requests]

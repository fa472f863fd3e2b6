"""/debug/pods/{namespace}/{name}/fix: which edits would make a pod fit, asked of `podium why --fix` in another process.

Never holds up scheduling: the process lists the cluster again and runs at a lower priority, one question at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final

import anyio
import orjson
from aiohttp import web

from podium.objects.core import Pod
from podium.server.serving.server import Pages

NODES_MAX: Final = 1000
"""Of a larger cluster, the copy in the other process might take the memory that this one needs."""
_TIME_LIMIT_S: Final = 90.0
"""The command has a time limit of its own, which is shorter."""
_PROBLEM_MAX: Final = 500


class FixPage:
    """Answers the requests for the page.

    Args:
        command: prints the answer as JSON, given the namespace and name of the pod.
        pod: finds a pod by namespace and name.
        node_count: the number of nodes now.
    """

    def __init__(self, command: Sequence[str], pod: Callable[[str], Pod | None], node_count: Callable[[], int]) -> None:
        self._command = command
        self._pod = pod
        self._node_count = node_count
        self._asking = anyio.Lock()

    @property
    def pages(self) -> Pages:
        """The handler by path."""
        return {"/debug/pods/{namespace}/{name}/fix": self.fix}

    async def fix(self, request: web.Request) -> web.Response:
        """Return the smallest sets of edits after which a pending pod fits, with `--ui`.

        The answer is that of `podium why --fix`, which another process looks for in the cluster as it is now. 503 in
        clusters of more than 1,000 nodes.
        """
        key = f"{request.match_info['namespace']}/{request.match_info['name']}"
        if self._pod(key) is None:
            return _problem(f"there is no pod {key}", HTTPStatus.NOT_FOUND)
        if self._node_count() > NODES_MAX:
            text = f"with more than {NODES_MAX:,} nodes podium does not look for it beside scheduling"
            return _problem(text, HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            async with self._asking:
                with anyio.fail_after(_TIME_LIMIT_S):
                    # A request that is given up ends the process.
                    result = await anyio.run_process([*self._command, key], check=False)
        except TimeoutError:
            return _problem("podium why --fix did not end in time", HTTPStatus.GATEWAY_TIMEOUT)
        try:
            answer = orjson.loads(result.stdout)
            content = {
                "fits": answer["fits"],
                "fixes": [_fix_texts(fix) for fix in answer["fixes"]],
                "gang": answer.get("gang_of_fixes", ""),
                "problem": answer.get("problem", ""),
                "partial": answer.get("partial", False),
            }
        except (ValueError, KeyError, TypeError):
            lines = result.stderr.decode(errors="replace").strip().splitlines()
            return _problem(
                lines[-1].removeprefix("Error: ")[:_PROBLEM_MAX] if lines else "podium why --fix has no answer"
            )
        return web.json_response(content, dumps=_dumps)


def _fix_texts(fix: dict[str, Any]) -> dict[str, Any]:
    # The members of a gang need the same edits.
    return {"edits": list(dict.fromkeys(edit["text"] for edit in fix["edits"])), "node": fix["node"]}


def _problem(text: str, status: HTTPStatus = HTTPStatus.BAD_GATEWAY) -> web.Response:
    return web.json_response({"error": text}, status=status, dumps=_dumps)


def _dumps(value: Any) -> str:
    return orjson.dumps(value).decode()

"""The pages /debug/pprof/profile and /debug/pprof/heap: where the time goes, and the memory, of a running podium.

Source: kube-scheduler's paths of the same names (net/http/pprof), with `enableProfiling`.
Differs: the answer is a file for https://www.speedscope.app instead of a protobuf. A profile takes one minute at most,
and there is one at a time. `heap` shows what was allocated while it was measured.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Final

import anyio.to_thread
import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from podium.server.profiling import Document, cpu_profile, memory_profile
from podium.server.serving.server import Pages

_SECONDS_MAX: Final = 60.0

_CPU: Final = "what the event loop spends its CPU time on"
_HEAP: Final = "what allocates memory that is not freed meanwhile; slows podium down while it lasts"
_INDEX: Final = f"""\
/debug/pprof/profile?seconds=30   {_CPU}
/debug/pprof/heap?seconds=10      {_HEAP}

Each takes at most 60 seconds, and answers with a file for https://www.speedscope.app.
"""


class ProfilePages:
    """Answers with profiles of the thread that it was made in, one at a time."""

    def __init__(self) -> None:
        self._thread_id = threading.get_ident()
        self._is_busy = False

    @property
    def pages(self) -> Pages:
        """The handlers by path."""
        return {
            "/debug/pprof/": _show_index,
            "/debug/pprof/profile": self._page("cpu", 30.0, self._cpu, _CPU),
            "/debug/pprof/heap": self._page("heap", 10.0, memory_profile, _HEAP),
        }

    def _cpu(self, seconds: float, stop: threading.Event) -> Document:
        return cpu_profile(self._thread_id, seconds, stop)

    def _page(
        self, name: str, default_s: float, measure: Callable[[float, threading.Event], Document], shows: str
    ) -> Handler:
        headers = {"Content-Disposition": f'attachment; filename="podium-{name}.speedscope.json"'}

        async def show(request: web.Request) -> web.Response:
            seconds = _seconds(request, default_s)
            if self._is_busy:
                raise web.HTTPConflict(text="a profile is being made already, try again later\n")
            self._is_busy = True
            stop = threading.Event()

            def make() -> bytes:
                try:
                    return orjson.dumps(measure(seconds, stop))
                finally:
                    # Here, not where it is awaited: a request that is given up does not end the thread at once.
                    self._is_busy = False

            try:
                body = await anyio.to_thread.run_sync(make, abandon_on_cancel=True)
            finally:
                stop.set()
            return web.Response(body=body, content_type="application/json", headers=headers)

        show.__doc__ = (
            f"A profile for speedscope: {shows}. "
            f"`?seconds=` ({default_s:g} by default, at most {_SECONDS_MAX:g}); 409 while another one is made."
        )
        return show


async def _show_index(_: web.Request) -> web.Response:
    """Return the profiles that there are. None of these paths exists with `enableProfiling: false`."""
    return web.Response(text=_INDEX)


def _seconds(request: web.Request, default_s: float) -> float:
    text = request.query.get("seconds", "")
    try:
        seconds = float(text) if text else default_s
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _SECONDS_MAX:
        raise web.HTTPBadRequest(text=f"seconds: a number up to {_SECONDS_MAX:g}, not {text!r}\n")
    return seconds

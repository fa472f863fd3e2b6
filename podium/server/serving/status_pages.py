"""Serves /statusz, /flagz and the index: the version that runs, its flags, and the paths that are served.

/statusz and /flagz are text for people, or a JSON object if the request asks for a version of it, as in
`Accept: application/json;v=v1beta1;g=config.k8s.io;as=Statusz`.

Source: apiserver/pkg/server/statusz, apiserver/pkg/server/flagz (1.36.2).
Differs: Python's version instead of Go's; JSON only; values always follow a colon. The index is kube-apiserver's.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

import podium
from podium.lib.printable import printable

_COMPONENT: Final = "podium"
_GROUP: Final = "config.k8s.io"
_VERSION: Final = "v1beta1"
_DEPRECATED: Final = "v1alpha1"
_WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)


def status_pages(paths: Sequence[str], flags: Mapping[str, str], minor: str) -> dict[str, Handler]:
    """Return the handlers by path.

    Args:
        paths: all other paths that the server serves.
        flags: the value of each flag of the command line.
        minor: the minor of Kubernetes whose rules decide.
    """
    start_time = datetime.now(UTC)
    start_monotonic_s = time.monotonic()
    links = sorted({*paths, "/statusz", "/flagz"})

    async def show_index(_: web.Request) -> web.Response:
        """Return all paths, as JSON."""
        return web.Response(body=orjson.dumps({"paths": links}), content_type="application/json")

    async def show_status(request: web.Request) -> web.Response:
        """Show what runs since when; an object for `Accept: application/json;v=v1beta1;g=config.k8s.io;as=Statusz`."""
        uptime_s = int(time.monotonic() - start_monotonic_s)
        status = {
            "startTime": f"{start_time:%Y-%m-%dT%H:%M:%SZ}",
            "uptimeSeconds": uptime_s,
            "binaryVersion": podium.__version__,
            "emulationVersion": minor,
            "paths": links,
        }
        lines = {
            "Started": f"{start_time:%a %b %e %H:%M:%S UTC %Y}",
            "Up": f"{uptime_s // 3600} hr {uptime_s // 60 % 60:02} min {uptime_s % 60:02} sec",
            "Python version": platform.python_version(),
            "Binary version": podium.__version__,
            "Emulation version": minor,
            "Paths": " ".join(links),
        }
        return _answer(request, "Statusz", status, lines)

    async def show_flags(request: web.Request) -> web.Response:
        """Return the flags' values; an object for `Accept: application/json;v=v1beta1;g=config.k8s.io;as=Flagz`."""
        return _answer(request, "Flagz", {"flags": dict(sorted(flags.items()))}, dict(sorted(flags.items())))

    return {"/": show_index, "/statusz": show_status, "/flagz": show_flags}


def _answer(request: web.Request, kind: str, fields: Mapping[str, Any], lines: Mapping[str, str]) -> web.Response:
    version = _requested_version(request.headers.get("Accept", ""), kind)
    if version is None:
        header = f"\n{_COMPONENT} {kind.lower()}\n{_WARNING}\n\n"
        body = "".join(printable(f"{name}: {value}") + "\n" for name, value in lines.items())
        return web.Response(text=header + body)
    content = {"kind": kind, "apiVersion": f"{_GROUP}/{version}", "metadata": {"name": _COMPONENT}, **fields}
    headers = {}
    if version == _DEPRECATED:
        text = f"This version of the {kind.lower()} endpoint is deprecated. Please use a newer version."
        headers["Warning"] = f'299 - "{text}"'
    return web.Response(body=orjson.dumps(content), content_type="application/json", headers=headers)


def _requested_version(accept: str, kind: str) -> str | None:
    """Return the version of the object that the first acceptable clause asks for, or None if it accepts text.

    Raises: HTTPNotAcceptable if no clause is acceptable.
    """
    if not accept.strip():
        return None
    for clause in accept.split(","):
        media, *clause_fields = (part.strip() for part in clause.split(";"))
        parameters = dict(part.split("=", 1) for part in clause_fields if "=" in part)
        # Only clauses with `as` ask for the object: these pages do not serve plain JSON.
        if "as" not in parameters:
            if media in ("text/plain", "text/*", "*/*"):
                return None
        elif (
            media in ("application/json", "application/*", "*/*")
            and (parameters["as"], parameters.get("g")) == (kind, _GROUP)
            and parameters.get("v") in (_VERSION, _DEPRECATED)
        ):
            return parameters["v"]
    media_type = f"application/json;v={_VERSION};g={_GROUP};as={kind}"
    raise web.HTTPNotAcceptable(text=f"only the following media types are accepted: text/plain, {media_type}\n")

"""The playground in a browser: served from this machine, with every request to elsewhere refused and noted."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Page, Route, expect

_START_MS: Final = 300_000
"""Python starts in seconds, but not on a busy machine."""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: a test's output is about the test."""


@contextmanager
def serve(site: Path) -> Iterator[str]:
    """The URL of a folder's files, as any web server gives them."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Visit:
    """A page with the playground.

    Attributes:
        page: it.
        foreign: the requests that would have left for another server.
    """

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.foreign: list[str] = []
        self._url = url

    async def open(self) -> None:
        """Load the page, and start podium in it."""
        await self.page.context.route("**/*", self._judge)
        await self.page.goto(self._url)
        await self.says("Ready.")

    async def says(self, text: str) -> None:
        """Wait for the page's status."""
        status = self.page.get_by_role("status")
        await expect(status).to_have_text(re.compile(rf"{re.escape(text)}|.*(cannot|failed).*"), timeout=_START_MS)
        assert await status.text_content() == text, await self.page.text_content("#faults")

    async def shows(self, text: str) -> None:
        """Wait until the answer has this text."""
        await expect(self.page.get_by_role("tabpanel")).to_contain_text(text, timeout=_START_MS)

    async def answers(self, files: dict[str, str], config: str, pod: str) -> dict[str, Any]:
        """What the page's podium answers to each question about a pod; or what it says of a cluster it cannot read."""
        page_answers: dict[str, Any] = await self.page.evaluate(_ASK, [list(files.items()), config, pod])
        return page_answers

    async def _judge(self, route: Route) -> None:
        if route.request.url.startswith(self._url):
            await route.continue_()
        else:
            self.foreign.append(route.request.url)
            await route.abort()


_ASK: Final = """async ([files, config, pod]) => {
  const { podium } = await import(new URL("page.js", location));
  const encoder = new TextEncoder();
  const cluster = await podium.load(files.map(([name, text]) => [name, encoder.encode(text)]), config);
  if (cluster.error !== undefined) return { load: cluster };
  const number = cluster.pods.findIndex(each => each.kind === "Pod" && each.name === pod);
  const answers = {};
  for (const question of ["placement", "why", "capacity"]) answers[question] = await podium.ask(question, number);
  return answers;
}"""

"""The links of a built site: where they lead, and which lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

_FETCHED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(NamedTuple):
    """What one page links to and can be linked at, and what a browser fetches for it unasked."""

    links: list[str]
    anchors: set[str]
    fetched: list[str]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page([], set(), [])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        if "id" in values:
            self.page.anchors.add(values["id"])
        if tag == "a" and "href" in values:
            self.page.links.append(values["href"])
        # A canonical address and the like are not fetched.
        if (name := _FETCHED.get(tag)) in values and values.get("rel", "stylesheet") in (
            "stylesheet",
            "icon",
            "preload",
        ):
            self.page.fetched.append(values[str(name)])


def pages(site: Path) -> dict[Path, Page]:
    """Every page of a site, by its file."""
    return {path: _read(path) for path in sorted(site.rglob("*.html"))}


def _read(path: Path) -> Page:
    reader = _Reader()
    reader.feed(path.read_text())
    return reader.page


def dead(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """The links within the site to a file or an anchor that does not exist, and malformed links to other sites."""
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # served for any address, its own links begin at the server's root
        for link in (*page.links, *page.fetched):
            if fault := _fault(path, link, pages):
                yield f"{path.relative_to(site)}: {link}: {fault}"


def _fault(path: Path, link: str, pages: dict[Path, Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        is_well_formed = parts.scheme == "https" and "." in parts.netloc and " " not in link
        return "" if is_well_formed else "not an https address"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return "no such anchor"
    return ""

"""The documentation in a real browser: what is wider than a phone scrolls in itself, and copy buttons copy commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.docs_site import links
from tests.playground.visit import serve

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.anyio

PHONE: Final = {"width": 390, "height": 844}
WIDE: Final = ("index.html", "docs/quickstart.html", "docs/operations.html", "docs/performance.html")
"""Pages with the widest outputs and tables."""
_BLOCKS: Final = "article pre > code, .md-typeset__scrollwrap"
_KEEP_COPIED_TEXT: Final = """() => document.addEventListener("copy", () => {
  const field = document.activeElement
  window.copied = "selectionStart" in field ? field.value : document.getSelection().toString()
}, true)"""


@pytest.fixture(scope="module")
def url(built_site: Path) -> Iterator[str]:
    with serve(built_site) as address:
        yield address.rstrip("/")


async def open_page(page: Page, url: str, name: str) -> None:
    await page.set_viewport_size(PHONE)
    await page.goto(f"{url}/{name}")
    await page.wait_for_selector("article h1")


async def copied_by_button(page: Page, first_command: str) -> list[str]:
    """Click the button of the block that begins with this command; return the lines that it copies."""
    await page.evaluate(_KEEP_COPIED_TEXT)
    block = page.locator("div.highlight", has_text=first_command).first
    assert (await block.inner_text()).startswith("$ ")
    await block.locator("[data-clipboard-target]").click()
    await page.wait_for_function("() => window.copied !== undefined")
    lines: list[str] = (await page.evaluate("window.copied")).strip().splitlines()
    return lines


async def test_no_page_is_wider_than_a_phone(built_site: Path, url: str, page: Page) -> None:
    names = [str(page_file.relative_to(built_site)) for page_file in links.pages(built_site)]
    assert len(names) > 40
    too_wide = {}
    await page.set_viewport_size(PHONE)
    for name in names:
        await page.goto(f"{url}/{name}")
        width = await page.evaluate("document.documentElement.scrollWidth")
        if width > PHONE["width"]:
            too_wide[name] = width
    assert too_wide == {}


@pytest.mark.parametrize("name", WIDE)
async def test_wide_outputs_and_tables_scroll_in_themselves(url: str, page: Page, name: str) -> None:
    await open_page(page, url, name)
    overflowing = await page.evaluate(
        """selector => [...document.querySelectorAll(selector)].filter(block => block.scrollWidth > block.clientWidth)
             .map(block => {
               block.scrollLeft = 5
               return [getComputedStyle(block).overflowX, block.scrollLeft > 0, document.scrollingElement.scrollLeft]
             })""",
        _BLOCKS,
    )
    assert overflowing
    assert all(block == ["auto", True, 0] for block in overflowing), overflowing


async def test_a_copy_button_copies_every_command_without_its_prompt(url: str, page: Page) -> None:
    await open_page(page, url, "docs/quickstart.html")
    lines = await copied_by_button(page, "kind create cluster")
    assert [line.split()[0] for line in lines] == ["kind", "docker", "kind"]


async def test_a_copy_button_leaves_out_what_a_command_prints(url: str, page: Page) -> None:
    await open_page(page, url, "index.html")
    lines = await copied_by_button(page, "podium outlook report")
    assert [line.split()[:2] for line in lines] == [["podium", "outlook"]]

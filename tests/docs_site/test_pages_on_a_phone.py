"""The documentation in a real browser: what is wider than a phone scrolls in itself, and copy buttons copy commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.control_plane.requirement import built_or_skipped
from tests.docs_site import links, site

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.anyio

PHONE: Final = {"width": 390, "height": 844}
WIDE: Final = ("README.html", "docs/quickstart.html", "docs/operations.html", "docs/performance.html")
"""Pages with the widest outputs and tables, which are looked at closely."""
_COPIED: Final = "() => { navigator.clipboard.writeText = async text => { window.copied = text } }"


@pytest.fixture(scope="module")
def built_site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built_or_skipped(request.config, "site of the documentation", lambda _: site.build_apart(folder / "docs"))
    return folder / "docs"


async def open_page(page: Page, file: Path) -> None:
    await page.set_viewport_size(PHONE)
    await page.goto(file.as_uri())
    await page.wait_for_selector("article h1")


async def test_no_page_is_wider_than_a_phone(built_site: Path, page: Page) -> None:
    names = [name for name in links.pages(built_site) if name.endswith(".html")]
    assert len(names) > 40
    too_wide = {}
    for name in names:
        await page.set_viewport_size(PHONE)
        await page.goto((built_site / name).as_uri())
        width = await page.evaluate("document.documentElement.scrollWidth")
        if width > PHONE["width"]:
            too_wide[name] = width
    assert too_wide == {}


@pytest.mark.parametrize("name", WIDE)
async def test_wide_outputs_and_tables_scroll_inside_themselves(built_site: Path, page: Page, name: str) -> None:
    await open_page(page, built_site / name)
    wide = "article pre > code, .md-typeset__scrollwrap"
    overflowing = await page.evaluate(
        """selector => [...document.querySelectorAll(selector)].filter(block => block.scrollWidth > block.clientWidth)
             .map(block => getComputedStyle(block).overflowX)""",
        wide,
    )
    assert overflowing
    assert set(overflowing) == {"auto"}
    moved = await page.evaluate(
        """selector => {
             const block = [...document.querySelectorAll(selector)].find(each => each.scrollWidth > each.clientWidth)
             block.scrollLeft = 50
             return [block.scrollLeft, document.scrollingElement.scrollLeft]
           }""",
        wide,
    )
    assert moved == [50, 0]


async def test_a_copy_button_copies_the_commands_alone(built_site: Path, page: Page) -> None:
    await open_page(page, built_site / "docs/quickstart.html")
    await page.evaluate(_COPIED)
    block = page.locator("div.highlight").first
    assert (await block.inner_text()).startswith("$ kind create cluster")
    await block.locator("[data-clipboard-target]").click()
    await page.wait_for_function("() => window.copied !== undefined")
    copied = (await page.evaluate("window.copied")).splitlines()
    assert copied[0] == "kind create cluster --name podium"
    assert not [line for line in copied if line.startswith("$")]


async def test_a_copy_button_leaves_out_what_a_command_prints(built_site: Path, page: Page) -> None:
    await open_page(page, built_site / "README.html")
    await page.evaluate(_COPIED)
    block = page.locator("div.highlight", has_text="podium outlook report").first
    assert "3 Insufficient" in await block.inner_text() or "node(s) had" in await block.inner_text()
    await block.locator("[data-clipboard-target]").click()
    await page.wait_for_function("() => window.copied !== undefined")
    copied = (await page.evaluate("window.copied")).strip()
    assert copied.startswith("podium outlook report -n shop -f examples/clusters/shop.yaml")
    assert "\n" not in copied

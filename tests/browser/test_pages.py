"""What every test of a page relies on: the pinned browser, one page at a time, and axe-core."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page

from tests.browser.axe import serious_faults

pytestmark = pytest.mark.anyio


async def test_scripts_run_and_the_page_is_as_large_as_a_small_screen(page: Page) -> None:
    await page.set_content("<p id=p></p><script>p.textContent = innerWidth + ' x ' + innerHeight</script>")
    assert await page.text_content("p") == "1280 x 800"


async def test_axe_names_what_is_wrong(page: Page, axe: Path) -> None:
    await page.set_content("<html lang=en><title>t</title><main><h1>Nodes</h1><img src='data:,'><p>text")
    assert [fault.split(":")[0] for fault in await serious_faults(page, axe)] == ["image-alt"]

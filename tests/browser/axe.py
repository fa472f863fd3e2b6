"""axe-core, which finds faults of accessibility in a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from playwright.async_api import Page

from tests.browser.npm import Package

PACKAGE: Final = Package(
    "axe-core",
    "4.14.1",
    "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
)
_SERIOUS: Final = ("serious", "critical")


async def serious_faults(page: Page, axe: Path) -> list[str]:
    """What axe finds that is serious or critical: rule, what is wrong, and the elements.

    Args:
        axe: the folder of the package.
    """
    # Evaluated and not added as an element: the page's Content-Security-Policy forbids that, as it should.
    await page.evaluate((axe / "axe.min.js").read_text() + ";undefined")
    violations: list[dict[str, Any]] = await page.evaluate("async () => (await axe.run(document)).violations")
    return [
        f"{violation['id']}: {violation['help']}: {[node['html'] for node in violation['nodes']]}"
        for violation in violations
        if violation["impact"] in _SERIOUS
    ]

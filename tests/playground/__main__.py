"""`python -m tests.playground --count 200`: compares the page's answers about recorded scenarios with the commands'."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import click
from playwright.async_api import async_playwright

from tests.browser import chromium
from tests.control_plane.builder import BuildError
from tests.control_plane.progress import Progress
from tests.playground.assets import obtain
from tests.playground.comparison import scenarios
from tests.playground.site import build
from tests.playground.visit import Visit, serve


@click.command()
@click.option("--count", default=200, show_default=True, help="How many scenarios.")
def main(count: int) -> None:
    """Compare. Fails if an answer differs, or if a request leaves for another server."""
    progress = Progress(interval_s=3.0)
    with tempfile.TemporaryDirectory() as folder:
        try:
            browser = chromium.obtain(progress)
            build(Path(folder), obtain(progress))
        except BuildError as problem:
            sys.exit(f"not available: {problem}")
        different, foreign = asyncio.run(_compare(browser, Path(folder), count))
    for difference in different:
        click.echo(difference)
    for url in foreign:
        click.echo(f"a request left: {url}")
    equal = count - len({difference.partition(":")[0] for difference in different})
    click.echo(f"{equal} of {count} scenarios are answered as by the commands; {len(foreign)} requests left the page")
    sys.exit(bool(different or foreign))


async def _compare(browser: chromium.Chromium, site: Path, count: int) -> tuple[list[str], list[str]]:
    different: list[str] = []
    told_s = time.monotonic()
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(
            executable_path=browser.program, env={**os.environ, **browser.environ}
        )
        with serve(site) as url:
            visit = Visit(await running.new_page(), url)
            await visit.open()
            # From here on the page has no network at all.
            await visit.page.context.set_offline(True)
            for number, scenario in enumerate(scenarios(count), start=1):
                different += await scenario.differences(visit)
                if time.monotonic() - told_s >= 5.0:
                    told_s = time.monotonic()
                    click.echo(f"{number} of {count} compared, {len(different)} answers differ", err=True)
        await running.close()
    return different, visit.foreign


if __name__ == "__main__":
    main()

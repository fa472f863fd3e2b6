"""The pages of `--html` in a real browser, opened as files."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest

from podium.cli.exit_codes import EXIT_NO
from podium.cli.pages.document import document
from podium.cli.pages.sections import Bars, Facts, Heat, Lines, Page, Plot, Table
from podium.cli.pages.shadow import page_of as shadow_page
from tests.browser.axe import serious_faults
from tests.manifests import node, pod
from tests.planted.lives import creating, deleting, record
from tests.simulation.random_objects import ZONE
from tests.unit.cli.commands import run
from tests.unit.cli.pages.test_over_time import TIMELINE
from tests.unit.cli.pages.test_shadow import shadow_report

if TYPE_CHECKING:
    from playwright.async_api import Page as Opened

pytestmark = pytest.mark.anyio

HOSTILE: Final = "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
SCHEMES: Final[Sequence[Any]] = ("light", "dark")
SIZES: Final[Sequence[Any]] = ({"width": 1280, "height": 800}, {"width": 390, "height": 844})
SCREENSHOT_BYTES_MAX: Final = 200_000
OTHER: Final = {
    "plugins": {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": 9}]}},
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}},
        }
    ],
}


def configuration(file: Path, **profile: Any) -> Path:
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    fields = {"leaderElection": {"leaderElect": False}, "profiles": [{"schedulerName": "podium", **profile}]}
    file.write_text(json.dumps({**kind, **fields}))
    return file


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory, no_log: None) -> Path:
    """A recording of some minutes, beside `other.yaml`, a configuration that decides otherwise."""
    folder, random = tmp_path_factory.mktemp("pages"), Random(1)
    configuration(folder / "other.yaml", **OTHER)
    nodes = [
        node(f"node-{at}", random.choice(("4", "8", "16")), labels={ZONE: f"zone-{'abc'[at % 3]}"}) for at in range(24)
    ]
    pods = [pod(f"web-{at}", random.choice(("1", "2", "3")), memory=random.choice(("1Gi", "8Gi"))) for at in range(200)]
    steps = [creating(*pods[at : at + 4]) for at in range(0, 200, 4)]
    steps = [step for pair in zip(steps, map(deleting, pods), strict=False) for step in pair]
    steps += map(deleting, pods[50:120])
    record(folder / "monday", configuration(folder / "base.yaml"), (), nodes, steps)
    return folder


@pytest.fixture(scope="module")
def replay_page(day: Path) -> Path:
    result = run("replay", day / "monday", "--config", day / "other.yaml", "--html", day / "replay.html", "--expect")
    assert result.exit_code == EXIT_NO, result.output
    return day / "replay.html"


@pytest.fixture(scope="module")
def went_on(day: Path) -> Path:
    """The page of that replay beyond the first difference."""
    file = day / "counterfactual.html"
    result = run("replay", day / "monday", "--config", day / "other.yaml", "--counterfactual", "--html", file)
    assert result.exit_code == 0, result.output
    return file


async def open_page(page: Opened, file: Path) -> list[str]:
    """Open the file; returns what it asks for."""
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    await page.goto(file.as_uri())
    await page.wait_for_selector("main h2")
    return requests


async def assert_accessible(page: Opened, axe: Path) -> None:
    """In light and dark, on a screen and on a phone; nothing is wider than either."""
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for size in SIZES:
            await page.set_viewport_size(size)
            assert await serious_faults(page, axe) == [], (scheme, size)
            assert await page.evaluate("document.documentElement.scrollWidth") <= size["width"], (scheme, size)


async def test_slider_moves_nodes_and_lines_through_the_day(replay_page: Path, page: Opened) -> None:
    assert await open_page(page, replay_page) == [replay_page.as_uri()]
    nodes = page.locator(".heat button")
    assert await nodes.count() == 24
    late = await nodes.all_inner_texts()
    await page.locator("input[type=range]").focus()
    await page.keyboard.press("Home")
    assert (await page.inner_text("output")).startswith("0 s, 2023-11-14 22:")
    early = await nodes.all_inner_texts()
    assert early != late
    assert await page.locator(".heat .absent, .heat .h0").count() == 24
    for name in ("zone-a", "zone-b", "zone-c"):
        assert f"{name}: 0" in (await page.locator(".legend").all_inner_texts())[-1]
    await page.keyboard.press("End")
    assert await nodes.all_inner_texts() == late
    assert await page.locator("svg path").count() == 6


async def test_a_click_describes_a_node_and_the_keyboard_finds_it(replay_page: Path, page: Opened) -> None:
    await open_page(page, replay_page)
    await page.click(".heat >> text=node-12")
    assert "node-12 in zone-a: CPU" in await page.inner_text("#node")
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    assert "node-15 in zone-a: CPU" in await page.inner_text("#node")


async def test_first_difference_is_shown_with_both_tables_of_scores(replay_page: Path, page: Opened) -> None:
    await open_page(page, replay_page)
    assert "The first difference is at attempt 1" in await page.inner_text("#headline")
    for title in ("Scores, recorded", "Scores, replayed"):
        table = page.locator(f"section:has(h2:text-is('{title}')) table")
        assert "NodeResourcesFit" in await table.inner_text()
        assert await table.locator("tr.marked").count() == 1
        await table.locator("thead button").first.click()
        assert (await table.locator("tbody th").first.inner_text()) == "node-0"


async def test_axe_finds_nothing_serious_in_light_and_dark(replay_page: Path, page: Opened, axe: Path) -> None:
    await open_page(page, replay_page)
    await assert_accessible(page, axe)


async def test_counterfactual_replay_shows_the_other_day(went_on: Path, page: Opened) -> None:
    assert await open_page(page, went_on) == [went_on.as_uri()]
    assert "would have been placed" in await page.inner_text("#headline")
    assert await page.locator(".heat button").count() == 24
    assert await page.locator(".heat .h0").count() < 24


async def test_points_of_a_sweep_tell_what_they_are(day: Path, page: Opened, axe: Path) -> None:
    file = day / "sweep.html"
    result = run("sweep", day / "monday", "--grid", "NodeResourcesFit=1,40", "--workers", "1", "--html", file)
    assert result.exit_code == 0, result.output
    assert await open_page(page, file) == [file.as_uri()]
    assert await page.locator("tbody tr").count() == await page.locator("circle").count() == 2
    await page.locator("circle").last.click()
    assert "NodeResourcesFit=" in await page.inner_text("[role=status]")
    await page.locator("select").first.select_option("placed")
    assert await page.locator("circle").count() == 2
    await assert_accessible(page, axe)


async def test_zones_are_shown_before_and_after_a_drain(tmp_path: Path, page: Opened, axe: Path) -> None:
    file, cluster = tmp_path / "what-if.html", Path(__file__).parents[2] / "examples/clusters/shop.yaml"
    assert run("what-if", "-f", cluster, "--drain", "node-a", "--html", file).exit_code == 0
    assert await open_page(page, file) == [file.as_uri()]
    assert "z2\nbefore 1\nafter 2" in await page.inner_text("main")
    assert "shop/web-1\tnode-a\tnode-b" in await page.inner_text("main")
    await assert_accessible(page, axe)


async def test_disagreements_of_a_shadow_are_listed_and_can_be_sorted(tmp_path: Path, page: Opened, axe: Path) -> None:
    file = tmp_path / "shadow.html"
    file.write_bytes(document(shadow_page("Shadow of default-scheduler", shadow_report(12), TIMELINE), "1"))
    assert await open_page(page, file) == [file.as_uri()]
    table = page.locator("section:has(h2:text-is('Disagreements')) table")
    assert await table.locator("tbody tr").count() == 13
    assert await table.locator("tbody th").first.inner_text() == "default/odd"
    await table.locator("thead button >> text=Gap").click()
    assert await table.locator("tbody th").last.inner_text() == "default/odd"
    await assert_accessible(page, axe)


async def test_whatever_a_cluster_says_is_text(tmp_path: Path, page: Opened, axe: Path) -> None:
    """An API server would refuse such names, but not every text: messages of plugins, for example."""
    sections = [
        Facts(HOSTILE, {HOSTILE: HOSTILE}, HOSTILE),
        Table(HOSTILE, (HOSTILE, "Number"), [(HOSTILE, 1.5), (HOSTILE, None)], [0], HOSTILE),
        Lines(HOSTILE, "s", {HOSTILE: [None, 5.0]}, HOSTILE),
        Heat(HOSTILE, [(HOSTILE, HOSTILE, "00ff", "00ff")], HOSTILE),
        Bars(HOSTILE, "%", [(HOSTILE, 10.0, 110.0)], HOSTILE),
        Plot(HOSTILE, {"a": HOSTILE, "b": HOSTILE}, [(HOSTILE, True, {"a": 1, "b": 2})], HOSTILE),
    ]
    file = tmp_path / "page.html"
    file.write_bytes(document(Page(HOSTILE, HOSTILE, sections, (0.0, 60.0)), HOSTILE))
    assert await open_page(page, file) == [file.as_uri()]
    await page.click("circle")
    await page.click(".heat button")
    assert await page.title() == HOSTILE
    assert await page.locator("img").count() == 0
    assert await page.locator("script").count() == 2
    assert (await page.inner_text("body")).count(HOSTILE) > 20
    await assert_accessible(page, axe)


async def test_page_without_anything_to_draw_is_drawn(tmp_path: Path, page: Opened) -> None:
    sections = [
        Table("Table", ("Name",), []),
        Lines("Lines", "pods", {"pending": [0], "none": [None]}),
        Heat("Nodes", []),
        Plot("Plot", {"a": "a"}, []),
    ]
    file = tmp_path / "page.html"
    file.write_bytes(document(Page("Nothing", "", sections, (0.0,)), "1"))
    await open_page(page, file)
    assert await page.locator("h2").count() == len(sections)


async def test_screenshots_are_small(replay_page: Path, page: Opened, tmp_path: Path) -> None:
    """`PODIUM_SCREENSHOTS=docs/images` renews those of the documentation."""
    folder = Path(os.environ.get("PODIUM_SCREENSHOTS") or tmp_path)
    await open_page(page, replay_page)
    await page.locator("input[type=range]").fill("20")
    await page.evaluate("document.querySelector('section:has(.matrix)').scrollIntoView()")
    assert 5_000 < len(await page.screenshot(path=folder / "replay-page.png")) < SCREENSHOT_BYTES_MAX

"""The page as people use it: in a real browser, whose every request to elsewhere would be seen."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.axe import serious_faults
from tests.control_plane.requirement import built_or_skipped
from tests.manifests import node, pod
from tests.playground.assets import obtain
from tests.playground.comparison import scenarios
from tests.playground.site import build
from tests.playground.visit import Visit, serve

pytestmark = pytest.mark.anyio

_DROP = """([name, text]) => {
  const dropped = new DataTransfer();
  dropped.items.add(new File([text], name));
  document.getElementById("drop").dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, bubbles: true }));
}"""
_REFUSED_BY = """url => new Promise(resolve => {
  addEventListener("securitypolicyviolation", event => resolve(event.effectiveDirective), { once: true });
  fetch(url, { mode: "no-cors" }).then(() => resolve("nothing"), () => {});
})"""


@pytest.fixture(scope="module")
def url(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the playground is served, built from what is here."""
    site = tmp_path_factory.mktemp("playground")
    built_or_skipped(pytestconfig, "playground", lambda progress: build(site, obtain(progress)))
    with serve(site) as address:
        yield address


@pytest.fixture(scope="module")
async def visit(browser: Browser, url: str) -> AsyncIterator[Visit]:
    """The page with podium ready in it, which starts once for all tests. Its console must have no error."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    page, faults = await context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    opened = Visit(page, url)
    await opened.open()
    yield opened
    await context.close()
    assert (faults, opened.foreign) == ([], [])


async def drop(visit: Visit, name: str, *objects: object) -> None:
    await visit.page.evaluate(_DROP, [name, "\n---\n".join(map(json.dumps, objects))])


async def choose(page: Page, question: str) -> None:
    await page.get_by_role("tab", name=question).click()


async def test_example_answers_every_question(visit: Visit, axe: Path, tmp_path: Path) -> None:
    """`PODIUM_SCREENSHOTS=docs/images` renews the picture in the documentation."""
    page = visit.page
    await page.get_by_role("button", name="Use the example cluster").click()
    await visit.says("4 nodes, 8 pods and workloads.")
    await visit.shows("shop/report-7d4 fits on no node: 0/4 nodes are available")
    await choose(page, "Why")
    await visit.shows("nodes are one edit away: node-")
    await choose(page, "Fix")
    await visit.shows("lower the request for cpu from 3 to 2500m: fits on node-2")
    image = await page.screenshot(path=Path(os.environ.get("PODIUM_SCREENSHOTS") or tmp_path) / "playground.png")
    assert 5_000 < len(image) < 200_000
    await choose(page, "Capacity")
    await visit.shows("0 more of shop/report-7d4 fit.")
    await page.get_by_label("About").select_option("Deployment shop/api")
    await visit.shows("8 more of shop/api fit.")
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        assert await serious_faults(page, axe) == []


@pytest.mark.parametrize("question", ["Placement", "Why", "Fix", "Capacity"])
async def test_wide_answers_scroll_in_themselves_on_a_phone(visit: Visit, question: str) -> None:
    page = visit.page
    await page.set_viewport_size({"width": 390, "height": 844})
    try:
        await page.get_by_role("button", name="Use the example cluster").click()
        await visit.says("4 nodes, 8 pods and workloads.")
        await choose(page, question)
        await visit.shows("shop/report-7d4")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
        overflowing = await page.evaluate(
            """() => [...document.querySelectorAll("#answer :is(pre, .scroll)")]
                 .filter(block => block.scrollWidth > block.clientWidth)
                 .map(block => getComputedStyle(block).overflowX)"""
        )
        assert set(overflowing) <= {"auto"}
    finally:
        await page.set_viewport_size({"width": 1280, "height": 800})


async def test_tabs_are_walked_with_the_arrow_keys(visit: Visit) -> None:
    page = visit.page
    await page.get_by_role("button", name="Use the example cluster").click()
    await visit.says("4 nodes, 8 pods and workloads.")
    await choose(page, "Placement")
    await page.keyboard.press("ArrowLeft")
    await expect(page.get_by_role("tab", name="Capacity")).to_be_focused()
    await visit.shows("0 more of shop/report-7d4 fit.")
    await page.keyboard.press("Home")
    await expect(page.get_by_role("tab", name="Placement")).to_be_focused()
    await expect(page.get_by_role("tab", selected=True)).to_have_text("Placement")


async def test_answer_that_comes_after_another_question_was_chosen_is_not_shown_for_it(visit: Visit) -> None:
    page = visit.page
    await drop(visit, "cluster.yaml", node("n1", "4"), pod("late", "1"))
    await visit.says("1 node, 1 pod or workload.")
    for first, second in (("Why", "Placement"), ("Fix", "Capacity")):
        tabs = [page.get_by_role("tab", name=name) for name in (first, second)]
        await page.evaluate("tabs => tabs.forEach(tab => tab.click())", [await tab.element_handle() for tab in tabs])
    await visit.shows("4 more of default/late fit.")


async def test_dropped_file_is_answered_about_and_stays_text(visit: Visit) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    await drop(visit, "cluster.yaml", node("n1", "4"), pod("web", "1"), node(hostile, "1"))
    await visit.says("2 nodes, 1 pod or workload.")
    await choose(visit.page, "Placement")
    await visit.shows("default/web fits on 2 of 2 nodes and would go to n1.")
    await visit.shows(hostile)
    assert await visit.page.locator("img").count() == 0


async def test_broken_objects_are_named_with_file_and_field(visit: Visit) -> None:
    wrong = pod("wrong", "1")
    wrong["spec"]["priority"] = "high"
    await drop(visit, "cluster.yaml", node("n1", "4"), wrong, pod("web", "1"))
    await expect(visit.page.locator("#faults")).to_contain_text(
        "cluster.yaml: document 2: Pod default/wrong: spec.priority: expected"
    )
    await drop(visit, "pods.yaml", pod("web", "1"))
    await visit.says("The cluster cannot be read.")
    await expect(visit.page.locator("#faults")).to_contain_text("no nodes: add what kubectl get nodes,pods")


async def test_without_a_network_answers_are_those_of_the_commands(visit: Visit) -> None:
    await visit.page.context.set_offline(True)
    try:
        for scenario in scenarios(8):
            assert await scenario.differences(visit) == []
    finally:
        await visit.page.context.set_offline(False)


async def test_neither_the_page_nor_its_worker_may_talk_to_others(browser: Browser, url: str) -> None:
    context = await browser.new_context()
    page = await context.new_page()
    await context.route("**/assets.json", lambda route: route.abort())
    await page.goto(url)
    await expect(page.get_by_role("alert")).to_contain_text("Failed to fetch", timeout=300_000)
    await expect(page.get_by_role("status")).to_have_text("podium cannot start here.")
    (worker,) = page.workers
    for place in (page, worker):
        assert await place.evaluate(_REFUSED_BY, "http://127.0.0.1:9/") == "connect-src"
    await context.close()

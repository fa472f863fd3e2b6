"""The live page of `podium run --ui` in a real browser."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from podium.sandbox import Sandbox
from tests.browser.axe import serious_faults
from tests.control_plane.client import Client
from tests.device_manifests import device_class, devices, held_claim, resource_slice
from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import Daemon
from tests.e2e.waiting import eventually
from tests.manifests import node, pod
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.anyio

SHOWN_WITHIN_S = 1.0
ATTEMPTS_MAX = 10
SCREENSHOT_BYTES_MAX = 150_000
HOSTILE = "<img src=x onerror=document.title='owned'>"
SCHEMES: tuple[Any, ...] = ("light", "dark")
SCREENSHOTS: tuple[tuple[str, Any, int, int, tuple[str, ...]], ...] = (
    ("live-page-why", "light", 1280, 800, ("1", "g", "Enter")),
    ("live-page-nodes", "dark", 1280, 800, ("Escape", "3")),
    ("live-page-phone", "dark", 390, 844, ("1",)),
)
VIEWS = {"1": "queue", "2": "decisions", "3": "nodes", "4": "reasons"}

Show = Callable[[], Awaitable[Daemon]]


@pytest.fixture
async def page_daemon(sandbox_cluster: SandboxCluster, start: StartDaemon, page: Page) -> Daemon:
    """A podium whose page is open and connected; its cluster has three nodes, a running pod and two pending pods."""
    sandbox_cluster.put(
        *(node(f"node-{n}", cpu="4", labels={"topology.kubernetes.io/zone": f"zone-{n % 2}"}) for n in range(3)),
        pod("running", cpu="3", node="node-0"),
        pod("huge", cpu="64"),
        pod("gated", schedulingGates=[{"name": "example.com/quota"}]),
    )
    daemon = await start(sandbox_cluster, flags=("--ui",))
    await page.goto(f"https://127.0.0.1:{daemon.port}/ui")
    await wait_connected(page)
    await page.wait_for_selector("#queue >> text=unschedulable")
    return daemon


async def wait_connected(page: Page) -> None:
    await page.wait_for_selector("#connection[data-state=live]")


async def wait_until(page: Page, expression: str, arg: Any = None) -> Any:
    """Wait until the expression is true in the page, and return its value.

    Playwright's own `wait_for_function` evaluates text in the page, which the page's content security policy forbids.
    """
    return await eventually(lambda: page.evaluate(expression, arg))


async def wait_row(page: Page, view: str, name: str, text: str = "") -> float:
    """Wait until the view shows the pod with that text. Returns the browser's time then, in seconds since the epoch."""
    seen_s = await wait_until(
        page,
        """([view, name, text]) => {
          const rows = [...document.querySelectorAll(`#${view} tbody tr`)];
          const match = rows.find(row => row.textContent.includes(name) && row.textContent.includes(text));
          return match && Date.now() / 1000;
        }""",
        [view, f"default/{name}", text],
    )
    return float(seen_s)


async def test_changes_of_a_pod_are_shown_within_a_second(
    page_daemon: Daemon, sandbox_cluster: SandboxCluster, page: Page
) -> None:
    await page.keyboard.press("2")
    delays = []
    for number in range(ATTEMPTS_MAX):
        name = f"web-{number}"
        await sandbox_cluster.create(pod(name, cpu="10m"))
        seen_s = await wait_row(page, "decisions", name, "scheduled")
        attempts = json.loads((await page_daemon.get(f"/debug/decisions?name={name}"))[1])["attempts"]
        decided_s = await page.evaluate("at => Date.parse(at) / 1000", attempts[0]["at"])
        delays.append(seen_s - decided_s - attempts[0]["seconds"])
        # On a busy machine a slow attempt proves nothing about the page, so there are several.
        if delays[-1] <= SHOWN_WITHIN_S:
            break
    assert min(delays) <= SHOWN_WITHIN_S, delays

    await page.keyboard.press("1")
    await sandbox_cluster.create(pod("waits", cpu="5"))
    await wait_row(page, "queue", "waits", "unschedulable")
    await sandbox_cluster.delete_pod("waits")
    await wait_until(page, "!document.querySelector('#queue').textContent.includes('default/waits')")


async def test_a_click_explains_why_a_pod_waits_and_why_another_is_where_it_is(
    page_daemon: Daemon, sandbox_cluster: SandboxCluster, page: Page
) -> None:
    await page.click("text=default/huge")
    await page.wait_for_selector("#panel >> text=Nodes that do not fit")
    panel = await page.inner_text("#panel")
    assert "default/huge" in panel
    assert "Insufficient cpu" in panel
    assert "NodeResourcesFit" in panel

    await sandbox_cluster.create(pod("web", cpu="1"))
    await page.keyboard.press("2")
    await wait_row(page, "decisions", "web", "scheduled")
    await page.click("#decisions >> text=default/web")
    await page.wait_for_selector("#panel >> text=Scores")
    await page.wait_for_selector("#panel >> text=Bound to node-")


async def test_what_would_make_a_pod_fit_is_shown_beside_it(
    page_daemon: Daemon, sandbox_cluster: SandboxCluster, page: Page
) -> None:
    await page.click("text=default/huge")
    await page.wait_for_selector("#panel >> text=lower the request for cpu from 64 to 4")
    assert "Each of these makes the pod fit:" in await page.inner_text("#panel")
    _, answer = await page_daemon.get("/debug/pods/default/gated/fix")
    assert json.loads(answer)["fits"] is True
    assert (await page_daemon.get("/debug/pods/default/other/fix"))[0] == 404


async def test_a_node_shows_its_devices(page_daemon: Daemon, sandbox_cluster: SandboxCluster, page: Page) -> None:
    sandbox_cluster.put(
        device_class("gpu"),
        resource_slice("node-2", devices(2), node="node-2"),
        held_claim("train", {"node-2": ["gpu-1"]}, ["trainer-0"]),
    )
    await page.keyboard.press("3")
    await page.wait_for_selector("[data-key=node-2][aria-label*='1 of 2 devices of gpu.example.com']")
    await page.click("[data-key=node-2]")
    await page.wait_for_selector("#panel >> text=Devices that it can reach, by driver")


async def test_the_page_can_be_used_with_the_keyboard_alone(page_daemon: Daemon, page: Page) -> None:
    press = page.keyboard.press
    focused = "document.activeElement.textContent"
    await press("j")
    assert await page.evaluate(focused) == "default/huge"
    await press("j")
    assert await page.evaluate(focused) == "default/gated"
    await press("k")
    await press("Enter")
    await page.wait_for_selector("#panel >> text=Insufficient cpu")
    await press("Escape")
    assert not await page.is_visible("#panel")
    assert await page.evaluate(focused) == "default/huge"

    await press("/")
    await page.keyboard.type("gat")
    assert await page.locator("#queue tbody tr").count() == 1
    await press("Enter")
    assert await page.evaluate(focused) == "default/gated"
    await press("Escape")
    assert await page.locator("#queue tbody tr").count() == 2
    await press("g")
    assert await page.evaluate(focused) == "default/huge"
    await press("G")
    assert await page.evaluate(focused) == "default/gated"

    await press("?")
    assert await page.is_visible("#help")
    await press("Escape")
    assert not await page.is_visible("#help")
    for key, view in VIEWS.items():
        await press(key)
        assert await page.is_visible(f"#{view}")
        assert await page.locator("#views > section:visible").count() == 1
    await press("3")
    await press("j")
    await press("Enter")
    await page.wait_for_selector("#panel >> text=Allocatable")


async def test_a_nodes_colour_shows_its_requested_share(
    page_daemon: Daemon, sandbox_cluster: SandboxCluster, page: Page
) -> None:
    await page.keyboard.press("3")
    await page.wait_for_selector("[data-key=node-0].h7")
    await page.wait_for_selector("[data-key=node-1].h0")
    assert (await page.get_attribute("[data-key=node-0]", "aria-label") or "").startswith(
        "node-0 75 %: cpu 75 %, memory"
    )
    await sandbox_cluster.patch_node("node-1", {"spec": {"unschedulable": True}})
    await page.wait_for_selector("[data-key=node-1].closed")


async def test_axe_finds_nothing_serious_in_light_and_dark(page_daemon: Daemon, page: Page, axe: Path) -> None:
    sizes: tuple[Any, ...] = ({"width": 1280, "height": 800}, {"width": 390, "height": 844})
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for size in sizes:
            await page.set_viewport_size(size)
            for key in VIEWS:
                await page.keyboard.press(key)
                assert await serious_faults(page, axe) == [], (key, size, scheme)
        await page.keyboard.press("1")
        await page.keyboard.press("g")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#panel >> text=Insufficient cpu")
        assert await serious_faults(page, axe) == [], scheme
        await page.keyboard.press("Escape")
        await page.keyboard.press("?")
        assert await serious_faults(page, axe) == [], scheme
        await page.keyboard.press("Escape")


@pytest.mark.parametrize("width", [1280, 390])
async def test_reasons_and_scores_can_be_read_on_a_screen_of_any_width(
    page_daemon: Daemon, sandbox_cluster: SandboxCluster, page: Page, width: int
) -> None:
    await page.set_viewport_size({"width": width, "height": 800})
    await page.wait_for_selector("#queue >> text=Insufficient cpu")
    cut = """selector => [...document.querySelectorAll(selector)]
      .filter(each => each.scrollWidth > each.clientWidth + 1 || each.getBoundingClientRect().right > innerWidth)
      .map(each => each.textContent)"""
    assert await page.evaluate(cut, "#queue td span") == []
    await page.click("text=default/huge")
    await page.wait_for_selector("#panel >> text=3 nodes: Insufficient cpu")
    assert await page.evaluate(cut, "#panel .groups *") == []
    await page.click("#close")
    await sandbox_cluster.create(pod("web", cpu="1"))
    await page.keyboard.press("2")
    await wait_row(page, "decisions", "web", "scheduled")
    await page.click("#decisions >> text=default/web")
    await page.wait_for_selector("#panel >> text=Scores")
    await page.wait_for_selector("#panel >> text=0 for each of these nodes: ")
    # The names of the plugins, and their scores of the two best nodes.
    assert await page.evaluate(cut, "#panel [aria-label='The best nodes by score'] :is(th, td):nth-child(-n+3)") == []


async def test_retries_of_a_pod_are_one_row(page_daemon: Daemon, page: Page) -> None:
    rows = await page.evaluate(
        """attempts => {
          for (const [key, name, message, node] of attempts) {
            const result = node ? "scheduled" : "unschedulable";
            tables.decisions.set(key, {key, namespace: "test", name, message, node, result});
          }
          return foldedDecisions().filter(row => row.namespace === "test").map(row => [row.key, row.name, row.times]);
        }""",
        [
            *([901, "a", "full", ""], [902, "b", "full", ""], [903, "a", "full", ""]),
            *([904, "a", "tainted", ""], [905, "c", "", "n1"], [906, "c", "", "n1"]),
        ],
    )
    assert await page.evaluate("reasonOf(2, 'node(s) had untolerated taint(s)')") == "2 nodes had untolerated taints"
    assert rows == [[906, "c", 1], [905, "c", 1], [904, "a", 1], [903, "a", 2], [902, "b", 1]]


async def test_a_node_shows_its_taints_and_all_its_amounts(
    page_daemon: Daemon, sandbox_cluster: SandboxCluster, page: Page
) -> None:
    tainted = node("gpu-node", cpu="4", taints=[{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}])
    tainted["status"]["allocatable"]["example.com/gpu"] = tainted["status"]["capacity"]["example.com/gpu"] = "8"
    await sandbox_cluster.create(tainted)
    await page.keyboard.press("3")
    await page.click("#nodes >> text=gpu-node")
    panel = await page.inner_text("#panel")
    assert "dedicated=gpu:NoSchedule" in panel
    assert "example.com/gpu" in panel


async def test_every_value_from_the_cluster_is_shown_as_text(page_daemon: Daemon, page: Page) -> None:
    """An API server refuses such names, but not such texts everywhere: a plugin's message may be anything."""
    row = {"key": HOSTILE, "namespace": HOSTILE, "name": HOSTILE, "node": HOSTILE, "zone": HOSTILE, "closed": HOSTILE}
    queue_fields = {
        "queue": "unschedulable",
        "plugins": [HOSTILE],
        "reason": HOSTILE,
        "next": None,
        "events": {HOSTILE: []},
    }
    amount_fields = dict.fromkeys(
        ("cpu", "cpu_max", "memory", "memory_max", "pods", "pods_max", "since", "priority"), 1
    )
    decision_fields = {
        "key": "7",
        "at": 1.0,
        "result": HOSTILE,
        "message": HOSTILE,
        "decision": 1.0,
        "total": None,
        "node": "",
    }
    about = {"version": HOSTILE, "schedulers": [HOSTILE], "recorder": True, "fixes": True}
    event = {"at": 1.0, "leader": None, "counts": {"unschedulable": 1}, "attempts": 1, "about": about}
    for table, table_fields in (
        ("queue", {**amount_fields, **queue_fields}),
        ("decisions", decision_fields),
        ("nodes", amount_fields),
    ):
        event[table] = {"reset": True, "put": [{**row, **table_fields}], "gone": []}
    why = {"groups": [{"count": 1, "plugin": HOSTILE, "text": HOSTILE, "examples": [HOSTILE]}], "message": HOSTILE}
    scores = [{"node": HOSTILE, "total": 1, "plugins": {HOSTILE: 1}}]
    answer = {
        "bound_to": "",
        "exists": True,
        "queue": None,
        "attempts": [],
        "why": {**why, "verdict": f"{HOSTILE}\u202e", "scores": scores},
    }

    await page.route("**/ui/events", lambda route: route.fulfill(body=f"data: {json.dumps(event)}\n\n"))
    await page.route("**/debug/pods/**", lambda route: route.fulfill(json=answer))
    fix = {"fits": False, "fixes": [{"edits": [HOSTILE], "node": HOSTILE}], "gang": HOSTILE, "partial": False}
    await page.route("**/debug/pods/**/fix", lambda route: route.fulfill(json=fix))
    await page.reload()
    for key, view in VIEWS.items():
        await page.keyboard.press(key)
        await page.wait_for_selector(f"#{view} [data-key]")
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#panel")
        if view != "nodes":
            # The panel's title is there at once, the answer about the pod a request later.
            await page.wait_for_selector("#panel >> text=\\u{202e}")
            assert f"{HOSTILE}\\u{{202e}}" in await page.inner_text("#panel")
        assert HOSTILE in await page.inner_text("#panel")
        assert "\u202e" not in await page.inner_text("body")
    assert await page.title() == "podium"
    assert await page.locator("img").count() == 0


@pytest.fixture
async def guarded_cluster(anyio_backend: object, tmp_path: Path) -> AsyncIterator[SandboxCluster]:
    """A cluster whose API server requires a token."""
    async with Sandbox(token="right", kubelets=False) as sandbox, Client(sandbox.url, token="right") as admin:
        yield SandboxCluster(admin, sandbox.write_kubeconfig(tmp_path / "kubeconfig"), sandbox)


async def test_a_user_without_permissions_is_asked_for_a_token_that_is_not_stored(
    guarded_cluster: SandboxCluster, start: StartDaemon, browser: Browser, axe: Path
) -> None:
    guarded_cluster.put(node("node-0"), pod("huge", cpu="64"))
    daemon = await start(guarded_cluster, flags=("--ui",))
    # Not the fixture `page`, which fails on console errors: the refused requests are logged there.
    context = await browser.new_context(ignore_https_errors=True)
    context.set_default_timeout(PATIENCE_S * 1000)
    page = await context.new_page()
    await page.goto(f"https://127.0.0.1:{daemon.port}/ui")
    await page.wait_for_selector("#access >> text=podium does not know who you are")
    # What is behind the dialog does not look like an empty cluster.
    assert "Nothing is shown: podium does not know who you are" in await page.inner_text("#queue")
    assert "No pods are waiting" not in await page.inner_text("#queue")
    assert "0" not in await page.inner_text("#counts")
    assert await serious_faults(page, axe) == []
    for token in ("wrong", "right"):
        await page.fill("#token", token)
        await page.keyboard.press("Enter")
        await page.wait_for_selector(
            "#access >> text=does not accept this token" if token == "wrong" else "#queue >> text=huge"
        )
    await page.click("text=default/huge")
    await page.wait_for_selector("#panel >> text=Insufficient cpu")
    storage = await page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])")
    assert "right" not in storage
    await context.close()


async def test_podium_stops_cleanly_while_a_page_is_open_which_then_shows_the_lost_connection(
    page_daemon: Daemon, page: Page, browser: Browser
) -> None:
    # Not the fixture `page`, which fails on console errors: the refused connections are logged there.
    await page.goto("about:blank")
    context = await browser.new_context(ignore_https_errors=True)
    context.set_default_timeout(PATIENCE_S * 1000)
    second_page = await context.new_page()
    await second_page.goto(f"https://127.0.0.1:{page_daemon.port}/ui")
    await wait_connected(second_page)
    assert await page_daemon.stop() == 0, page_daemon.output()
    assert "Exiting with unfinished work" not in page_daemon.output()
    await second_page.wait_for_selector("#connection[data-state=lost]")
    await context.close()


async def test_screenshots_are_small(
    sandbox_cluster: SandboxCluster, start: StartDaemon, page: Page, tmp_path: Path
) -> None:
    """With `PODIUM_SCREENSHOTS=docs/images` the test writes the screenshots of the documentation."""
    cpus = ("16", "16", "16", "32", "8")
    sandbox_cluster.put(
        *(
            node(f"node-{n}", cpu=cpus[n % 5], memory="64Gi", labels={"topology.kubernetes.io/zone": f"zone-{n % 3}"})
            for n in range(60)
        ),
        *(pod(f"batch-{n}", cpu=str(1 + n % 7), node=f"node-{n % 60}") for n in range(140)),
        *(pod(f"train-{n}", cpu="40", priority=100) for n in range(4)),
        *(pod(f"web-{n}", cpu="2", memory="1Gi") for n in range(30)),
        *(pod(f"quota-{n}", schedulingGates=[{"name": "example.com/quota"}]) for n in range(3)),
    )
    daemon = await start(sandbox_cluster, flags=("--ui",))
    await daemon.wait_told_bound(f"web-{n}" for n in range(30))
    await page.goto(f"https://127.0.0.1:{daemon.port}/ui")
    await wait_connected(page)
    await wait_until(page, "document.querySelector('#counts').textContent.includes('unschedulable4')")
    folder = Path(os.environ.get("PODIUM_SCREENSHOTS") or tmp_path)
    for name, scheme, width, height, keys in SCREENSHOTS:
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await page.set_viewport_size({"width": width, "height": height})
        for key in keys:
            await page.keyboard.press(key)
        if "Enter" in keys:
            # The answer of a process of its own: an image shows what it comes to.
            await page.wait_for_selector("#panel >> text=Each of these makes the pod fit")
        image = await page.screenshot(path=folder / f"{name}.png")
        assert 5_000 < len(image) < SCREENSHOT_BYTES_MAX, name

"""`podium demo --ui` from the outside."""

from __future__ import annotations

import json
import signal
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.cli.conftest import Podium, Start, read_until
from tests.patience import PATIENCE_S


def events(url: str) -> Iterator[Any]:
    """The events of the stream."""
    with urllib.request.urlopen(f"{url}/events", timeout=PATIENCE_S) as stream:
        for line in stream:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))


def test_pods_come_and_go_on_a_page_until_control_c(start: Start) -> None:
    process = start("demo", "--ui", "--no-browser", "--nodes", "5", "--pods", "20")
    url = read_until(process, ["http://"]).split()[-1]
    assert url.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as page:
        assert page.headers.get_content_type() == "text/html"
    stream = events(url)
    first = next(stream)
    # The page may be open before the nodes are known.
    nodes = {row["key"] for row in first["nodes"]["put"]}
    while len(nodes) < 5:
        nodes |= {row["key"] for row in next(stream)["nodes"]["put"]}
    # Pods are decided on while the page is open, and the three that fit nowhere wait.
    next(event for event in stream if event["attempts"] > first["attempts"])
    waiting: dict[str, str] = {}
    for event in stream:
        changes = event.get("queue", {"put": [], "gone": []})
        waiting |= {row["name"]: row["reason"] for row in changes["put"]}
        # Pods that fit nowhere, one of them for want of devices, and a gang of which one member fits nowhere.
        if waiting.keys() >= {"too-big", "no-such-node", "not-tolerating", "no-such-device", "no-gang-a"}:
            break
    stream.close()  # type: ignore[attr-defined]

    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, out + err
    assert "Traceback" not in err


@pytest.mark.parametrize("option", [("--autoscale",), ("--output", "json"), ("--timeout", "5"), ("--devices", "gpu=2")])
def test_what_does_not_go_with_the_page_is_refused(podium: Podium, option: tuple[str, ...]) -> None:
    result = podium("demo", "--ui", *option)
    assert result.returncode == 2
    assert f"{option[0]}: --ui shows pods that come and go" in result.stderr

"""What the package index is told about where podium is published."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


def metadata(monkeypatch: pytest.MonkeyPatch, url: str) -> dict[str, Any]:
    monkeypatch.setenv("PODIUM_URL", url)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    content: dict[str, Any] = {}
    module.LinksHook(str(ROOT), {}).update(content)
    return content


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)]*)\)", text)


def test_links_lead_to_where_podium_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    content = metadata(monkeypatch, "https://code.example/podium")
    assert content["urls"]["Source"] == "https://code.example/podium"
    addresses = links(content["readme"]["text"])
    assert len(addresses) > 20
    assert [address for address in addresses if not address.startswith(("https://", "#"))] == []


def test_without_an_address_none_is_invented(monkeypatch: pytest.MonkeyPatch) -> None:
    content = metadata(monkeypatch, "")
    assert content["urls"] == {}
    assert [address for address in links(content["readme"]["text"]) if not address.startswith(("https://", "#"))] == []
    assert "compared with others" in content["readme"]["text"]

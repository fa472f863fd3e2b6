"""A page is one file that loads nothing, and nothing that it shows can become markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re

from podium.cli.pages.document import document
from podium.cli.pages.sections import Facts, Page

HOSTILE = "</script><script>document.title='owned'</script><!--<script>"


def html(title: str, **facts: str) -> str:
    return document(Page(title, "all is well", [Facts("Facts", facts)]), "1.2.3").decode()


def test_data_cannot_end_its_element() -> None:
    text = html(HOSTILE, pod=HOSTILE)
    assert HOSTILE not in text
    assert text.count("<script") == 2
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data)["sections"][0]["facts"] == {"pod": HOSTILE}
    assert json.loads(data)["sections"][0]["kind"] == "facts"


def test_policy_names_the_script_and_the_style_and_lets_nothing_else_in() -> None:
    text = html("Replay")
    (policy,) = re.findall(r'Content-Security-Policy" content="(.*?)"', text)
    scripts, styles = (
        re.findall(r"<script>(.*?)</script>", text, re.DOTALL),
        re.findall(r"<style>(.*?)</style>", text, re.DOTALL),
    )
    for kind, content in (("script-src", scripts), ("style-src", styles)):
        digest = base64.b64encode(hashlib.sha256(content[0].encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_nothing_is_loaded() -> None:
    assert re.findall(r"(?:src|href)\s*=|url\(|@import", html("Replay")) == []


def test_text_that_is_no_unicode_is_written_all_the_same() -> None:
    assert json.loads(re.findall(r'id="data">(.*?)</script>', html("\ud800", pod="\ud800"))[0])["title"] == r"\ud800"

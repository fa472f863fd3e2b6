"""Writes a page as one HTML file.

All text from a cluster is data: it lies in a script element that no browser runs, with `<` escaped so that it cannot
end the element, and `page.js` shows it as text with unprintable characters escaped. The page's own policy allows no
other script, and no loading.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib.resources import files
from typing import Final

from podium.cli.output import as_json
from podium.cli.pages.sections import Page
from podium.lib.printable import printable, printable_values

_DOCUMENT: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title} <small>podium {version}</small></h1><p id="headline">{headline}</p></header>
<main><noscript><p>This page needs JavaScript to draw what it holds.</p></noscript></main>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def document(page: Page, version: str) -> bytes:
    """Return the file's content.

    Args:
        version: podium's version.
    """
    style = _read("podium.daemon.live_page", "look.css") + _read("podium.cli.pages", "page.css")
    script = _read("podium.cli.pages", "page.js")
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    text = _DOCUMENT.format(
        policy=policy,
        title=escape(printable(page.title)),
        headline=escape(printable(page.headline)),
        version=escape(version),
        style=style,
        script=script,
        data=as_json(printable_values(page.as_value())).decode().replace("<", "\\u003c"),
    )
    return text.encode(errors="replace")


def _read(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text()


def _source(content: str) -> str:
    """Return the name of an inline script or style for the policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"

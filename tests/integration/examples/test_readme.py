"""The README's plugin: following only the README, it changes where `podium demo` puts pods."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
SMALL = ("--nodes", "10", "--pods", "60")


def demo(*arguments: str) -> list[tuple[str, int]]:
    """The fullest and the emptiest nodes: their kind and how many pods they have."""
    result = subprocess.run(
        [sys.executable, "-m", "podium", "demo", *SMALL, *arguments], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return [(kind, int(pods)) for kind, pods in re.findall(r"^  node-\d+ +(\w+) +(\d+) pods", result.stdout, re.M)]


def test_the_plugin_of_the_readme_changes_placements_in_the_demo() -> None:
    (source,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert source == (ROOT / "examples/plugins/prefer_big_nodes.py").read_text()
    assert len(source.splitlines()) <= 10
    (arguments,) = re.findall(r"^\$ podium demo (--plugin .*)$", README, re.MULTILINE)

    fullest = [kind for kind, _ in demo()[:3]]
    assert fullest != ["large"] * 3
    big = demo(*shlex.split(arguments))
    assert [kind for kind, pods in big if pods > 1] == ["large", "large"]
    assert sum(pods for kind, pods in big if kind == "large") > 50

"""The page about the library: its examples run one after the other, as a reader would type them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.manifests import node

PAGE = Path(__file__).parents[3] / "docs" / "library.md"


def test_the_examples_of_the_library_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [node("node-a", "1"), node("node-b", "8")]
    (tmp_path / "cluster.yaml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(examples) == 8
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, str(PAGE), "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "node-b"
    assert "Insufficient cpu" in lines[1]
    assert "NodeResourcesFit" in lines[2]
    assert lines[3] == "node-b "
    assert lines[4:7] == [f"{{'pod': 'default/web-{number}', 'node': 'node-b'}}" for number in range(3)]
    assert lines[7] == "1"
    assert lines[9] == "{'cpu': '1'}"
    assert "disk=ssd" in lines[10]
    assert lines[12] == "['drop disk=ssd from the node selector'] node-b"
    assert lines[-5].count("'node': 'node-c'") == 3
    assert lines[-4].startswith("node-b ")
    assert lines[-3].count("Move(pod='default/api-") == 1
    assert lines[-3].count("Pending(pod='default/api-") == 1
    assert lines[-2] == "66.7"
    assert lines[-1].count("default/api-") == 1

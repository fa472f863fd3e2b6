"""The list of licences."""

from __future__ import annotations

import json
from pathlib import Path

from release.software_bill import licence_list


def test_each_package_has_a_line_with_its_licences(tmp_path: Path) -> None:
    components = [
        {"name": "b", "version": "2", "licenses": [{"license": {"id": "MIT"}}, {"license": {"name": "own"}}]},
        {"name": "a", "version": "1", "licenses": [{"expression": "Apache-2.0 OR MIT"}]},
        {"name": "c", "version": "3"},
    ]
    bill, list_file = tmp_path / "bill.json", tmp_path / "licences.txt"
    bill.write_text(json.dumps({"components": components}))
    licence_list(bill, list_file)
    assert list_file.read_text().splitlines() == ["a 1: Apache-2.0 OR MIT", "b 2: MIT, own", "c 3: not stated"]

"""The notebook docs/notebooks/library.ipynb: its cells are run one after the other in one namespace.

`python -m tests.notebook` runs them and writes their outputs; a test fails where a cell prints something else. A cell
prints what it shows, so that no kernel is needed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.page_command import run_as_command

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "notebooks" / "library.ipynb"
CLUSTER = ROOT / "examples" / "clusters" / "shop.yaml"


def execute() -> dict[str, Any]:
    """The notebook with what its cells print now, run beside a copy of the cluster."""
    notebook: dict[str, Any] = json.loads(NOTEBOOK.read_text())
    names: dict[str, Any] = {"__name__": "__main__"}
    directory_before = Path.cwd()
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(CLUSTER, directory)
        os.chdir(directory)
        try:
            code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
            for number, cell in enumerate(code, start=1):
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
                text = printed.getvalue().splitlines(keepends=True)
                cell["execution_count"] = number
                cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
        finally:
            os.chdir(directory_before)
    return notebook


def file_text(notebook: dict[str, Any]) -> str:
    """The notebook as it is in its file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    run_as_command(lambda: NOTEBOOK.write_text(file_text(execute())), __doc__)

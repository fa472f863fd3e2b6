"""podium's commands, run in this process, and the files that they are given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from podium.cli.main import main


def run(*arguments: Any, stdin: str | None = None) -> Result:
    """Run a command; an exception that is not an ending of podium's fails the test."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin, catch_exceptions=False)


def write_objects(path: Path, *objects: Any) -> Path:
    """The path of a file with these objects, as documents of YAML."""
    path.write_text("\n---\n".join(json.dumps(item) for item in objects))
    return path

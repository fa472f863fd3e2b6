"""The documentation as a site: `make docs` runs `python -m tests.docs_site`.

The pages and the files that they link to are laid out as in the repository, so that one link works in both places.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.control_plane.builder import BuildError
from tests.docs_site.reference import PAGES as PAGES_FROM_CODE

ROOT = Path(__file__).parents[2]
SETTINGS = ROOT / "mkdocs.yml"
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
FOLDERS = ("docs", "examples", "deploy")
_LINK = re.compile(r"\]\(([^)#:\s]+)\)")


def lay_out(source: Path) -> None:
    """Copy the pages and what they link to, with a list of the files for each folder that has a link; make the others.

    The playground's own page is left out: `make playground` builds it.
    """
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for name in (*PAGES, "LICENSE"):
        shutil.copyfile(ROOT / name, source / name)
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__", "*.html", "*.js"))
    reference = source / "docs" / "reference"
    reference.mkdir()
    for name, make_page in PAGES_FROM_CODE.items():
        (reference / name).write_text(make_page())
    for page in sorted(source.rglob("*.md")):
        page.write_text(_LINK.sub(partial(_to_a_file, page.parent), page.read_text()))


def build(source: Path, site: Path) -> None:
    """Build the site; anything that MkDocs warns about is an error.

    Raises:
        BuildError: MkDocs is not installed.
        mkdocs.exceptions.Abort: there was a warning, such as a link to a page that does not exist.
    """
    require_mkdocs()
    os.environ["NO_MKDOCS_2_WARNING"] = "1"
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    lay_out(source)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    build_site(load_config(str(SETTINGS), docs_dir=str(source), site_dir=str(site), strict=True))


def require_mkdocs() -> None:
    """Raises: BuildError: MkDocs is not installed."""
    if not importlib.util.find_spec("material"):
        raise BuildError("MkDocs is not installed: pip install --require-hashes -r requirements/docs.lock")


def build_apart(site: Path) -> None:
    """Build the site in another process. Raises: BuildError: MkDocs is not installed."""
    require_mkdocs()
    command = [sys.executable, "-m", "tests.docs_site", "--out", str(site)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""


def _to_a_file(folder: Path, link: re.Match[str]) -> str:
    if not (folder / link[1]).is_dir():
        return link[0]
    _list_of_files((folder / link[1]).resolve())
    return f"]({link[1].rstrip('/')}/index.md)"


def _list_of_files(folder: Path) -> None:
    files = sorted(
        str(file.relative_to(folder)) for file in folder.rglob("*") if file.suffix != ".md" and file.is_file()
    )
    (folder / "index.md").write_text(
        "\n".join([f"# {folder.name}", "", *(f"- [{name}]({name})" for name in files), ""])
    )

import re
from pathlib import Path

from tests.diagrams import PAGE, with_diagrams

ROOT = Path(__file__).parents[2]


def test_the_state_diagrams_are_those_of_the_tables() -> None:
    page = PAGE.read_text()
    assert with_diagrams(page) == page, "run: python -m tests.diagrams"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_documents_name_only_files_that_exist() -> None:
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text()
        for path in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / path).exists(), f"{name} links to {path}"


def test_the_architecture_page_names_only_code_that_exists() -> None:
    """`package.module` or `package.Class` in backquotes has to be found below podium/."""
    sources = "\n".join(path.read_text() for path in (ROOT / "podium").rglob("*.py"))
    for dotted in re.findall(
        r"`((?:daemon|binder|queues|framework|cluster|client|objects|engine|plugins)\.[\w.]+)`", PAGE.read_text()
    ):
        package, *rest = dotted.split(".")
        last = rest[-1]
        is_module = (ROOT / "podium" / package / f"{last}.py").exists() or (ROOT / "podium" / package / last).is_dir()
        assert is_module or re.search(rf"\b(class|def) {re.escape(last)}\b|^{re.escape(last)}\b", sources, re.M), dotted

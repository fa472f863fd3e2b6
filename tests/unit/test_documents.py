import re
from pathlib import Path

from podium.library import Cluster
from tests import library_page, metrics_page, notebook
from tests.diagrams import PAGE, with_diagrams

ROOT = Path(__file__).parents[2]


def test_the_state_diagrams_are_those_of_the_tables() -> None:
    page = PAGE.read_text()
    assert with_diagrams(page) == page, "run: python -m tests.diagrams"


def test_the_metrics_page_says_what_the_registry_says() -> None:
    assert metrics_page.PAGE.read_text() == metrics_page.page(), "run: python -m tests.metrics_page"


def test_the_metrics_page_parts_upstreams_names_from_podiums_own() -> None:
    _, upstreams, own, resources, estimators, fleets = metrics_page.page().split("\n## ")
    assert "| `scheduler_cache_size` | gauge | `type` | Nodes and pods in the cache. |" in upstreams
    assert "| `podium_writes_in_flight` | gauge | – | " in own
    assert "| `podium_events_total` | counter | `result` | " in own
    assert "| `kube_pod_resource_limit` | gauge | `namespace`, `pod`, " in resources
    assert "`karmada_scheduler_estimator_estimating_request_total`" in estimators
    assert "`podium_fleet_requests_total`" in fleets
    assert "`podium_" not in upstreams
    assert "`scheduler_" not in own


def test_the_reference_of_the_library_says_what_the_docstrings_say() -> None:
    assert library_page.PAGE.read_text() == library_page.page(), "run: python -m tests.library_page"


def test_the_reference_of_the_library_has_every_method() -> None:
    methods_shown = {name for names in library_page.SECTIONS.values() for name in names}
    assert {name for name in dir(Cluster) if not name.startswith("_")} == methods_shown | library_page.NOT_FOR_USERS


def test_the_notebook_shows_what_its_cells_print() -> None:
    assert notebook.NOTEBOOK.read_text() == notebook.file_text(notebook.execute()), "run: python -m tests.notebook"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_the_readme_runs_podium_with_its_defaults() -> None:
    """Beside the words that the decisions are kube-scheduler's, no example may weigh nodes otherwise."""
    commands = re.findall(r"^\$ ((?:podium run|helm install)\b[^#\n]*)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(commands) >= 2
    assert not [command for command in commands if "--config" in command or "--set" in command]


def test_documents_name_only_files_that_exist() -> None:
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text()
        for path in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / path).exists(), f"{name} links to {path}"


def test_the_architecture_page_names_only_code_that_exists() -> None:
    """`package.module` or `package.Class` in backquotes has to be found below podium/."""
    sources = "\n".join(path.read_text() for path in (ROOT / "podium").rglob("*.py"))
    names = {name for pair in re.findall(r"\b(?:class|def) (\w+)|^(\w+)", sources, re.M) for name in pair}
    for dotted in re.findall(
        r"`((?:daemon|binder|queues|framework|cluster|client|objects|engine|plugins)\.[\w.]+)`", PAGE.read_text()
    ):
        package, *parts = dotted.split(".")
        last = parts[-1]
        below = ROOT / "podium" / package
        is_module = below.joinpath(*parts).is_dir() or any(below.rglob(f"{last}.py"))
        assert is_module or last in names, dotted


def test_the_readme_begins_with_what_podium_is() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert "docs/compared.md" in lines[2]
    first_screen = "\n".join(lines[:30])
    assert all(part in first_screen for part in ("alpha", "1.36", "1.37", "![", "make demo", "docs/parity.md"))


def test_the_comparison_shows_figures_of_the_performance_page() -> None:
    """Each row of its table names the workload, the nodes and the column that it is taken from."""
    figures = (ROOT / "docs/performance.md").read_text().partition("\n\n\n|  | target")[0]
    heading, *rows = (line.split("|")[1:-1] for line in figures.splitlines() if line.startswith("| "))
    columns = [name.strip() for name in heading]
    cells = {tuple(cell.strip() for cell in row[:3]): [cell.strip() for cell in row] for row in rows}
    workloads = {"plain pods": "plain", "1,000 preemptors": "preemption", "an extender": "extender"}
    names = {"CPU ms per pod, Events included": "until quiet"}
    page = (ROOT / "docs/compared.md").read_text()
    rows_shown = re.findall(
        r"^\| ([\w, ]+), ([\d,]+) (?:full )?nodes: (.+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE
    )
    assert len(rows_shown) == 8
    for workload, nodes, column, *values in rows_shown:
        at = columns.index(names.get(column, column))
        for scheduler, value in zip(("podium", "kube-scheduler"), values, strict=True):
            assert cells[workloads[workload], nodes, scheduler][at] == value, (workload, nodes, column)


RETIRED = (
    *("nodes fit that it looked at", "is the least: so many", "is no number of attempts", "PODS THAT STAY"),
    *(
        "NODES THAT GO",
        "NODE THAT IS THERE",
        "3 if a pod stays",
        "which to let go",
        "whichever is more",
        "No pod waits",
    ),
    *("is for those whom the API server", "is asked about as if it were", "waits for for ever", "no plugin of yours"),
    *("Of how many scheduling attempts", "knows no priorities", "free at most", "what keeps the next one off"),
    *("no line of it is", "there are no nodes that more could be like", "is not that of a podium like this"),
    *("has the feature gates and their defaults be", "What is worth knowing, all of it as", "told as above"),
    *(
        "A member announces in its Lease the set of members that it acts by",
        "Who owns what",
    ),
)
"""Sentences that native readers stumbled over, and that were rewritten."""


def test_rewritten_sentences_do_not_come_back() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    sources = [path for kind in ("py", "js", "html") for path in (ROOT / "podium").rglob(f"*.{kind}")]
    texts = {path: path.read_text() for path in [*pages, *sources]}
    assert not [(str(path.relative_to(ROOT)), old) for path, text in texts.items() for old in RETIRED if old in text]


def test_the_title_of_a_page_says_what_it_is_for() -> None:
    titles = {path.name: path.read_text().partition("\n")[0] for path in (ROOT / "docs").glob("*.md")}
    assert not [(name, title) for name, title in titles.items() if len(title.split()) < 3]

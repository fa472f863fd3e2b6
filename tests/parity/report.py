"""The page docs/parity.md: how podium's decisions compare with kube-scheduler's, plugin by plugin.

`python -m tests.parity.report` writes it; a test fails where the page says something else.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from podium.plugins import IN_TREE
from tests.page_command import run_as_command
from tests.parity import divisions
from tests.parity.recorded import (
    DEVICE_HINTS,
    DEVICES,
    HINTS,
    SCENARIOS,
    SELECTORS,
    SEQUENCES,
    Case,
    all_cases,
    cases,
    categories,
)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "parity.md"

_HEAD = """\
# The same decisions as kube-scheduler's: the evidence

podium's answers beside those of kube-scheduler 1.37.2, recorded by running its own framework with its own in-tree
plugins. `make test` compares them anew; this page is written by `python -m tests.parity.report`.
"""

_PLUGINS = """
## Plugin by plugin

What is compared: of every node that the plugin rejects, the status code and the reasons; of every node that it scores,
the weighted, normalised score; of PreFilter, the verdict; of PostFilter, the verdict, the nominated node and the
victims; of every change that it has registered for, whether it would try the pod again. *Scenarios* are those in which
the plugin says any of this, *alike* those in which podium's plugin says exactly the same.

| plugin | rejections | scores | hints | scenarios | alike |
|---|--:|--:|--:|--:|--:|
"""

_DIFFERS = """
## Where podium differs on purpose

Every `Differs:` of the code, by module.

"""

_SETS = {
    "one attempt": SCENARIOS,
    "queue of pods": SEQUENCES,
    "change of the cluster": HINTS,
    "device selector": SELECTORS,
    "devices": DEVICES,
    "change of devices": DEVICE_HINTS,
}
_BY_PLUGIN = (SCENARIOS, HINTS, DEVICES, DEVICE_HINTS)
_PREEMPTION = "preemption: "


def page() -> str:
    """The whole page."""
    return f"{_HEAD}{_sets()}{_PLUGINS}{_by_plugin()}{_unseen()}{_DIFFERS}{_differs()}"


# ---------------------------------------------------------------- sets


def _sets() -> str:
    lines = ["", "| set | category | scenarios | alike |", "|---|---|--:|--:|"]
    for title, name in _SETS.items():
        lines += [f"| {title} | {category} | {_count(cases(name, category))} |" for category in categories(name)]
        lines.append(f"| {title} | **all** | {_count(list(all_cases(name)))} |")
    lines += _divisions()
    placements = sum(len(case.recorded_answer["placements"]) for case in all_cases(SEQUENCES))
    lines += [
        "",
        f"A queue counts as alike where every pod of it goes to the same node: {placements:,} decisions in all.",
    ]
    return "\n".join(lines) + "\n"


def _divisions() -> list[str]:
    counts: Counter[str] = Counter()
    alike: Counter[str] = Counter()
    for row in divisions.rows():
        for name in (divisions.category(row), "**all**"):
            counts[name] += 1
            alike[name] += not any(divisions.differences(row))
    # The sum comes last.
    names = sorted(counts, key=lambda name: (name.startswith("*"), name))
    return [f"| division over clusters (Karmada 1.18.2) | {name} | {counts[name]} | {alike[name]} |" for name in names]


def _count(case_list: Iterable[Case]) -> str:
    alike = [not case.differences for case in case_list]
    return f"{len(alike)} | {sum(alike)}"


# ---------------------------------------------------------------- plugins


def _by_plugin() -> str:
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    scenarios: Counter[str] = Counter()
    alike: Counter[str] = Counter()
    for case in (case for name in _BY_PLUGIN for case in all_cases(name)):
        expected_facts, answer = facts(case.recorded_answer), facts(case.answer)
        for plugin in expected_facts.keys() | answer.keys():
            scenarios[plugin] += 1
            alike[plugin] += expected_facts.get(plugin) == answer.get(plugin)
            kinds[plugin].update(kind for kind, *_ in expected_facts.get(plugin, ()))
    lines = [
        f"| {plugin} | {_or_dash(kinds[plugin]['rejection'])} | {_or_dash(kinds[plugin]['score'])} "
        f"| {_or_dash(kinds[plugin]['hint'])} | {scenarios[plugin]} | {alike[plugin]} |"
        for plugin in sorted(scenarios)
    ]
    return "\n".join(lines) + "\n"


def _or_dash(count: int) -> str:
    return f"{count:,}" if count else "–"


def _unseen() -> str:
    plugins_seen = {plugin for name in _BY_PLUGIN for case in all_cases(name) for plugin in facts(case.recorded_answer)}
    names = ", ".join(sorted(IN_TREE.keys() - plugins_seen))
    return (
        f"\nPlugins that leave no trace in these recordings, and have tests of their own: {names}.\n" if names else ""
    )


def facts(answer: Mapping[str, Any]) -> dict[str, set[tuple[Any, ...]]]:
    """Return what each plugin says in an answer."""
    facts_by_plugin: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for plugin, fact in _facts(answer):
        facts_by_plugin[plugin].add(fact)
    return facts_by_plugin


def _facts(answer: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    prefilter = answer.get("prefilter", {})
    if "plugin" in prefilter:
        yield prefilter["plugin"], ("prefilter", prefilter["code"], *prefilter.get("reasons", ()))
    for node, status in answer.get("filter", {}).items():
        yield status["plugin"], ("rejection", node, status["code"], *status.get("reasons", ()))
    for node, scores in answer.get("scores", {}).items():
        for plugin, score in scores.get("plugins", {}).items():
            yield plugin, ("score", node, score)
    for event, by_plugin in answer.get("hints", {}).items():
        for plugin, hint in by_plugin.items():
            yield plugin, ("hint", event, hint)
    yield from _post_filter_facts(answer)


def _post_filter_facts(answer: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    postfilter = answer.get("postfilter", {})
    for reason in postfilter.get("reasons", ()):
        plugin = "DefaultPreemption" if reason.startswith(_PREEMPTION) else postfilter["plugin"]
        yield plugin, ("postfilter", postfilter["code"], reason)
    if "nominated" in answer:
        yield "DefaultPreemption", ("victims", answer["nominated"], *answer.get("victims", ()))


# ---------------------------------------------------------------- deviations


def _differs() -> str:
    lines: list[str] = []
    for path in sorted((ROOT / "podium").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        lines += [f"- `{module}`: {text}" for text in _differs_of(path.read_text(encoding="utf-8"))]
    return "\n".join(lines) + "\n"


def _differs_of(source: str) -> Iterator[str]:
    """The `Differs:` paragraphs of a module's docstrings, each in one line."""
    # Most modules have none, and parsing them all takes as long as many comparisons.
    if "Differs:" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _, marker, tail = (ast.get_docstring(node) or "").partition("Differs:")
            if marker:
                paragraph = tail.partition("\n\n")[0]
                yield " ".join(paragraph.split())


if __name__ == "__main__":
    run_as_command(lambda: PAGE.write_text(page(), encoding="utf-8"), __doc__)

"""Names are nouns and verbs, in tests and benchmarks too: a ratchet for each package, whose ceilings may only fall."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.unit.python_text import identifiers

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "podium"

_VAGUE = """
added admitted adopted after again allocated allowed another answered any_ anybody anything applied asked assembled
assumed began before blocked both bound broken built cached came changed chosen claimed closed come compared
compiled consumed copied counted created decided decoded deleted demanded derived described desired done drawn
dropped each either enabled encoded ended enforced everything evicted examined excluded expanded expected failed few
filled filtered fixed followed found freed gated gathered given go gone got held helped here ignored implemented it
its joined kept known labelled left left_over less let listed loaded lost lowered made many marked matched meant
merged more most moved much named narrowed needed neither nobody nominated noted now observed offered one ones
ordered other others owned passed placed planned preferred prepared published put queued reached read_ recorded
refused rejected related removed replaced replayed reported requested required rest retained said same saved scored
seen selected sent served shared shown simulated sized skipped so some somebody something spent started stood
stopped stored such succeeded taken that then there these thing things this those told tracked tried typed unasked
undecided unscaled used wanted watched weighted went what which whole whom whose wrapped written
"""
VAGUE = frozenset(_VAGUE.split())
"""Words that say what was done to a value, or point at it, where a noun says what it is."""

_IRREGULAR = """
bound broken built chosen cut done drawn fed found given gone held kept known led left lost made meant paid
said seen sent shown spent taken taught thought told woken worn written
"""
IRREGULAR = frozenset(_IRREGULAR.split())
_FUNCTION = re.compile(r"\bdef\s+(\w+)")
VERBS_IN_ED = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"})

CEILINGS: dict[str, tuple[int, int]] = {
    "": (0, 0),
    "binder": (1, 1),
    "cel": (1, 1),
    "cli": (3, 0),
    "client": (7, 4),
    "cluster": (4, 4),
    "config": (1, 2),
    "daemon": (9, 4),
    "devices": (5, 0),
    "engine": (11, 5),
    "estimator": (5, 1),
    "fleets": (0, 0),
    "framework": (14, 3),
    "insight": (14, 0),
    "lib": (2, 1),
    "library": (0, 0),
    "objects": (20, 0),
    "plugins": (0, 0),
    "provisioner": (9, 0),
    "queues": (3, 2),
    "recording": (6, 0),
    "sandbox": (7, 7),
    "server": (1, 1),
    "shards": (1, 0),
    "telemetry": (0, 0),
    "testing": (5, 1),
    "benchmarks": (3, 0),
    "tests": (1, 0),
    "tests/browser": (0, 0),
    "tests/churn": (0, 0),
    "tests/conformance": (0, 0),
    "tests/control_plane": (0, 0),
    "tests/device_kills": (0, 0),
    "tests/differential": (0, 0),
    "tests/docs_site": (0, 0),
    "tests/e2e": (1, 2),
    "tests/estimator_chaos": (0, 0),
    "tests/fgd": (3, 3),
    "tests/foreign_image": (0, 0),
    "tests/fuzz": (0, 0),
    "tests/gangs": (0, 0),
    "tests/go_tools": (0, 0),
    "tests/helm": (0, 0),
    "tests/integration": (3, 3),
    "tests/karmada": (0, 0),
    "tests/karpenter": (0, 0),
    "tests/make_room": (0, 0),
    "tests/monitoring": (0, 0),
    "tests/outlook": (0, 0),
    "tests/parity": (4, 0),
    "tests/planted": (0, 0),
    "tests/playground": (0, 0),
    "tests/properties": (0, 0),
    "tests/provisioned": (0, 0),
    "tests/shadow": (0, 0),
    "tests/shard_kills": (0, 0),
    "tests/simulation": (0, 0),
    "tests/skew": (0, 0),
    "tests/soak": (0, 0),
    "tests/unit": (63, 14),
    "tests/upgrade": (0, 0),
    "tests/upstream_e2e": (0, 0),
}
"""By package: the most vague bindings, and the most functions that are named by one bare participle."""


def binding(node: ast.AST) -> str | None:
    """The name of the parameter or local variable that this binds, if any."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else None
    if isinstance(node, ast.arg):
        return node.arg
    return node.name if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) else None


def is_participle(function: str) -> bool:
    name = function.strip("_")
    return name in IRREGULAR or ("_" not in name and name.endswith("ed") and name not in VERBS_IN_ED)


def folder_of(package: str) -> Path:
    return ROOT / package if package.startswith(("tests", "benchmarks")) else PACKAGE / package


def has_either(text: str) -> bool:
    """Return False if parsing the text would find neither, as in most files: parsing takes several times as long."""
    return not VAGUE.isdisjoint(identifiers(text)) or any(map(is_participle, _FUNCTION.findall(text)))


def trees(package: str) -> Iterator[ast.AST]:
    folder = folder_of(package)
    for path in sorted(folder.glob("*.py") if package in ("", "tests") else folder.rglob("*.py")):
        if has_either(text := path.read_text()):
            yield ast.parse(text)


@cache
def names_of(package: str) -> tuple[Counter[str], Counter[str]]:
    """The vague bindings, and the functions that are named by a participle."""
    vague, bare = Counter[str](), Counter[str]()
    for tree in trees(package):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                bare[node.name] += is_participle(node.name)
            elif (name := binding(node)) in VAGUE:
                vague[str(name)] += 1
    return vague, +bare


def vague_names(package: str) -> Counter[str]:
    return names_of(package)[0]


def participles(package: str) -> Counter[str]:
    return names_of(package)[1]


def packages() -> list[str]:
    """The packages of podium by name, "" for its own modules; those of tests and benchmarks by their path."""
    of_tests = {path.relative_to(ROOT).parts[1] for path in (ROOT / "tests").glob("*/**/*.py")}
    return [
        "",
        *sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()),
        "benchmarks",
        "tests",
        *sorted(f"tests/{name}" for name in of_tests),
    ]


@pytest.mark.parametrize("package", packages(), ids=lambda package: package or "podium")
def test_names_are_nouns_and_functions_verbs(package: str) -> None:
    vague, bare = vague_names(package), participles(package)
    vague_max, bare_max = CEILINGS[package]
    assert vague.total() <= vague_max, vague
    assert bare.total() <= bare_max, bare

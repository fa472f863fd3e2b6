"""Habits of the source that no linter holds: sizes, one logger, and words of the field."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.unit.python_text import comments_and_code

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "podium"
SOURCES = sorted(PACKAGE.rglob("*.py"))

LINES_MAX = 500
BODY_LINES_MAX = 60
RETIRED = (
    "Doors|Judge|Judged|PodClass|ClassCache|KeptFilters|KeptScores|Promises|Survey|Sees|Newcomer|CarriedTerms|Footprint|"
    "Collaborators|StillCluster|QuietHandle|StillHandle|WhatIf\\w*|Worded|words_of|gone_astray|doors|take_doors|"
    "PreemptionsUnderWay|RoomTaken|as_far_as_readable|WholePod|WholeNode|kept_whole|Gatekeeper|OnceOnly|holds_a_place|"
    "misjudged|unheeded|newcomer|CarriedTerm|is_meant_by|Doubts|Witnesses|StandInRoom|ReducedRoom|ClusterRoom|"
    "LoopDependencies|SilentObserver|WriteObserver|LoopObserver|ListenError|TlsError"
)
"""Names that had to be learnt; docs/glossary.md says what they are called now."""
PHRASES = "gone astray|is none of|of ours|tells? of each|told of each"

COMMENTS_MIN = {
    "binder": 2.3,
    "cel": 2.4,
    "cli": 1.8,
    "client": 2.1,
    "cluster": 2.3,
    "config": 2.0,
    "daemon": 1.9,
    "devices": 2.5,
    "engine": 3.0,
    "estimator": 2.0,
    "fleets": 1.5,
    "framework": 1.8,
    "insight": 3.0,
    "lib": 1.5,
    "library": 1.0,
    "objects": 1.5,
    "plugins": 1.4,
    "provisioner": 4.3,
    "queues": 2.0,
    "recording": 2.7,
    "sandbox": 1.6,
    "server": 2.5,
    "shards": 1.0,
    "telemetry": 1.6,
    "testing": 2.5,
}
"""Lines of comments for 100 lines of code, at least, by package: comments say why. These may only be raised."""
DIRECTIVES = ("# type:", "# noqa", "# ruff", "# fmt")

TESTS = ROOT / "tests"
MIRRORED_FROM = 40
"""A module whose functions have this many statements or more is tested by a file of its own name."""
TESTED_ELSEWHERE = {
    # Steps of one thing, which is tested as a whole.
    "binder/plugin_calls": "unit/binder/test_binding_cycle",
    "cel/planner": "unit/cel/test_operators",
    "cel/regex/program": "unit/cel/regex/test_matching",
    "cel/regex/syntax": "unit/cel/regex/test_matching",
    "cli/planning": "unit/cli/test_plan",
    "cli/shards": "integration/cli/test_shards_command",
    "cli/fleet_source": "unit/cli/test_clusters",
    "framework/cycle/nominated_pods": "unit/queues/test_nominator",
    "plugins/dynamic_resources/pod_devices": "unit/plugins/dynamic_resources/test_plugin",
    "provisioner/cloudprovider/aws_catalogue": "unit/provisioner/cloudprovider/test_imports",
    "provisioner/cloudprovider/dialect_labels": "unit/provisioner/cloudprovider/test_imports",
    "provisioner/planners/local_storage": "unit/provisioner/planners/test_new_node_labels",
    "provisioner/provisioning/unknown_labels": "unit/cli/test_unknown_labels",
    "engine/group_cycle": "unit/engine/test_pod_group_cycle",
    "client/history_check": "unit/client/test_history",
    "client/kubeconfig": "unit/client/test_credentials",
    "daemon/decisions": "unit/daemon/test_loop",
    "daemon/failures": "unit/daemon/test_loop",
    "daemon/pod_handler": "unit/daemon/test_handlers",
    "daemon/scheduler": "unit/daemon/test_app",
    "daemon/shards/member": "simulation/test_shards",
    "daemon/shards/placements": "simulation/test_shards",
    "plugins/shared/shard_state": "unit/plugins/test_shards",
    "engine/cluster_objects": "unit/engine/test_cluster",
    "engine/cluster_state": "unit/engine/test_cluster",
    "engine/explanation": "unit/insight/test_why",
    "engine/flight_recorder/ring": "unit/engine/flight_recorder/test_recorder",
    "engine/flight_recorder/segment": "unit/engine/flight_recorder/test_recorder",
    "engine/replicas": "unit/estimator/test_accurate",
    "estimator/answers": "unit/cli/test_estimate",
    "estimator/division/fleet": "unit/cli/test_divide",
    "estimator/division/questions": "unit/cli/test_divide",
    "estimator/manifests": "unit/cli/test_estimate",
    "estimator/free_capacity": "unit/estimator/test_component_sets",
    "fleets/search": "unit/fleets/test_ordering",
    "fleets/server/app": "integration/fleets/test_served",
    "fleets/server/fleet": "unit/fleets/server/test_watched",
    "fleets/server/service": "integration/fleets/test_served",
    "framework/cycle/filter_chain": "unit/framework/cycle/test_search",
    "framework/cycle/post_filter": "unit/framework/cycle/test_schedule",
    "framework/cycle/pre_filter": "unit/framework/cycle/test_search",
    "framework/profile/rejection": "unit/framework/cycle/test_diagnosis",
    "framework/profile/cached_answers": "unit/framework/profile/test_signature_cache",
    "framework/profile/pod_signature": "unit/framework/profile/test_signature_cache",
    "insight/room/model": "unit/insight/room/test_make_room",
    "insight/room/plan": "unit/insight/room/test_make_room",
    "insight/room/reachable": "unit/insight/room/test_make_room",
    "insight/room/rehearsal": "unit/insight/room/test_make_room",
    "insight/room/search": "unit/insight/room/test_make_room",
    "cli/room_table": "unit/cli/test_make_room",
    "engine/gangs": "unit/insight/test_gangs",
    "insight/blockers": "unit/insight/test_why",
    "insight/evictions": "unit/insight/test_fixes",
    "insight/forecast": "unit/insight/test_outlook",
    "insight/possible_nodes": "unit/insight/test_outlook",
    "insight/waiting_pods": "unit/insight/test_outlook",
    "insight/node_edits": "unit/insight/test_fixes",
    "insight/pod_edits": "unit/insight/test_fixes",
    "insight/search": "unit/insight/test_fixes",
    "insight/smallest_edits": "unit/insight/test_fixes",
    "insight/steps": "unit/insight/test_what_if",
    "provisioner/planners/gang_placement": "unit/provisioner/planners/test_gang_purchases",
    "provisioner/planners/node_options": "unit/provisioner/planners/test_placed_plans",
    "plugins/contrib/load_columns": "unit/plugins/contrib/test_node_load",
    "plugins/contrib/node_resource_topology_match/fit": "unit/plugins/contrib/node_resource_topology_match/test_plugin",
    "plugins/contrib/coscheduling/gangs": "unit/plugins/contrib/coscheduling/test_plugin",
    "plugins/contrib/topology_levels/domains": "unit/plugins/contrib/topology_levels/test_plugin",
    "plugins/dynamic_resources/binding_conditions": "unit/plugins/dynamic_resources/test_claim_writer",
    "plugins/dynamic_resources/node_search": "unit/plugins/dynamic_resources/test_plugin",
    "plugins/inter_pod_affinity/counts": "unit/plugins/inter_pod_affinity/test_plugin",
    "plugins/pod_topology_spread/constraints": "unit/plugins/pod_topology_spread/test_plugin",
    "plugins/pod_topology_spread/counts": "unit/plugins/pod_topology_spread/test_plugin",
    "plugins/volumes/attachments": "unit/plugins/test_node_volume_limits",
    "plugins/volumes/matching": "unit/plugins/volumes/test_binding",
    "plugins/volumes/pod_claims": "unit/plugins/test_volume_binding",
    "plugins/volumes/provisioning": "unit/plugins/test_volume_binding",
    "provisioner/controller/providers/removal": "integration/provisioner/controller/test_attacked",
    "provisioner/planners/placement_trial": "unit/provisioner/planners/test_placed_plans",
    "provisioner/controller/watched": "unit/provisioner/controller/test_provisioning",
    "queues/requeuing": "unit/queues/test_scheduling_queue",
    "recording/counterfactual": "simulation/test_counterfactual",
    "recording/replay_inputs": "simulation/test_recordings",
    "recording/simulated_api": "simulation/test_counterfactual",
    "recording/replay": "simulation/test_recordings",
    "recording/shadow/plausible_states": "unit/recording/shadow/test_shadow",
    "sandbox/controllers/job_failures": "unit/sandbox/controllers/test_jobs",
    "sandbox/controllers/ownership": "unit/sandbox/controllers/test_controllers",
    "sandbox/defaults": "unit/sandbox/test_store",
    "testing/contract_checks": "unit/testing/test_contract",
    "cli/asking": "unit/cli/test_why",
    # Nothing but output, read from what a command prints.
    "cli/demo/autoscale": "integration/cli/test_demo",
    "cli/capacity_table": "unit/cli/test_capacity",
    "cli/mcp_tools": "integration/cli/test_mcp",
    "cli/evaluate_table": "unit/cli/test_evaluate",
    "cli/plan_table": "unit/cli/test_plan",
    "cli/why_table": "unit/cli/test_why",
    "daemon/cache_dump": "e2e/test_cache_dump",
    # I/O, which only a peer can answer.
    "binder/extenders/client": "integration/binder/test_extenders",
    "binder/extenders/pool": "integration/binder/test_extenders",
    "client/http_connection": "integration/client/test_connections",
    "client/reflector": "integration/client/test_informer",
    "estimator/server/app": "integration/estimator/server/test_service",
    "estimator/server/folder": "integration/estimator/server/test_live",
    "lib/inbound": "integration/server/serving/test_hostile_clients",
    "sandbox/discovery": "integration/sandbox/test_kubectl",
    "sandbox/kubelets": "integration/sandbox/test_embedded",
    "sandbox/paging": "integration/sandbox/test_objects",
    "sandbox/pods": "integration/sandbox/test_objects",
    "sandbox/presentation": "integration/sandbox/test_objects",
    "server/serving/tls": "integration/server/serving/test_access",
}
"""Modules without a test file of their own name, and the file that tests each."""


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_no_file_is_too_long_to_be_read_at_once() -> None:
    assert {str(path.relative_to(ROOT)): count for path in SOURCES if (count := len(lines_of(path))) > LINES_MAX} == {}


def lines_of_body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Without the signature and the docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return 0 if not body else (function.end_lineno or 0) - body[0].lineno + 1


def statements_of(node: ast.AST) -> Iterator[ast.stmt]:
    """Every statement below the node. Expressions, of which there are many more, are left out."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for part in getattr(node, block, ()):
            if isinstance(part, ast.stmt):
                yield part
            yield from statements_of(part)


@dataclass(frozen=True)
class Source:
    """What the tests ask about a module.

    Attributes:
        functions: their names, and the lines of their bodies.
        statement_count: those of functions, without docstrings.
        code_count: lines of code, which docstrings are not.
        array_functions: the public functions that return arrays: full name, name, whether their shape is said.
    """

    functions: list[tuple[str, int]]
    statement_count: int
    comment_count: int
    code_count: int
    array_functions: list[tuple[str, str, bool]]


@cache
def source_of(path: Path) -> Source:
    """Read a module once for all tests: parsing all of podium takes most of their time."""
    text = path.read_text()
    tree = ast.parse(text)
    statements = list(statements_of(tree))
    functions = [statement for statement in statements if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)]
    statements_of_functions = {statement for function in functions for statement in statements_of(function)}
    documentation = {
        number
        for statement in statements
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if isinstance(statement.value.value, str)
        for number in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    }
    comments, code = comments_and_code(text)
    return Source(
        functions=[(function.name, lines_of_body(function)) for function in functions],
        statement_count=sum(
            not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
            for statement in statements_of_functions
        ),
        comment_count=sum(not comment.startswith(DIRECTIVES) for comment in comments),
        code_count=len(code - documentation),
        array_functions=list(functions_with_arrays(tree)),
    )


def test_no_function_is_too_long_to_be_read_at_once() -> None:
    too_long = {
        f"{path.relative_to(ROOT)}: {name}": count
        for path in SOURCES
        for name, count in source_of(path).functions
        if count > BODY_LINES_MAX
    }
    assert too_long == {}


def test_comments_say_why() -> None:
    packages = {path.name: path for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert packages.keys() == COMMENTS_MIN.keys()
    scarce = {}
    for name, least in COMMENTS_MIN.items():
        sources = [source_of(path) for path in packages[name].rglob("*.py")]
        comments, code = sum(source.comment_count for source in sources), sum(source.code_count for source in sources)
        if 100 * comments < least * code:
            scarce[name] = f"{100 * comments / code:.2f} of {least}"
    assert scarce == {}


def test_every_package_says_what_it_owns() -> None:
    silent = [path.parent.name for path in SOURCES if path.name == "__init__.py" and len(path.read_text()) < 40]
    assert silent == []


def has_tests_of_its_name(module: Path) -> bool:
    where = module.parent / f"test_{module.name}.py"
    return any((TESTS / kind / where).exists() for kind in ("unit", "integration", "properties"))


def test_every_module_has_its_tests_in_a_place_one_can_guess() -> None:
    """`tests/unit/<folder>/test_<module>.py`, or in `integration` or `properties`; `TESTED_ELSEWHERE` has others."""
    alone = {
        str(module)
        for path in SOURCES
        if not path.name.startswith("__") and source_of(path).statement_count >= MIRRORED_FROM
        if not has_tests_of_its_name(module := path.relative_to(PACKAGE).with_suffix(""))
    }
    assert alone == TESTED_ELSEWHERE.keys()
    assert {place for place in TESTED_ELSEWHERE.values() if not (TESTS / f"{place}.py").exists()} == set()


def test_there_is_one_way_to_get_a_logger() -> None:
    logger_modules = {PACKAGE / "lib" / "log.py", *(PACKAGE / "telemetry").glob("*.py")}
    other_modules = [
        path.name for path in SOURCES if path not in logger_modules and "structlog.get_logger" in path.read_text()
    ]
    assert other_modules == []


@pytest.mark.parametrize("words", [RETIRED, PHRASES], ids=["names", "phrases"])
def test_retired_words_do_not_come_back(words: str) -> None:
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in SOURCES
        for number, line in enumerate(lines_of(path), start=1)
        if re.search(rf"\b(?:{words})\b", line)
    ]
    assert lines == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Nor for type checking alone."""
    graph = grimp.build_graph("podium", cache_dir=None)
    # A node's view reads the snapshot that hands it out. The library is looked up when it is first named.
    for importer, imported in (
        ("podium.cluster.node_info", "podium.cluster.snapshot"),
        ("podium", "podium.engine"),
        ("podium", "podium.library"),
    ):
        graph.remove_import(importer=importer, imported=imported)
    TopologicalSorter({module: graph.find_modules_directly_imported_by(module) for module in graph.modules}).prepare()


ARRAYS = re.compile(r"\b(?:IntArray|BoolArray|Rows|NDArray)\b")
CONTRACT = sorted((PACKAGE / "framework" / "contract").glob("*.py"))
"""Methods that implement those of a protocol or of the plugin contract need not repeat what the declaration says."""


def functions_with_arrays(module: ast.Module) -> Iterator[tuple[str, str, bool]]:
    """The public functions that return arrays: full name, name, whether their docstring or class says the shape."""

    def visit(body: list[ast.stmt], prefix: str, is_said: bool) -> Iterator[tuple[str, str, bool]]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.startswith("_"):
                continue
            if isinstance(node, ast.ClassDef):
                yield from visit(node.body, f"{node.name}.", "Shape:" in (ast.get_docstring(node) or ""))
            elif isinstance(node, ast.FunctionDef) and node.returns and ARRAYS.search(ast.unparse(node.returns)):
                yield prefix + node.name, node.name, is_said or "Shape:" in (ast.get_docstring(node) or "")

    return visit(module.body, "", False)


def test_functions_that_return_arrays_say_their_shape() -> None:
    contract = {name for path in CONTRACT for _, name, is_said in source_of(path).array_functions if is_said}
    silent = []
    for path in SOURCES:
        if path.relative_to(PACKAGE).parts[0] in ("cluster", "framework", "plugins"):
            functions = source_of(path).array_functions
            declared = contract | {name for _, name, is_said in functions if is_said}
            silent += [f"{path.relative_to(ROOT)}: {text}" for text, name, _ in functions if name not in declared]
    assert silent == []

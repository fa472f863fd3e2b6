"""Proves that each difference between 1.36 and 1.37 is tested: puts 1.36's value of one switch into the newest release.

`python -m tests.release_mutants` makes one mutant for each switch of `podium.config.releases` whose values differ, runs
the tests that concern it, and prints the switches for which none of them fails; `--switch devices` tries those whose
name begins so. Each mutant has a process of its own, a copy of one that has loaded nothing of podium.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Final

import click
import pytest

ROOT: Final = Path(__file__).parents[1]
_MODULE: Final = "podium.config.releases"
_ORDER: Final = "order"
_RECORDED: Final = ("tests/parity/test_recorded.py",)
_ASKED_OF_UPSTREAM: Final = ("events", "devices", "preemption", "counts", "needs", "lists", "sums")
"""Switches that the recorded answers of upstream's own code show."""
_GATES: Final = (
    "tests/unit/config/test_releases.py",
    "tests/unit/config/test_feature_gates.py",
    "tests/unit/config/test_emulation.py",
)
TESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "gates": _GATES,
    "gate_needs": _GATES,
    "plugins": (
        "tests/unit/config/test_effective.py",
        "tests/unit/config/test_expansion.py",
        "tests/unit/config/test_extension_points.py",
        "tests/parity/test_config.py",
    ),
    "absent_points": ("tests/unit/config/test_loader.py",),
    "events": ("tests/unit/plugins/test_event_table.py", "tests/unit/queues", "tests/unit/daemon/test_handlers.py"),
    "events.match_any": ("tests/unit/plugins/inter_pod_affinity",),
    "queue": (
        "tests/unit/queues/test_flush_timers.py",
        "tests/unit/queues/test_scheduling_queue.py",
        "tests/unit/queues/test_nominator.py",
        "tests/unit/queues/test_pod_groups.py",
        "tests/unit/config/test_feature_gates.py",
    ),
    "devices": ("tests/unit/devices", "tests/unit/plugins/dynamic_resources"),
    "devices.wake": ("tests/unit/plugins/test_event_table.py",),
    "devices.selectors": ("tests/unit/cel/test_rules.py", "tests/unit/devices/test_selectors.py", "tests/unit/cel"),
    "paths": ("tests/unit/daemon/test_permissions.py", "tests/unit/binder"),
    "preemption": (
        "tests/unit/framework/preemption/test_candidates.py",
        "tests/unit/plugins/test_default_preemption.py",
        "tests/unit/binder/test_preemption.py",
    ),
    "hidden_metrics": ("tests/unit/telemetry/test_metrics.py",),
    "deprecated_metrics": ("tests/unit/telemetry/test_metrics.py",),
    "counts_image_volumes": ("tests/unit/plugins/test_image_locality.py",),
    "needs_bind_mount_options": ("tests/unit/plugins/test_node_declared_features.py",),
    "lists_namespaces": ("tests/unit/plugins/inter_pod_affinity",),
    "sums_resized_pods": ("tests/unit/cluster", "tests/unit/objects"),
    "needs_installed_drivers": ("tests/unit/plugins/test_node_volume_limits.py",),
}
"""The tests that are run for a switch: those of the longest prefix of its name."""


# ------------------------------------------------------------ the switches


def switches(old: Any, new: Any, prefix: str = "") -> Iterator[str]:
    """Yield the names of all parts that differ, as `events.own_pod` or `gates[GenericWorkload]`."""
    for item in fields(new):
        old_value, new_value, name = getattr(old, item.name), getattr(new, item.name), prefix + item.name
        if not item.init or item.name == "minor":
            continue
        if is_dataclass(new_value):
            yield from switches(old_value, new_value, f"{name}.")
        elif isinstance(new_value, Mapping):
            yield from (
                f"{name}[{key}]" for key in sorted({*old_value, *new_value}) if old_value.get(key) != new_value.get(key)
            )
            if [key for key in old_value if key in new_value] != [key for key in new_value if key in old_value]:
                yield f"{name}[{_ORDER}]"
        elif isinstance(new_value, frozenset):
            yield from (f"{name}[{key}]" for key in sorted(map(str, old_value ^ new_value)))
        elif old_value != new_value:
            yield name


def mutant(old: Any, new: Any, switch: str) -> Any:
    """Return the newer release with the older one's value of one switch."""
    name, dot, remainder = switch.partition(".")
    if dot and "[" not in name:
        return replace(new, **{name: mutant(getattr(old, name), getattr(new, name), remainder)})
    name, bracket, remainder = switch.partition("[")
    old_value, new_value, key = getattr(old, name), getattr(new, name), remainder.removesuffix("]")
    if not bracket:
        return replace(new, **{name: old_value})
    if isinstance(new_value, frozenset):
        return replace(new, **{name: new_value ^ {element for element in old_value ^ new_value if str(element) == key}})
    mapping = dict(new_value)
    if key == _ORDER:
        mapping = {plugin: new_value[plugin] for plugin in old_value if plugin in new_value}
    elif key in old_value:
        mapping[key] = old_value[key]
    else:
        del mapping[key]
    return replace(new, **{name: MappingProxyType(mapping)})


# ------------------------------------------------------------ in the process of a mutant


class _Finder(importlib.abc.MetaPathFinder):
    """Has the module of releases changed right after it has run, before another module takes values from it."""

    def __init__(self, switch: str) -> None:
        self._switch = switch

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target) if fullname == _MODULE else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            old, newest = list(module.RELEASES.values())[-2:]
            mutated = mutant(old, newest, self._switch)
            vars(module).update(NEWEST=mutated, RELEASES={**module.RELEASES, newest.minor: mutated})

        spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


class _FirstFailure:
    """A plugin of pytest that notes which test fails first."""

    def __init__(self) -> None:
        self.test: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.test is None:
            self.test = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and self.test is None:
            self.test = f"{report.nodeid} (does not load)"


def _try(switch: str, paths: Sequence[str], answers: Connection) -> None:
    """Run tests against the mutant, in a process of its own that has loaded nothing of podium."""
    sys.meta_path.insert(0, _Finder(switch))
    failure = _FirstFailure()
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        pytest.main(["-x", "-n", "0", "--assert=plain", "-p", "no:cacheprovider", *paths], plugins=[failure])
    answers.send(failure.test)


# ------------------------------------------------------------ the runs


def tests_for(switch: str) -> tuple[str, ...]:
    """Return the files and folders of tests that concern the switch."""
    return TESTS[max((prefix for prefix in TESTS if switch.startswith(prefix)), key=len)]


def killer(switch: str) -> str | None:
    """Run the tests that concern the switch against its mutant; return the first that fails, None if none does."""
    test = _answer(_try, switch, tests_for(switch))
    return test if test is not None or not switch.startswith(_ASKED_OF_UPSTREAM) else _answer(_try, switch, _RECORDED)


def _answer(work: Callable[..., None], *arguments: Any) -> Any:
    """Return what the work sends from a process of its own, which is a copy of this one."""
    processes = multiprocessing.get_context("fork")
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(target=work, args=(*arguments, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return "the process ended early"
    finally:
        process.join()


def _list_switches(answers: Connection) -> None:
    from podium.config import RELEASES

    answers.send(list(switches(*list(RELEASES.values())[-2:])))


@click.command()
@click.option("--switch", "prefixes", multiple=True, help="Only those whose name begins so.")
def main(prefixes: tuple[str, ...]) -> None:
    """Try the mutants, and exit with 1 if one of them lives."""
    os.chdir(ROOT)
    # Each mutant's process begins with them.
    for name in ("aiohttp", "hypothesis", "numpy", "prometheus_client", "structlog", "yaml", "cryptography.x509"):
        importlib.import_module(name)
    survivors = []
    for switch in _answer(_list_switches):
        if switch.startswith(prefixes or ""):
            started_s = time.monotonic()
            test = killer(switch)
            click.echo(f"{switch}: {test or 'NO TEST FAILS'} ({time.monotonic() - started_s:.0f} s)")
            if test is None:
                survivors.append(switch)
    click.echo(f"{len(survivors)} without a test: {', '.join(survivors)}")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()

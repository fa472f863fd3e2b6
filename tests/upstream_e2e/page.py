"""The page of the documentation that shows the results of upstream's end-to-end specs, scheduler by scheduler."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from tests.control_plane import catalogue
from tests.upstream_e2e.suite import Results

_LABELS: Final = re.compile(r"\[[^]]*\] ?")


def page_text(by_scheduler: Mapping[str, Results]) -> str:
    """Return the page, in Markdown."""
    states = {
        scheduler: {spec.name: spec.state for spec in suite_results.specs}
        for scheduler, suite_results in by_scheduler.items()
    }
    names = sorted({name for state_by_name in states.values() for name in state_by_name}, key=_name_without_labels)
    kubelet_count = max(len(suite_results.for_kubelets) for suite_results in by_scheduler.values())
    options = " ".join(f"--scheduler {scheduler}" for scheduler in by_scheduler)
    lines = [
        "# Upstream's end-to-end tests, run against podium",
        "",
        "Kubernetes tests itself with end-to-end specs. Those of scheduling, of workloads and pod groups, and those of",
        "device claims that need no kubelet, run with podium in the place of kube-scheduler, under the name",
        "`default-scheduler`, and with kube-scheduler itself, on the real kube-apiserver and kube-controller-manager",
        f"{catalogue.kubernetes_version()} with stand-in kubelets. This page is written by",
        f"`python -m tests.upstream_e2e {options} --page docs/upstream-e2e.md`.",
        "",
        *(f"- {scheduler}: {counts_text(suite_results)}." for scheduler, suite_results in by_scheduler.items()),
        "",
        f"{kubelet_count} more specs of device claims are not run: they need a kubelet that prepares devices and",
        "starts containers, whose output they read. Those of compatibility groups of devices are not run either, since",
        "podium refuses the alpha gate `DRADeviceCompatibilityGroups`. Those of objects alone (CRUD, slices,",
        "pool status, permissions) do not depend on the scheduler, and are counted all the same.",
        "",
        f"| spec | {' | '.join(by_scheduler)} |",
        f"|---|{'---|' * len(by_scheduler)}",
        *(
            f"| {_name_without_labels(name)} | {' | '.join(state.get(name, '') for state in states.values())} |"
            for name in names
        ),
    ]
    return "\n".join(lines) + "\n"


def counts_text(suite_results: Results) -> str:
    """Return how many specs ran, and how they ended."""
    counts = Counter(spec.state for spec in suite_results.specs)
    return f"{len(suite_results.specs)} specs: " + ", ".join(
        f"{count} {state}" for state, count in sorted(counts.items())
    )


def _name_without_labels(name: str) -> str:
    return _LABELS.sub("", name).strip()

"""Queries on scraped metrics, answered by Prometheus' own engine in `promtool test rules`, without a server."""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.monitoring.files import jobs_with, metrics_of

_STEPS: Final = 6
_ANSWER: Final = re.compile(
    r'expr: "((?:[^"\\]|\\.)*)", time: \w+,\s*exp: ?(.*?)\s*got: ?(.*?)(?=\n\s*expr: |\Z)', re.DOTALL
)

Samples = dict[str, float]


@dataclass(frozen=True, slots=True)
class Scrapes:
    """The text that each job served at /metrics at first, and later."""

    first: Mapping[str, str]
    later: Mapping[str, str]


def missing_series(scrapes: Scrapes, names: Iterable[str]) -> list[str]:
    """The jobs and metrics that were not served later."""
    series_served = {
        job: {series.partition("{")[0] for series in _samples(job, text)} for job, text in scrapes.later.items()
    }
    return sorted(
        f"{job} {name}" for name in names for job in jobs_with([name], series_served) if name not in series_served[job]
    )


def without_data(promtool: Path, folder: Path, scrapes: Scrapes, queries: Sequence[str]) -> list[str]:
    """The queries that give no number, and the jobs for which they do not."""
    file = folder / "queries.yaml"
    tests = [{"expr": query, "eval_time": f"{_STEPS - 1}m", "exp_samples": []} for query in queries]
    names = {name for query in queries for name in metrics_of(query)}
    test = {"interval": "1m", "input_series": list(_input(scrapes, names)), "promql_expr_test": tests}
    file.write_text(yaml.safe_dump({"rule_files": [], "evaluation_interval": "1m", "tests": [test]}))
    result = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    # No samples are expected, so every query that gives some is told with what it gives.
    answers = {json.loads(f'"{query}"'): answer for query, _, answer in _ANSWER.findall(result.stderr + result.stdout)}
    return [
        f"{job}: {query}"
        for query in queries
        for job in jobs_with(metrics_of(query), scrapes.later)
        if not _has_number(answers.get(query, ""), job)
    ]


def _has_number(answer: str, job: str) -> bool:
    return any(f'job="{job}"' in line and not line.rstrip(",").endswith("NaN") for line in answer.splitlines())


def _input(scrapes: Scrapes, names: set[str]) -> Iterator[dict[str, Any]]:
    """The series between the two scrapes, as if they had grown evenly."""
    for job, text in scrapes.later.items():
        first = _samples(job, scrapes.first[job])
        for series, last in _samples(job, text).items():
            if series.partition("{")[0] in names and not math.isnan(last):
                start = first.get(series, 0.0)
                values = [start + (last - start) * step / (_STEPS - 1) for step in range(_STEPS)]
                yield {"series": series, "values": " ".join(map(repr, values))}


def _samples(job: str, text: str) -> Samples:
    samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {**sample.labels, "job": job, "instance": f"{job}:10259"}
            inner = ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items())
            samples[f"{sample.name}{{{inner}}}"] = sample.value
    return samples

"""300 configuration files against what the kube-scheduler 1.36.2 binary made of each."""

import gzip
import json
from pathlib import Path

import pytest

from tests.parity.configured import Verdict, differences

FILES = Path(__file__).parent / "data" / "config-1.36.2.jsonl.gz"


def _cases():
    with gzip.open(FILES, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


CASES = _cases()


def test_there_are_three_hundred_files_of_both_kinds():
    assert len(CASES) == 300
    assert {case["ok"] for case in CASES} == {True, False}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_file_has_upstreams_effective_configuration_or_is_refused_for_every_field_that_upstream_names(case):
    verdict = Verdict(case["effective"] if case["ok"] else None, case["error"])
    assert list(differences(verdict, case["yaml"], "1.36")) == []


def test_a_verdict_of_another_kind_and_an_unnamed_field_are_noticed():
    accepted = next(case for case in CASES if case["ok"])
    refused_case = next(case for case in CASES if not case["ok"] and "burst: Invalid" in case["error"])
    assert list(differences(Verdict(None, "no"), accepted["yaml"], "1.36")) == ["expected an error: no"]
    (difference,) = differences(Verdict(accepted["effective"]), refused_case["yaml"])
    assert difference.startswith("expected no error, got ")
    changed_verdict = Verdict({**accepted["effective"], "parallelism": 17})
    assert list(differences(changed_verdict, accepted["yaml"], "1.36")) == ["parallelism: expected 17, got 16"]
    (difference,) = differences(Verdict(None, "parallelism: Invalid value: 0"), refused_case["yaml"])
    assert difference.startswith("expected an error that names 'parallelism', got ")

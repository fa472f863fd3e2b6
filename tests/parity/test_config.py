"""300 configuration files against what the kube-scheduler 1.36.2 binary made of each."""

import copy
import gzip
import json
import re
from pathlib import Path

import pytest

from podium.config import ConfigError, effective, load

FILES = Path(__file__).parent / "data" / "config-1.36.2.jsonl.gz"

_KINDS = "Invalid value|Required value|Duplicate value|Unsupported value|Forbidden"
_FIELD = re.compile(rf"([A-Za-z][\w.]*(?:\[[^\]]*\][\w.]*)*): (?:{_KINDS})")
_UNKNOWN_FIELD = re.compile(r'^strict decoding error: unknown field "([^"]+)"')
_UNREADABLE = re.compile(r"yaml: line \d+: (.+)")
_ARGS = re.compile(r"decoding \.(profiles\[\d+\]\.pluginConfig\[\d+\])")


def _cases():
    with gzip.open(FILES, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


CASES = _cases()


def _paths_named_by_upstream(error):
    return {*_FIELD.findall(error), *_UNKNOWN_FIELD.findall(error), *_ARGS.findall(error)}


def _without_kubeconfig(config):
    config = copy.deepcopy(config)
    config["clientConnection"]["kubeconfig"] = ""
    return config


def test_there_are_three_hundred_files_of_both_kinds():
    assert len(CASES) == 300
    assert {case["ok"] for case in CASES} == {True, False}


@pytest.mark.parametrize("case", [case for case in CASES if case["ok"]], ids=lambda case: case["id"])
def test_accepted_file_has_upstreams_effective_configuration(case):
    loaded = load(case["yaml"])
    assert _without_kubeconfig(effective(loaded.config)) == case["effective"]


@pytest.mark.parametrize("case", [case for case in CASES if not case["ok"]], ids=lambda case: case["id"])
def test_refused_file_is_refused_for_every_field_that_upstream_names(case):
    with pytest.raises(ConfigError) as refused:
        load(case["yaml"])
    text = "\n".join(error.text for error in refused.value.errors)
    assert [path for path in _paths_named_by_upstream(case["error"]) if path not in text] == [], text
    assert [problem for problem in _UNREADABLE.findall(case["error"]) if problem not in text] == [], text
    named = set(_FIELD.findall(text))
    assert [path for path in _FIELD.findall(case["error"]) if path not in named] == [], text

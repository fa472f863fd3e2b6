"""What kube-scheduler made of a configuration file, beside what podium makes of it."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from podium.config import NEWEST, RELEASES, ConfigError, default_gates, effective, load
from tests.parity import recorded

_KINDS = "Invalid value|Required value|Duplicate value|Unsupported value|Forbidden"
_FIELD = re.compile(rf"([A-Za-z][\w.]*(?:\[[^\]]*\][\w.]*)*): (?:{_KINDS})")
_UNKNOWN_FIELD = re.compile(r'^strict decoding error: unknown field "([^"]+)"')
_UNREADABLE = re.compile(r"yaml: line \d+: (.+)")
_ARGS = re.compile(r"decoding \.(profiles\[\d+\]\.pluginConfig\[\d+\])")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of upstream: the effective configuration, or none and why the file is refused."""

    effective: dict[str, Any] | None
    error: str = ""


def differences(verdict: Verdict, text: str, minor: str = NEWEST.minor) -> Iterator[str]:
    """Where podium's verdict on the file is another; of refusals, in which fields are named."""
    try:
        found = effective(load(text, gates=default_gates(RELEASES[minor])).config)
    except ConfigError as error:
        named = "\n".join(each.text for each in error.errors)
        if verdict.effective is not None:
            yield f"expected no error, got {named}"
        else:
            yield from _differing_names(verdict.error, named)
        return
    if verdict.effective is None:
        yield f"expected an error: {verdict.error}"
    else:
        yield from recorded.differences(without_kubeconfig(verdict.effective), without_kubeconfig(found))


def _differing_names(expected: str, text: str) -> Iterator[str]:
    """What upstream names and podium does not. podium may name more: it does not stop at the first stage that fails."""
    anywhere = {*_UNKNOWN_FIELD.findall(expected), *_ARGS.findall(expected), *_UNREADABLE.findall(expected)}
    as_fields = {*_FIELD.findall(expected)} - {*_FIELD.findall(text)}
    for missing in sorted({each for each in anywhere if each not in text} | as_fields):
        yield f"expected an error that names {missing!r}, got {text}"


def without_kubeconfig(config: dict[str, Any]) -> dict[str, Any]:
    config = copy.deepcopy(config)
    config["clientConnection"]["kubeconfig"] = ""
    return config

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
        configuration = effective(load(text, gates=default_gates(RELEASES[minor])).config)
    except ConfigError as error:
        error_text = "\n".join(field_error.text for field_error in error.errors)
        if verdict.effective is not None:
            yield f"expected no error, got {error_text}"
        else:
            yield from _differing_names(verdict.error, error_text)
        return
    if verdict.effective is None:
        yield f"expected an error: {verdict.error}"
    else:
        yield from recorded.differences(without_kubeconfig(verdict.effective), without_kubeconfig(configuration))


def _differing_names(error_text: str, text: str) -> Iterator[str]:
    """Yield what upstream names and podium does not. podium may name more: no failing stage stops it."""
    anywhere = {*_UNKNOWN_FIELD.findall(error_text), *_ARGS.findall(error_text), *_UNREADABLE.findall(error_text)}
    as_fields = {*_FIELD.findall(error_text)} - {*_FIELD.findall(text)}
    for missing in sorted({name for name in anywhere if name not in text} | as_fields):
        yield f"expected an error that names {missing!r}, got {text}"


def without_kubeconfig(config: dict[str, Any]) -> dict[str, Any]:
    config = copy.deepcopy(config)
    config["clientConnection"]["kubeconfig"] = ""
    return config

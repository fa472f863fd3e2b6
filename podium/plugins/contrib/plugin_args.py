"""What the args of all plugins of scheduler-plugins have in common: kind and version, and the form of errors and
notes.

Owns the base of the args types. Never knows a plugin.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from typing import Final

import msgspec

API_VERSION = "kubescheduler.config.k8s.io/v1"
_SENTENCES_MAX: Final = 10


class PluginArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of args types. A type has the name of upstream's kind, and refuses another kind or version.

    Attributes:
        api_version, kind: may be left out, as in any `pluginConfig` entry.
    """

    api_version: str = API_VERSION
    kind: str = ""

    def __post_init__(self) -> None:
        """Refuse other kinds and versions, and what `problems` lists.

        Raises:
            ValueError: the reasons. podium shows them with the path of the args.
        """
        kind = type(self).__name__
        if self.kind not in ("", kind):
            raise ValueError(f"want args to be of type {kind}, got {self.kind}")
        if self.api_version != API_VERSION:
            raise ValueError(f"apiVersion {self.api_version} is no longer served; write {API_VERSION}")
        problems = list(dict.fromkeys(self.problems()))
        if problems:
            raise ValueError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

    def problems(self) -> Iterable[str]:
        """Return what is wrong with the values, in upstream's words."""
        return ()


def first_sentences(sentences: Iterable[str]) -> tuple[str, ...]:
    """Return the first few sentences, and then one that says that there are more."""
    first = tuple(islice(sentences, _SENTENCES_MAX + 1))
    return first if len(first) <= _SENTENCES_MAX else (*first[:_SENTENCES_MAX], "there is more of the kind")


def invalid(field: str, value: str | int, text: str) -> str:
    """Return the line that upstream writes about an invalid value of a field."""
    return f"{field}: Invalid value: {json.dumps(value)}: {text}"

"""Answers recorded questions about one pod of a cluster, one JSON object a line; an error becomes the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from podium.cluster import CacheError
from podium.config import ConfigError, FeatureGateError
from podium.engine.errors import ClusterError
from podium.engine.store import ObjectStore
from podium.framework.contract.status import PluginError, ScheduleError
from podium.objects.errors import FieldError

_NO_ANSWER = (ClusterError, ConfigError, FeatureGateError, PluginError, ScheduleError, CacheError, FieldError)

QuestionT = TypeVar("QuestionT", bound="RecordedQuestion")


class RecordedQuestion(msgspec.Struct):
    """The objects of a cluster, the pod in question, and optionally a configuration.

    Attributes:
        custom: the objects of CustomResourceDefinitions.
    """

    id: str | int = ""
    objects: list[Any] | None = None
    custom: list[Any] | None = None
    pod: Any = None
    config: dict[str, Any] | None = None

    def store(self) -> ObjectStore:
        """Read the objects.

        Raises:
            ManifestError: an object cannot be read.
        """
        return ObjectStore.of(item for item in (*(self.objects or ()), *(self.custom or ())) if isinstance(item, dict))


def answer_line(
    line: bytes, name: str, kind: type[QuestionT], answer: Callable[[QuestionT], dict[str, Any]]
) -> dict[str, Any]:
    """Answer the question in a line of a file. `id` comes first; if there is no answer, `error` replaces it.

    Args:
        name: what to call the question if it has no id, or cannot be read.
    """
    try:
        question = msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return {"id": name, "error": f"not a scenario: {error}"}
    except RecursionError:
        return {"id": name, "error": "not a scenario: nested too deep"}
    name = str(question.id) or name
    try:
        return {"id": name, **answer(question)}
    except _NO_ANSWER as error:
        return {"id": name, "error": str(error)}

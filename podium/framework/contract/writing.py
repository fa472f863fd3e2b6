"""Plugins whose writes change what the next pod finds, such as the allocation of devices.

Source: none: upstream's plugins write in PostFilter and Unreserve themselves, which wait for the API server.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.plugin import Plugin
from podium.objects.core import Pod
from podium.objects.resource_types import ResourceType


@dataclass(frozen=True, slots=True)
class ObjectWrite:
    """An object before and after a write; None where it does not exist."""

    resource: ResourceType[Any]
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class BindingInDoubt:
    """In the state of an attempt whose binding failed, but which the API server may still carry out."""


class BindingWriter(Plugin):
    """Writes objects before a pod is bound; these writes change what the next pod finds."""

    @abstractmethod
    def writes_before_binding(self, state: CycleState, pod: Pod, node_name: str) -> Sequence[ObjectWrite]:
        """Return the writes of PreBind, for callers without an API server.

        Raises:
            PluginError: PreBind fails.
        """


class WritingPlugin(BindingWriter):
    """Writes objects also after an attempt or a binding that failed."""

    @abstractmethod
    def writes_after_failure(self, state: CycleState, pod: Pod) -> Sequence[ObjectWrite]:
        """Return the writes of `clean_up` if no node fits, for callers without an API server."""

    @abstractmethod
    def clean_up(self, state: CycleState, pod: Pod) -> Coroutine[Any, Any, None] | None:
        """Write what PostFilter or Unreserve has left to be written; None if there is nothing.

        Called after an attempt or a binding that failed. What a bound pod needs must stay if the state has a
        `BindingInDoubt`.
        """

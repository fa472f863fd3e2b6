"""Defines a face: the debug pages, watchers and recorders that join the daemon beside scheduling, as a value.

`daemon.faces` lists podium's own; others are handed to `App`. Nothing is registered by import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from podium.client.informer import Handler
from podium.daemon.observers import Observer
from podium.daemon.scheduler import Scheduler
from podium.objects.resource_types import ResourceType
from podium.server.process import OnElection
from podium.server.serving.server import Pages
from podium.server.supervision import Tasks


@dataclass(frozen=True, slots=True)
class Face:
    """The parts that a face adds. A task runs until the end of the stop cancels it; if it fails, the process ends.

    Attributes:
        observers: hear what the scheduler's parts report, after the metrics.
        handlers: called after podium's own handler for every change of that resource, which is watched from the start.
        pages: handlers of GET requests, by path; podium authorizes each request first.
        open_pages: the same for files that hold nothing of the cluster: they need no authorization.
        tasks: run from the start, also while another replica leads.
        scheduling_tasks: run from the time when this process begins to schedule.
        on_election: called with the parts of the leader election before it begins.
    """

    observers: Sequence[Observer] = ()
    handlers: Mapping[ResourceType[Any], Handler[Any]] = field(default_factory=dict)
    pages: Pages = field(default_factory=dict)
    open_pages: Pages = field(default_factory=dict)
    tasks: Tasks = field(default_factory=dict)
    scheduling_tasks: Tasks = field(default_factory=dict)
    on_election: OnElection | None = None


MakeFace: TypeAlias = Callable[[Scheduler], Face]
"""Called once, when the scheduler is wired and before anything runs."""

"""Small lives of a podium, from a script, in virtual time, each recorded as `podium run --record` does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import anyio

from podium.cli.options.configuration import usable
from podium.daemon.app import App
from podium.daemon.face import Face
from podium.daemon.faces import FACES, stall_watch
from podium.daemon.options import Options
from podium.lib.garbage_collection import thaw
from podium.recording.hashed_names import NameHasher
from podium.recording.recorder import Recorder
from podium.recording.replay import describe_scheduler
from podium.sandbox.embedded import Sandbox
from podium.sandbox.store import Store
from tests.simulation.network import SimulatedLoop
from tests.virtual_time import START_S, LoopClock

Json: TypeAlias = dict[str, Any]
Step: TypeAlias = Callable[[Store], object]

_PAUSE_S = 2.0
"""Longer than a backoff, so that everything has come to rest when the next step comes."""


def record(
    directory: Path,
    config: Path,
    references: Sequence[str],
    objects: Sequence[Json],
    steps: Sequence[Step],
    *,
    hashes_names: bool = False,
) -> None:
    """Record a podium that finds these objects, and then sees one step after the other."""
    hasher = NameHasher.with_new_key() if hashes_names else None
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        try:
            runner.run(_live(directory, config, references, objects, steps, hasher))
        finally:
            # The daemon freezes what it finds at its start; the next life must not carry this one's objects along.
            thaw()


async def _live(
    directory: Path,
    config: Path,
    references: Sequence[str],
    objects: Sequence[Json],
    steps: Sequence[Step],
    hasher: NameHasher | None,
) -> None:
    loop, uids = asyncio.get_running_loop(), Random(0)
    good = usable(config, references)
    async with Sandbox(
        kubelets=False,
        now=lambda: datetime.fromtimestamp(START_S + loop.time(), UTC),
        new_uid=lambda: f"{uids.getrandbits(64):016x}",
    ) as sandbox:
        for item in objects:
            sandbox.store.create(item)
        options = Options(master=sandbox.url, secure_port=0, plugins=good.plugins)
        recorder = Recorder(directory, describe_scheduler(good.config, options, references=tuple(references)), hasher)
        faces = (*(face for face in FACES if face is not stall_watch), lambda _: Face(observers=(recorder,)))
        app = App(good.config, options, clock=LoopClock(), random=Random(0), faces=faces, boundary=recorder)
        start = anyio.Event()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(app.run, start.set)
                await start.wait()
                for step in steps:
                    step(sandbox.store)
                    await anyio.sleep(_PAUSE_S)
                app.stop()
        finally:
            recorder.close()


def creating(*objects: Json) -> Step:
    """A step that creates objects at once."""

    def create(store: Store) -> None:
        for item in objects:
            store.create(item)

    return create


def changing(item: Json, change: Callable[[Json], object], *, subresource: str | None = None) -> Step:
    """A step that changes an object."""
    kind, metadata = item["kind"].lower() + "s", item["metadata"]

    def change_it(store: Store) -> None:
        current = store.get(kind, metadata["name"], metadata.get("namespace", "default") if kind == "pods" else None)
        current = json.loads(json.dumps(current))
        change(current)
        store.update(current, subresource=subresource)

    return change_it


def deleting(item: Json) -> Step:
    """A step that deletes a pod at once."""
    metadata = item["metadata"]

    def delete(store: Store) -> None:
        store.delete("pods", metadata["name"], metadata.get("namespace", "default"), grace_period_s=0)

    return delete

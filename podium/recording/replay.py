"""Replays a recording: the daemon's own queue, cache, loop and engine decide again, in the recorded order and time.

Owns what is asked of a recording before, and what is told of the replay afterwards.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

import podium
from podium.config import KubeSchedulerConfiguration, PodGroupRules
from podium.config import effective as effective_configuration
from podium.daemon.options import Options
from podium.daemon.scheduler import Scheduler
from podium.framework.contract.plugin import Plugin
from podium.lib import build, garbage_collection
from podium.recording import columns, tape
from podium.recording.limits import Pace, Until
from podium.recording.played import PlayedClock
from podium.recording.player import Diverged, Outcome, Player, Scores
from podium.recording.replay_loop import ReplayLoop
from podium.recording.segments import LeftOutList, RecordingError, Segments, open_segments
from podium.recording.surroundings import scheduler_within

_NO_END: Final = Until()
_REFERENCES_SHOWN: Final = 10
WATCHED: Final = "watched"
"""What the description of a recording by `podium record` says under `kind`."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay has come to, and how long it took.

    Attributes:
        damage: why the recording was not read to its end; "" if it was.
        is_cut: whether it only lacks what had not been written when its process was killed.
        made_by: which podium made the recording and can replay it, where this one cannot; "" if it is this one.
        kept_scores: of the attempt that was asked for, by node and plugin.
        left_out: what the recording lacks.
    """

    outcome: Outcome
    wall_s: float
    damage: str = ""
    is_cut: bool = False
    made_by: str = ""
    kept_scores: Scores = field(default_factory=dict)
    left_out: LeftOutList = field(default_factory=LeftOutList)

    @property
    def virtual_s(self) -> float:
        """How long the replayed part took when it was recorded."""
        started_s = self.outcome.started_s
        return 0.0 if started_s is None else self.outcome.ended_s - started_s

    @property
    def is_same(self) -> bool:
        """Whether every decision is the recorded one."""
        return self.outcome.differing is None

    def summary(self) -> dict[str, Any]:
        """The last line of `--output json`."""
        outcome = self.outcome
        return {
            "attempts": outcome.attempts,
            "digest": outcome.digest.hexdigest(),
            "recorded_digest": outcome.recorded_digest.hexdigest(),
            "same": self.is_same,
            "virtual_s": round(self.virtual_s, 3),
            "wall_s": round(self.wall_s, 3),
        }


def is_watched(segments: Segments) -> bool:
    """Whether the recording was made beside another scheduler."""
    return segments.description.get("kind") == WATCHED


def description(
    config: KubeSchedulerConfiguration,
    options: Options,
    *,
    references: tuple[str, ...] = (),
    feature_gates: tuple[str, ...] = (),
) -> dict[str, Any]:
    """What a recording says of the scheduler that made it.

    Raises:
        RecordingError: it has extenders, whose answers are not recorded.
    """
    if config.extenders:
        raise RecordingError("a scheduler with HTTP extenders cannot be recorded: their answers are not podium's")
    groups = options.pod_groups
    return {
        "podium": podium.__version__,
        "commit": build.commit(),
        "config": effective_configuration(config),
        "plugins": list(references),
        "feature_gates": list(feature_gates),
        "options": {
            "pod_max_in_unschedulable_s": options.pod_max_in_unschedulable_s,
            "preempts_pods_of_others": options.preempts_pods_of_others,
            "avoids_conflicts": options.avoids_conflicts,
            "recorder_bytes": options.recorder_bytes,
            "pod_groups": None if groups is None else msgspec.to_builtins(groups),
        },
    }


class _RecordedOptions(msgspec.Struct, forbid_unknown_fields=True):
    """The options that a recording may set. Others name files and addresses, or have work done beside scheduling."""

    pod_max_in_unschedulable_s: float
    preempts_pods_of_others: bool
    avoids_conflicts: bool
    recorder_bytes: Annotated[int, msgspec.Meta(ge=0)]
    pod_groups: PodGroupRules | None


def recorded_options(described: Mapping[str, Any], plugins: Mapping[str, type[Plugin]]) -> Options:
    """The options of the scheduler that made a recording. Raises: RecordingError."""
    try:
        options = msgspec.convert(described["options"], _RecordedOptions)
    except (KeyError, msgspec.ValidationError) as error:
        raise RecordingError(f"the recording does not say with which options it was made: {error!r}") from None
    return Options(secure_port=0, plugins=plugins, **msgspec.structs.asdict(options))


def recorded_references(described: Mapping[str, Any]) -> tuple[str, ...]:
    """The custom plugins that a recording names, for people to read: whoever wrote it chose them.

    Raises:
        RecordingError: the description is not what podium writes.
    """
    return _recorded_texts(described, "plugins")


def recorded_gates(described: Mapping[str, Any]) -> tuple[str, ...]:
    """The feature gates that a recording was made with, as on the command line. Raises: RecordingError."""
    return _recorded_texts(described, "feature_gates")


def _recorded_texts(described: Mapping[str, Any], name: str) -> tuple[str, ...]:
    try:
        return msgspec.convert(described[name], tuple[str, ...])
    except (KeyError, msgspec.ValidationError) as error:
        raise RecordingError(f"the recording does not say with which {name} it was made: {error!r}") from None


def demand_plugins(described: Mapping[str, Any], given: Sequence[str]) -> None:
    """Refuse to go on without the custom plugins of a recording.

    A recording may come from anybody. So none of its code is loaded because it names it, but only what `--plugin` does.

    Args:
        given: the values of `--plugin`.

    Raises:
        RecordingError: the recording names plugins, and none are given.
    """
    references = recorded_references(described)
    if references and not given:
        raise RecordingError(f"the recording was made with custom plugins: {advice_on_plugins(references)}")


def advice_on_plugins(references: Sequence[str]) -> str:
    """What to pass for the plugins that a recording names."""
    passed = " ".join(f"--plugin {shlex.quote(reference)}" for reference in references[:_REFERENCES_SHOWN])
    more = f" and {len(references) - _REFERENCES_SHOWN} more" if len(references) > _REFERENCES_SHOWN else ""
    return f"podium loads no code that a recording names; if you trust these plugins, give them with {passed}{more}"


def entries_of(segments: Segments) -> Iterator[tape.Entry]:
    """The entries of a recording, up to the first damage, without objects that cannot be read."""
    return chain.from_iterable(_blocks_of(segments))


def _blocks_of(segments: Segments) -> Iterator[list[tape.Entry]]:
    for content in segments.blocks():
        try:
            yield columns.entries_of(content, segments.left_out.add)
        except ValueError as error:
            segments.damage = f"{segments.directory}: a block that is whole cannot be understood: {error}"
            return


def checked_segments(directory: Path) -> Segments:
    """A recording that this podium can replay. Raises: RecordingError."""
    segments = open_segments(directory)
    version = segments.description.get("podium")
    if version != podium.__version__:
        raise RecordingError(
            f"{directory} was recorded by podium {version}, and this is podium {podium.__version__}: "
            f"replay it with podium {version}"
        )
    return segments


def replay(
    directory: Path,
    config: KubeSchedulerConfiguration,
    plugins: Mapping[str, type[Plugin]],
    *,
    until: Until = _NO_END,
    speed: float | None = None,
    is_other: bool = False,
    keep_scores: int | None = None,
    prepare: Callable[[Scheduler], None] = lambda _: None,
) -> Replayed:
    """Replay a recording with the configuration and plugins that it was made with.

    Args:
        until: where the replay ends.
        speed: so many recorded seconds pass in one; None for as fast as it can.
        is_other: whether the configuration or the plugins are others. The replay ends at the first difference.
        keep_scores: the number of the attempt at which the replay ends, having kept its scores.
        prepare: called with the scheduler before anything runs.

    Raises:
        RecordingError: there is no recording, it cannot be read, or another version of podium is needed.
    """
    segments = checked_segments(directory)
    options = recorded_options(segments.description, plugins)
    started_s = time.perf_counter()
    player = Player(
        entries_of(segments),
        until,
        pace=Pace(speed).reach,
        is_other=is_other,
        keep_scores=keep_scores,
        has_messages=segments.description.get("names") != "hashed",
    )
    # A recording may differ before anything runs: when the scheduler is made.
    with garbage_collection.rare_collections(), asyncio.Runner(loop_factory=ReplayLoop) as runner, suppress(Diverged):
        runner.run(_play(player, config, options, prepare))
    wall_s = time.perf_counter() - started_s
    cannot = player.outcome.differing is not None or (segments.damage and not segments.is_cut)
    made_by = _other_build(segments) if cannot and not is_other else ""
    return Replayed(
        player.outcome, wall_s, segments.damage, segments.is_cut, made_by, player.kept_scores, segments.left_out
    )


def _other_build(segments: Segments) -> str:
    """Who made the recording, if it was not this very podium."""
    theirs, ours = segments.description.get("commit"), build.commit()
    if theirs == ours:
        return ""
    made, running = (f"commit {each}" if each else "an unknown commit" for each in (theirs, ours))
    return (
        f"{segments.directory} was recorded by podium {podium.__version__} of {made}, and this is podium "
        f"{podium.__version__} of {running}, which decides otherwise: replay it with the podium that recorded it"
    )


async def _play(
    player: Player, config: KubeSchedulerConfiguration, options: Options, prepare: Callable[[Scheduler], None]
) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ReplayLoop)
    scheduler = scheduler_within(player, config, options, PlayedClock(player.last_now, player.last_monotonic))
    # A step that differs fails its task; what differs is told otherwise.
    loop.set_exception_handler(lambda *_: None)
    prepare(scheduler)
    ended = loop.play(player)
    player.start(loop, scheduler.tasks)
    await ended

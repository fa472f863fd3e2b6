"""Replays a recording: the daemon's own queue, cache, loop and engine decide again, in the recorded order and time.

Owns the checks before a replay, and its result.
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
from podium.config import FIRST, RELEASES, KubeSchedulerConfiguration, PodGroupRules, Release
from podium.config import effective as effective_configuration
from podium.daemon.extenders import without_secrets
from podium.daemon.options import Options
from podium.daemon.scheduler import Scheduler
from podium.framework.contract.plugin import Plugin
from podium.lib import build, garbage_collection
from podium.recording import columns
from podium.recording.divergence import Diverged, ReplayOutcome, Scores
from podium.recording.entries import Entry
from podium.recording.replay_boundary import build_scheduler
from podium.recording.replay_inputs import ReplayInputs
from podium.recording.replay_loop import ReplayLoop
from podium.recording.replay_window import Pace, ReplayWindow
from podium.recording.segments import LeftOutList, RecordingError, Segments, open_segments

_UNLIMITED: Final = ReplayWindow()
_REFERENCES_SHOWN: Final = 10
WATCHED: Final = "watched"
"""The `kind` in the description of a recording by `podium record`."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The outcome of a replay, and how long it took.

    Attributes:
        damage: why the recording could not be read to its end; "" if it could.
        is_cut: the only damage is the missing end of a process that was killed.
        made_by: why another podium has to replay this recording; "" if this one can.
        scores: of the attempt `scores_attempt`.
        left_out: the objects that the recording lacks.
    """

    outcome: ReplayOutcome
    wall_s: float
    damage: str = ""
    is_cut: bool = False
    made_by: str = ""
    scores: Scores = field(default_factory=dict)
    left_out: LeftOutList = field(default_factory=LeftOutList)

    @property
    def virtual_s(self) -> float:
        """The recorded duration of the replayed part."""
        started_s = self.outcome.started_s
        return 0.0 if started_s is None else self.outcome.ended_s - started_s

    @property
    def is_same(self) -> bool:
        """Every decision is the recorded one."""
        return self.outcome.divergence is None

    def summary(self) -> dict[str, Any]:
        """Return the last line of `--output json`."""
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
    """Tell whether the recording was made beside another scheduler."""
    return segments.description.get("kind") == WATCHED


def describe_scheduler(
    config: KubeSchedulerConfiguration,
    options: Options,
    *,
    references: tuple[str, ...] = (),
    feature_gates: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Describe the scheduler that makes a recording.

    Raises:
        RecordingError: it has extenders, whose answers are not recorded.
    """
    if config.extenders:
        # A replay calls nothing outside, and an extender's answer would be missing.
        raise RecordingError("a scheduler with HTTP extenders cannot be recorded: their answers are not podium's")
    groups = options.pod_groups
    return {
        "podium": podium.__version__,
        "commit": build.commit(),
        "config": effective_configuration(without_secrets(config)),
        "plugins": list(references),
        "feature_gates": list(feature_gates),
        "decides_as": config.release.minor,
        "options": {
            "pod_max_in_unschedulable_s": options.pod_max_in_unschedulable_s,
            "preempts_pods_of_others": options.preempts_pods_of_others,
            "avoids_conflicts": options.avoids_conflicts,
            "recorder_bytes": options.recorder_bytes,
            "pod_groups": None if groups is None else msgspec.to_builtins(groups),
        },
    }


class _RecordedOptions(msgspec.Struct, forbid_unknown_fields=True):
    """The options that a recording may set. Others name files and addresses, or start work beside scheduling."""

    pod_max_in_unschedulable_s: float
    preempts_pods_of_others: bool
    avoids_conflicts: bool
    recorder_bytes: Annotated[int, msgspec.Meta(ge=0)]
    pod_groups: PodGroupRules | None


def recorded_options(description: Mapping[str, Any], plugins: Mapping[str, type[Plugin]]) -> Options:
    """Return the options of the scheduler that made a recording. Raises: RecordingError."""
    try:
        options = msgspec.convert(description["options"], _RecordedOptions)
    except (KeyError, msgspec.ValidationError) as error:
        raise RecordingError(f"the recording does not say with which options it was made: {error!r}") from None
    return Options(secure_port=0, plugins=plugins, **msgspec.structs.asdict(options))


def recorded_references(description: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the custom plugins that a recording names, for display only: its author chose the names.

    Raises:
        RecordingError: the description is not what podium writes.
    """
    return _recorded_texts(description, "plugins")


def recorded_gates(description: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the recorded feature gates, as on the command line. Raises: RecordingError."""
    return _recorded_texts(description, "feature_gates")


def recorded_release(description: Mapping[str, Any]) -> Release:
    """Return the release that a recording was decided as. Raises: RecordingError: podium does not know it."""
    minor = description.get("decides_as", _oldest_minor(description))
    if not isinstance(minor, str) or minor not in RELEASES:
        raise RecordingError(f"the recording was decided as Kubernetes {minor!r}, which this podium does not know")
    return RELEASES[minor]


class _RecordedProfile(msgspec.Struct):
    plugins: dict[str, Any] = {}


class _RecordedConfig(msgspec.Struct):
    profiles: list[_RecordedProfile] = []


def _oldest_minor(description: Mapping[str, Any]) -> str:
    """Return the oldest minor that has all extension points of the recorded configuration."""
    try:
        profiles = msgspec.convert(description.get("config"), _RecordedConfig).profiles
    except msgspec.ValidationError:
        # Whatever it is, reading the configuration says so.
        return FIRST.minor
    points = set[str]().union(*(profile.plugins for profile in profiles))
    # The newest has all points that there are.
    return next(minor for minor, release in RELEASES.items() if points.isdisjoint(release.absent_points))


def _recorded_texts(description: Mapping[str, Any], name: str) -> tuple[str, ...]:
    try:
        return msgspec.convert(description[name], tuple[str, ...])
    except (KeyError, msgspec.ValidationError) as error:
        raise RecordingError(f"the recording does not say with which {name} it was made: {error!r}") from None


def demand_plugins(description: Mapping[str, Any], plugins: Sequence[str]) -> None:
    """Refuse a recording with custom plugins if the command line names none.

    A recording may come from an untrusted source, so podium loads only the plugins that the command line names.

    Args:
        plugins: the values of `--plugin`.

    Raises:
        RecordingError: the recording names plugins, and none are given.
    """
    references = recorded_references(description)
    # Code is never loaded because a recording names it: the author of the file could run anything.
    if references and not plugins:
        raise RecordingError(f"the recording was made with custom plugins: {advice_on_plugins(references)}")


def advice_on_plugins(references: Sequence[str]) -> str:
    """Say which options to pass for the plugins that a recording names."""
    arguments = " ".join(f"--plugin {shlex.quote(reference)}" for reference in references[:_REFERENCES_SHOWN])
    count = len(references) - _REFERENCES_SHOWN
    remainder = f" and {count} more" if count > 0 else ""
    return (
        "podium loads no code that a recording names; if you trust these plugins, give them with "
        f"{arguments}{remainder}"
    )


def entries_of(segments: Segments) -> Iterator[Entry]:
    """Yield the entries of a recording up to the first damage, without objects that cannot be read."""
    return chain.from_iterable(_blocks_of(segments))


def _blocks_of(segments: Segments) -> Iterator[list[Entry]]:
    for content in segments.blocks():
        try:
            yield columns.entries_of(content, segments.left_out.add)
        except ValueError as error:
            segments.damage = f"{segments.directory}: a block that is whole cannot be understood: {error}"
            return


def checked_segments(directory: Path) -> Segments:
    """Open a recording that this podium can replay. Raises: RecordingError."""
    segments = open_segments(directory)
    version = segments.description.get("podium")
    # Decisions are compared one by one, and any release may decide otherwise.
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
    window: ReplayWindow = _UNLIMITED,
    speed: float | None = None,
    has_other_config: bool = False,
    scores_attempt: int | None = None,
    prepare: Callable[[Scheduler], None] = lambda _: None,
) -> ReplayResult:
    """Replay a recording with the configuration and plugins that it was made with.

    Args:
        window: where the replay ends.
        speed: recorded seconds per second; None for no limit.
        has_other_config: the configuration or the plugins are not the recorded ones.
        scores_attempt: the number of the attempt after which the replay ends, with its scores in the result.
        prepare: called with the scheduler before anything runs.

    Raises:
        RecordingError: there is no recording, it cannot be read, or another version of podium is needed.
    """
    segments = checked_segments(directory)
    options = recorded_options(segments.description, plugins)
    started_s = time.perf_counter()
    inputs = ReplayInputs(
        entries_of(segments),
        window,
        pace=Pace(speed).wait_until,
        has_other_config=has_other_config,
        scores_attempt=scores_attempt,
        has_messages=segments.description.get("names") != "hashed",
    )
    # A replay may diverge before any task runs: while the scheduler is built.
    # Collections would cost more time than the replay itself, which frees little.
    with garbage_collection.rare_collections(), asyncio.Runner(loop_factory=ReplayLoop) as runner, suppress(Diverged):
        runner.run(_replay(inputs, config, options, prepare))
    wall_s = time.perf_counter() - started_s
    has_failed = inputs.outcome.divergence is not None or (segments.damage and not segments.is_cut)
    made_by = _other_build(segments) if has_failed and not has_other_config else ""
    return ReplayResult(
        inputs.outcome, wall_s, segments.damage, segments.is_cut, made_by, inputs.scores, segments.left_out
    )


def _other_build(segments: Segments) -> str:
    """Say which build made the recording, if it was not this one."""
    commits = segments.description.get("commit"), build.commit()
    if commits[0] == commits[1]:
        return ""
    builds = [f"commit {commit}" if commit else "an unknown commit" for commit in commits]
    return (
        f"{segments.directory} was recorded by podium {podium.__version__} of {builds[0]}, and this is podium "
        f"{podium.__version__} of {builds[1]}, which does not repeat it: replay it with the podium that recorded it"
    )


async def _replay(
    inputs: ReplayInputs, config: KubeSchedulerConfiguration, options: Options, prepare: Callable[[Scheduler], None]
) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ReplayLoop)
    scheduler = build_scheduler(inputs, config, options, inputs.last_readings())
    # A step that diverges fails its task; the outcome names the divergence.
    loop.set_exception_handler(lambda *_: None)
    prepare(scheduler)
    end = loop.replay(inputs)
    inputs.start(loop, scheduler.tasks)
    await end

"""Records the watch events beside any scheduler, and compares its bindings with podium's choices afterwards.

Owns the content of such a recording: the watch events, their times, and whether a list was incomplete at the time. It
holds no decisions of podium: the bindings in it are the other scheduler's. A replay hands the events to `shadow.Shadow`
at the recorded times, so its answers are those of `podium shadow`.

Its task `recorder` stops the process (`server.process`) if the recording fails. The session sends no writes.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import anyio

import podium
from podium.config import KubeSchedulerConfiguration
from podium.config import effective as effective_configuration
from podium.engine.cluster import Cluster
from podium.engine.errors import ManifestError
from podium.engine.store import ObjectStore
from podium.framework.contract.plugin import Plugin
from podium.lib.clock import ManualClock
from podium.lib.log import get_logger
from podium.lib.system_clock import SystemClock
from podium.objects.core import Pod
from podium.objects.custom_resources import all_resources
from podium.objects.resource_types import KubeObject, ResourceType
from podium.recording.entries import MONOTONIC, NOW, PUT, READ, REMOVE, Entry, Times, item_of
from podium.recording.hashed_names import NameHasher
from podium.recording.recorder import Recorder
from podium.recording.replay import WATCHED, entries_of
from podium.recording.replay_window import Pace, ReplayWindow
from podium.recording.segments import LeftOutList, RecordingError, open_segments
from podium.recording.shadow.app import CATCH_UP_S_MAX, InformerAdapter, catch_up
from podium.recording.shadow.comparison import Comparison
from podium.recording.shadow.observed import ObservedCluster
from podium.recording.shadow.report import Disagreement, Report
from podium.recording.shadow.shadow import Listener, Shadow
from podium.server.process import Parts, Process, connect
from podium.server.supervision import Tasks
from podium.telemetry.process_metrics import ProcessMetrics

log = get_logger("record")

_UNLIMITED: Final = ReplayWindow()
_LOOK_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a recording beside another scheduler.

    Attributes:
        config: the other scheduler's configuration; its pods are those that name one of the profiles.
        references: the custom plugins in it, as `--plugin` names them.
        for_s: the time limit; None for no limit.
        bytes_max: the limit of the recording's size; None for no limit.
        hasher: hashes names.
    """

    directory: Path
    config: KubeSchedulerConfiguration
    classes: Mapping[str, type[Plugin]]
    references: tuple[str, ...] = ()
    kubeconfig: str | None = None
    context: str | None = None
    for_s: float | None = None
    bytes_max: int | None = None
    hasher: NameHasher | None = None


class WatchRecorder:
    """Records every change. Implements `podium.recording.shadow.app.ChangeListener`.

    Attributes:
        changes: the number of recorded changes.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._clock = recorder.clock(SystemClock())
        self._is_complete: bool | None = None
        self.changes = 0

    def put(self, resource: ResourceType[Any], item: Any, *, is_complete: bool = True) -> None:
        """Record an added or changed object."""
        self._begin(is_complete=is_complete)
        self._recorder.note_put(resource.path, item)

    def drop(self, resource: ResourceType[Any], item: KubeObject) -> None:
        """Record a deletion."""
        self._begin(is_complete=self._is_complete is True)
        self._recorder.note(REMOVE, (resource.path, item.key))

    def _begin(self, *, is_complete: bool) -> None:
        if not self.changes:
            # One reading of the wall clock gives the whole recording its date.
            self._clock.now()
        self.changes += 1
        self._clock.monotonic()
        if is_complete is not self._is_complete:
            self._is_complete = is_complete
            self._recorder.note(READ, is_complete)


class RecordApp(Process):
    """Records what the watches show, until stopped."""

    def __init__(self, options: Options) -> None:
        self.metrics = ProcessMetrics()
        super().__init__(log, "recording", self.metrics)
        self._options = options

    async def run(self, on_start: Callable[[], None] = lambda: None) -> int:
        """Record until SIGTERM, SIGINT, `stop` or a limit, and return the number of changes.

        Args:
            on_start: called once all objects are listed.

        Raises:
            ConnectionConfigError, PluginError, ConfigError, OSError: it cannot start.
            RecordingError: it cannot start, or could not be written to its end, as on a full disk.
            ExceptionGroup: of `ComponentFailedError`; everything else has been cancelled.
        """
        options = self._options
        self._prepare("Starting podium's recording")
        connection = await connect(self._clock, options.kubeconfig, context=options.context)
        # Which kinds the plugins read is known only once a profile is built.
        resources = ObservedCluster(Cluster(options.config, ObjectStore(()), options.classes)).resources
        recorder = Recorder(options.directory, _description(options), options.hasher, bytes_max=options.bytes_max)

        def begin() -> Iterable[Tasks]:
            log.info("Recording", directory=str(options.directory))
            on_start()
            return ()

        try:
            listener = WatchRecorder(recorder)
            async with connection.session(may_write=lambda: False) as session:
                informers = self._informer_set(session, options.config.release)
                for resource in resources:
                    informers.informer(resource).add_handler(InformerAdapter(listener, resource, informers))
                parts = Parts(
                    begin=begin,
                    tasks=[{"recorder": lambda: self._stop_without(recorder)}],
                    connection=connection,
                    informers=informers,
                    run_s_max=options.for_s,
                    drain=lambda: catch_up(informers),
                    # Events that the API server has sent already belong to the recording.
                    drain_s_max=CATCH_UP_S_MAX,
                )
                await self._run_parts(parts)
            recorder.stopping()
        finally:
            recorder.close()
        log.info("Stopped", changes=listener.changes)
        if recorder.failure:
            raise RecordingError(f"the recording in {options.directory} has ended early: {recorder.failure}")
        return listener.changes

    async def _stop_without(self, recorder: Recorder) -> None:
        """Stop once the recording has failed, or is as large as it may be."""
        while not recorder.failure and not recorder.is_full:  # noqa: ASYNC110 - another thread writes
            await anyio.sleep(_LOOK_S)
        self.stop()


def _description(options: Options) -> dict[str, Any]:
    # A replay does not call extenders either; `Shadow` names them as a reason.
    return {
        "podium": podium.__version__,
        "kind": WATCHED,
        "config": effective_configuration(replace(options.config, extenders=())),
        "plugins": list(options.references),
        "feature_gates": [],
        "decides_as": options.config.release.minor,
    }


# ---------------------------------------------------------------- afterwards


@dataclass(frozen=True, slots=True)
class WatchedReplay:
    """The comparison of podium's choices with the bindings in a recording.

    Attributes:
        digest: a hash of all comparisons.
        damage, is_cut, left_out: as in `podium.recording.replay.ReplayResult`.
    """

    report: Report
    digest: str
    virtual_s: float
    wall_s: float
    damage: str
    is_cut: bool
    left_out: LeftOutList

    def summary(self) -> dict[str, Any]:
        """Return the last line of `--output json`."""
        return {
            "compared": self.report.compared_count,
            "agreed": self.report.agreed_count,
            "digest": self.digest,
            "virtual_s": round(self.virtual_s, 3),
            "wall_s": round(self.wall_s, 3),
        }


class _Digest(Listener):
    """Hashes the results of a shadow."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def on_comparison(self, comparison: Comparison, *, evaluation_s: float, binding_s: float) -> None:
        """Add a comparison."""
        self.sha256.update(repr(sorted(comparison.to_json().items())).encode())

    def on_disagreement(self, disagreement: Disagreement, pod: Pod, states: Mapping[str, Cluster]) -> None:
        """Add the reason."""
        self.sha256.update(f"{disagreement.pod} {disagreement.reason} {disagreement.view}".encode())


def compare_bindings(
    directory: Path,
    config: KubeSchedulerConfiguration,
    classes: Mapping[str, type[Plugin]],
    *,
    window: ReplayWindow = _UNLIMITED,
    speed: float | None = None,
) -> WatchedReplay:
    """Compare every binding in the recording with what podium would have chosen on the state seen before it.

    Args:
        window: where to end; an attempt is a binding.
        speed: recorded seconds per second; None for no limit.

    Raises:
        RecordingError: there is no recording, or it cannot be read.
        PluginError, ConfigError: a profile cannot be built.
    """
    segments = open_segments(directory)
    clock, digest, times, started_s = ManualClock(), _Digest(), Times(), time.perf_counter()
    shadow = Shadow(config, classes, clock, [digest])
    is_complete, first_s, wall_s, pace = False, None, None, Pace(speed)
    for entry in entries_of(segments):
        if window.attempts is not None and shadow.report.compared_count >= window.attempts:
            break
        if entry[0] == NOW:
            wall_s = Times().take(entry[1])
        elif entry[0] == MONOTONIC:
            now_s = times.take(entry[1])
            first_s = now_s if first_s is None else first_s
            if window.is_over(now_s - first_s, wall_s and wall_s + now_s - first_s):
                break
            pace.wait_until(now_s)
            clock.advance(max(now_s - clock.monotonic(), 0.0))
            # Before the entry: what was decided until now saw the state without it.
            for _ in shadow.settle():
                pass
        elif entry[0] == READ:
            is_complete = entry[1]
        else:
            _apply(shadow, entry, is_complete=is_complete)
    for _ in shadow.settle(is_final=True):
        pass
    virtual_s = 0.0 if first_s is None else times.last_s - first_s
    took_s = time.perf_counter() - started_s
    return WatchedReplay(
        shadow.report,
        digest.sha256.hexdigest(),
        virtual_s,
        took_s,
        segments.damage,
        segments.is_cut,
        segments.left_out,
    )


def _apply(shadow: Shadow, entry: Entry, *, is_complete: bool) -> None:
    if entry[0] not in (PUT, REMOVE):
        return
    resource = next((kind for kind in all_resources() if kind.path == entry[1]), None)
    if resource is None:
        # A kind of a newer podium may decide scheduling, so leaving it out could make every comparison wrong.
        raise RecordingError(f"the recording has objects that this podium does not know: {entry[1]}")
    if entry[0] == PUT:
        try:
            shadow.put(resource, item_of(entry), is_complete=is_complete)
        except ManifestError as error:
            log.error("Object cannot be read", kind=resource.kind, error=str(error))
    else:
        shadow.remove(resource, entry[2])

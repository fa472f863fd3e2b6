"""Member clusters from a directory of kubeconfigs. Each file is a member with the file's name.

Owns which members are watched. A file that cannot be used is logged, and the other members are still served. A member
whose file has changed gets new informers, and the earlier state answers until these have listed everything.

Tasks: one for each member. The directory is polled, since a mounted secret changes without a notification.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from podium.client.credentials import ConnectionConfigError
from podium.lib import garbage_collection
from podium.lib.log import get_logger

log = get_logger("estimator")


class Watched(Protocol):
    """A member that is watched by a task."""

    async def run(self) -> None:
        """Watch until cancelled."""
        ...


WatchedT = TypeVar("WatchedT", bound=Watched)
WatchedT_contra = TypeVar("WatchedT_contra", bound=Watched, contravariant=True)


class Members(Protocol[WatchedT_contra]):
    """The members that are served."""

    def put(self, name: str, member: WatchedT_contra, /) -> None:
        """Serve a member from now on."""
        ...

    def let_go(self, name: str, /) -> None:
        """Stop serving a member."""
        ...


def kubeconfigs_in(directory: Path) -> Mapping[str, Path]:
    """Return the kubeconfig files, by the names of their members.

    Raises:
        OSError: the directory cannot be read.
    """
    files = (path for path in sorted(directory.iterdir(), reverse=True) if path.is_file() and path.name[0] != ".")
    return {path.name.split(".")[0]: path for path in files}


@dataclass(slots=True)
class _Followed(Generic[WatchedT]):
    """One member and its kubeconfig file."""

    name: str
    content: bytes
    member: WatchedT
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class Folder(Generic[WatchedT]):
    """The members of one directory.

    Args:
        live: creates the member of that name from its kubeconfig; raises ConnectionConfigError.
        look_s: the interval between two checks.
        on_fault: called with the name of a member and why its file cannot be used; with "" once such a file is gone.
    """

    def __init__(
        self,
        directory: Path,
        members: Members[WatchedT],
        live: Callable[[str, Path], Awaitable[WatchedT]],
        look_s: float,
        on_fault: Callable[[str, str], None] = lambda _name, _fault: None,
    ) -> None:
        self._directory = directory
        self._members = members
        self._live = live
        self._look_s = look_s
        self._followed: dict[str, _Followed[WatchedT]] = {}
        self._not_started: list[_Followed[WatchedT]] = []
        self._reported: dict[str, str] = {}
        self._on_fault = on_fault
        self._faulty: set[str] = set()
        self._departed: list[weakref.ref[WatchedT]] = []
        """Members that are gone, or about to be. Their objects were exempted from collection as lasting ones."""

    async def run(self) -> None:
        """Check the directory and watch its members until cancelled."""
        async with anyio.create_task_group() as group:
            while True:
                self._start(group)
                await anyio.sleep(self._look_s)
                await self.look()

    async def look(self) -> None:
        """Check the directory once. If it cannot be read, nothing changes."""
        self._departed = [reference for reference in self._departed if reference() is not None]
        if self._departed:
            garbage_collection.collect_exempt_objects()
        try:
            contents = await anyio.to_thread.run_sync(_contents, self._directory)
        except OSError as error:
            self._report(str(self._directory), str(error))
            return
        for name in self._followed.keys() - contents.keys():
            log.info("Stopped watching member", cluster=name)
            self._leave(self._followed.pop(name))
            self._members.let_go(name)
        # Such a file never became a member, so that nothing else would say that it is gone.
        for name in self._faulty - contents.keys():
            self._faulty.discard(name)
            self._on_fault(name, "")
        for name, (path, content) in contents.items():
            member_file = self._followed.get(name)
            if member_file is None or member_file.content != content:
                await self._follow(name, path, content)

    def _leave(self, member_file: _Followed[WatchedT]) -> None:
        member_file.scope.cancel()
        self._departed.append(weakref.ref(member_file.member))

    async def _follow(self, name: str, path: Path, content: bytes) -> None:
        try:
            member = await self._live(name, path)
        except ConnectionConfigError as error:
            self._report(name, str(error))
            self._faulty.add(name)
            self._on_fault(name, str(error))
            return
        self._reported.pop(name, None)
        self._faulty.discard(name)
        previous, self._followed[name] = self._followed.get(name), _Followed(name, content, member)
        if previous is not None:
            self._leave(previous)
        self._members.put(name, member)
        self._not_started.append(self._followed[name])
        log.info("Watching member", cluster=name, file=str(path))

    def _start(self, group: TaskGroup) -> None:
        for member_file in self._not_started:
            group.start_soon(self._run, member_file, name=f"member {member_file.name}")
        self._not_started.clear()

    async def _run(self, member_file: _Followed[WatchedT]) -> None:
        with member_file.scope:
            await member_file.member.run()

    def _report(self, subject: str, fault: str) -> None:
        """Log a fault unless it was already logged for this file."""
        if self._reported.get(subject) != fault:
            self._reported[subject] = fault
            log.error("Kubeconfig cannot be used", member=subject, error=fault)


def _contents(directory: Path) -> dict[str, tuple[Path, bytes]]:
    return {name: (path, path.read_bytes()) for name, path in kubeconfigs_in(directory).items()}

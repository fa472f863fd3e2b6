"""The changes of cached answers that no log of the snapshot shows: of loads, or of reports about nodes.

Owns which plugins have such changes, and their logs. Never calls a filter or a scorer.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster import Snapshot
from podium.framework.contract.plugin import Plugin, Scope
from podium.lib.change_log import ChangeLog


class OutsideChanges:
    """The logs of the plugins whose cached answers also depend on what is outside of the snapshot.

    Attributes:
        ends: the numbers of the next changes, by log, as they were when the logs were last read.
    """

    __slots__ = ("_logs", "_scopes", "ends")

    def __init__(self) -> None:
        self._scopes: dict[Plugin, Scope] = {}
        self._logs: list[ChangeLog[int]] = []
        self.ends: tuple[int, ...] = ()

    def note(self, plugin: Plugin, scope: Scope) -> None:
        """Note that answers of the plugin are cached, in that scope."""
        if type(plugin).outside_changes is not Plugin.outside_changes:
            self._scopes[plugin] = max(scope, self._scopes.get(plugin, scope))

    def are_continued(self, snapshot: Snapshot) -> bool:
        """Ask the plugins for their logs, and return whether these are the same as before; else all rows have changed.

        Raises:
            Exception: whatever a plugin raises.
        """
        if not self._scopes:
            return True
        logs = [plugin.outside_changes(snapshot) for plugin in self._scopes]
        # By identity: a log has no other equality.
        are_same = logs == self._logs
        self._logs, self.ends = logs, tuple([log.end for log in logs])
        return are_same

    def since(self, numbers: Sequence[int]) -> tuple[set[int], set[int]] | None:
        """Return the rows to ask all plugins about, and those for plugins that see usage; None if there were too many.

        Args:
            numbers: the `ends` up to which changes are known.
        """
        nodes: set[int] = set()
        pods: set[int] = set()
        for scope, log, number in zip(self._scopes.values(), self._logs, numbers, strict=True):
            if log.end == number:
                continue
            rows = log.since(number)
            if rows is None:
                return None
            (nodes if scope is Scope.NODE else pods).update(rows)
        return nodes, pods

"""Which host ports are taken on which nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from podium.cluster.footprint import HostPort

ANY_ADDRESS = "0.0.0.0"


class HostPortIndex:
    """Rows by the host ports taken there.

    Source: kubernetes pkg/scheduler/framework/types.go (HostPortInfo), v1.36.2.
    """

    def __init__(self) -> None:
        self._taken: dict[tuple[str, int], dict[int, Counter[str]]] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        """Mark the ports as taken on the row."""
        for ip, protocol, port in ports:
            self._taken.setdefault((protocol, port), {}).setdefault(row, Counter())[ip] += 1

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        """Take back one earlier `add`."""
        for ip, protocol, port in ports:
            rows = self._taken[protocol, port]
            addresses = rows[row]
            addresses[ip] -= 1
            if not addresses[ip]:
                del addresses[ip]
            if not addresses:
                del rows[row]
            if not rows:
                del self._taken[protocol, port]

    def conflicting_rows(self, wanted: HostPort) -> list[int]:
        """Rows where the port cannot be had: taken on the same address, or on all, or wanted on all."""
        rows = self._taken.get((wanted.protocol, wanted.port), {})
        return [
            row
            for row, addresses in rows.items()
            if wanted.ip == ANY_ADDRESS or ANY_ADDRESS in addresses or wanted.ip in addresses
        ]

    def copy(self) -> HostPortIndex:
        """An independent copy."""
        twin = HostPortIndex()
        twin._taken = {
            port: {row: Counter(addresses) for row, addresses in rows.items()} for port, rows in self._taken.items()
        }
        return twin

"""The host ports in use on each node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from podium.cluster.pod_usage import HostPort

ANY_ADDRESS = "0.0.0.0"


class HostPortIndex:
    """Rows by the host ports taken there.

    Source: kubernetes pkg/scheduler/framework/types.go (HostPortInfo), v1.36.2.
    """

    def __init__(self) -> None:
        self._taken: dict[tuple[str, int], dict[int, dict[str, int]]] = {}
        self._shared: set[tuple[str, int]] = set()
        """Ports whose rows are shared with a copy: they are copied before they are written."""

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        """Mark the ports as taken on the row."""
        for addresses, ip in self._own_addresses(row, ports):
            addresses[ip] = addresses.get(ip, 0) + 1

    def remove(self, row: int, ports: Collection[HostPort]) -> None:
        """Take back one earlier `add`."""
        for addresses, ip in self._own_addresses(row, ports):
            addresses[ip] -= 1
            if not addresses[ip]:
                del addresses[ip]
        for key in {(protocol, port) for _, protocol, port in ports}:
            rows = self._taken[key]
            if not rows[row]:
                del rows[row]
            if not rows:
                del self._taken[key]

    def conflicting_rows(self, host_port: HostPort) -> list[int]:
        """Return the rows where the port is taken, on the same address or on all, or on any if it is wanted on all."""
        rows = self._taken.get((host_port.protocol, host_port.port), {})
        return [
            row
            for row, addresses in rows.items()
            if host_port.ip == ANY_ADDRESS or ANY_ADDRESS in addresses or host_port.ip in addresses
        ]

    def copy(self) -> HostPortIndex:
        """Return an independent copy. Cost: grows with the number of different ports, not with that of pods."""
        twin = HostPortIndex()
        twin._taken = dict(self._taken)
        twin._shared = set(self._taken)
        self._shared |= twin._shared
        return twin

    def _own_addresses(self, row: int, ports: Iterable[HostPort]) -> Iterator[tuple[dict[str, int], str]]:
        """Yield the addresses on the row that each port is taken on, copied once, and the port's own one."""
        copies: dict[tuple[str, int], dict[str, int]] = {}
        for ip, protocol, port in ports:
            addresses = copies.get((protocol, port))
            if addresses is None:
                rows = self._own_rows(protocol, port)
                addresses = copies[protocol, port] = rows[row] = dict(rows.get(row, ()))
            yield addresses, ip

    def _own_rows(self, protocol: str, port: int) -> dict[int, dict[str, int]]:
        key = protocol, port
        rows = self._taken.setdefault(key, {})
        if key in self._shared:
            self._shared.discard(key)
            rows = self._taken[key] = dict(rows)
        return rows

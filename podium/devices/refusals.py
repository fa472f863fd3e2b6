"""Why a node has no devices for the claims of a pod, as values: by request, with counts, selectors and holders.

What is alike on many nodes is in the texts; which devices they are, and who has them, is not: nodes with the same text
are refused for the same reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_EXPRESSION_MAX: Final = 160
_NAMES_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Devices that a selector refuses.

    Attributes:
        owner: whose selector it is: the class's or the request's.
        expression: the selector.
        count: how many of the devices that earlier selectors let through it refuses.
        values: what these devices have of what the selector reads, such as `model: a100 on 6, l4 on 2`.
    """

    owner: str
    expression: str
    count: int
    values: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The refusal in a few words."""
        shown = self.expression if len(self.expression) <= _EXPRESSION_MAX else f"{self.expression[:_EXPRESSION_MAX]}…"
        values = f" ({'; '.join(self.values)})" if self.values else ""
        return f"{self.owner} refuses {self.count} by {shown}{values}"

    def as_dict(self) -> dict[str, Any]:
        """The mismatch as JSON values."""
        found = {"by": self.owner, "selector": self.expression, "devices": self.count}
        return found | ({"values": list(self.values)} if self.values else {})


@dataclass(frozen=True, slots=True)
class Holder:
    """Devices that a claim has.

    Attributes:
        claim: its key; "" if it is not known which claim has them.
        pods: the names of the pods for which it is reserved.
        devices: as `<driver>/<pool>/<device>`.
    """

    claim: str
    pods: tuple[str, ...]
    devices: tuple[str, ...]

    @property
    def text(self) -> str:
        """The devices, the claim and its pods."""
        if not self.claim:
            return f"{self.devices_text}: taken by an allocation that cannot be read"
        return f"{self.devices_text}: taken by claim {self.claim} ({self.users_text})"

    @property
    def users_text(self) -> str:
        """The pods that use the claim."""
        more = len(self.pods) - _NAMES_MAX
        shown = ", ".join(self.pods[:_NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
        return f"{'pods' if len(self.pods) > 1 else 'pod'} {shown}" if self.pods else "no pod uses it"

    @property
    def devices_text(self) -> str:
        """The devices by pool."""
        by_pool: dict[str, list[str]] = {}
        for device in self.devices:
            pool, _, name = device.rpartition("/")
            by_pool.setdefault(pool, []).append(name)
        return ", ".join(_of_pool(pool, names) for pool, names in by_pool.items())

    def as_dict(self) -> dict[str, Any]:
        """The holder as JSON values."""
        return {"claim": self.claim, "pods": list(self.pods), "devices": list(self.devices)}


def _of_pool(pool: str, names: Sequence[str]) -> str:
    more = len(names) - _NAMES_MAX
    return f"{', '.join(names[:_NAMES_MAX])}{f' and {more} more' if more > 0 else ''} of {pool}"


@dataclass(frozen=True, slots=True)
class UnmetRequest:
    """A request that the devices of a node do not meet.

    Attributes:
        claim: the key of its claim.
        name: `<request>`, or `<request>/<subrequest>`.
        device_class: the name of its class.
        count: how many devices it asks for; None for all.
        devices: how many devices the node reaches.
        matching: how many of them the selectors select.
        taken: how many of these claims have for themselves.
        free: how many of these it could have by itself.
        mismatches: the selectors that refuse devices.
        holders: who has matching devices, or what they need.
        lacks: why it cannot have matching devices that are not taken, each with their number.
        reason: why it cannot have as many as it asks for although they are free; "" if they are not.
    """

    claim: str
    name: str
    device_class: str
    count: int | None
    devices: int
    matching: int
    taken: int
    free: int
    mismatches: tuple[Mismatch, ...] = ()
    holders: tuple[Holder, ...] = ()
    lacks: tuple[str, ...] = ()
    reason: str = ""

    @property
    def text(self) -> str:
        """What is asked for, and what there is."""
        wanted = "all devices" if self.count is None else f"{self.count} device{'' if self.count == 1 else 's'}"
        head = f"request {self.name} of claim {self.claim} asks for {wanted} of class {self.device_class}"
        if not self.devices:
            return f"{head}: the node has no devices"
        parts = [f"{self.matching} of {self.devices} match"]
        if self.matching < (self.count or 1):
            parts += [each.text for each in self.mismatches]
        if self.matching:
            parts += [f"{self.taken} taken"] if self.taken else []
            parts += self.lacks
            parts.append(f"{self.free} free")
        return f"{head}: {', '.join(parts)}{f'; {self.reason}' if self.reason else ''}"

    def as_dict(self) -> dict[str, Any]:
        """The request as JSON values."""
        found: dict[str, Any] = {
            "claim": self.claim,
            "request": self.name,
            "class": self.device_class,
            "count": "all" if self.count is None else self.count,
            "devices": self.devices,
            "matching": self.matching,
            "taken": self.taken,
            "free": self.free,
            "refused_by": [each.as_dict() for each in self.mismatches],
            "taken_by": [each.as_dict() for each in self.holders],
        }
        if self.lacks:
            found["lacks"] = list(self.lacks)
        return found | ({"reason": self.reason} if self.reason else {})


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """Why a node has no devices for the claims of a pod.

    Attributes:
        requests: those that are not met.
        elsewhere: the claims that are allocated and that the node cannot use.
        broken_pools: the pools that offer nothing, each with what is wrong with its slices.
        error: why no request can be judged; "" if they can.
    """

    requests: tuple[UnmetRequest, ...] = ()
    elsewhere: tuple[Holder, ...] = ()
    broken_pools: tuple[str, ...] = field(default=())
    error: str = ""

    @property
    def reasons(self) -> tuple[str, ...]:
        """What is missing, without what is this node's only."""
        found = [self.error] if self.error else []
        found += [each.text for each in self.requests]
        found += [f"claim {each.claim} has its devices elsewhere" for each in self.elsewhere]
        if self.broken_pools:
            count = len(self.broken_pools)
            found.append(
                f"{count} pool{' offers' if count == 1 else 's offer'} nothing, as slices are missing or wrong"
            )
        return tuple(found)

    @property
    def text(self) -> str:
        """The reasons in one text."""
        return "; ".join(self.reasons)

    @property
    def details(self) -> tuple[str, ...]:
        """What is this node's only: who has which devices, and which pools are broken."""
        holders = dict.fromkeys(each.text for request in self.requests for each in request.holders)
        users = (f"claim {each.claim} ({each.users_text}) has {each.devices_text}" for each in self.elsewhere)
        return (*holders, *users, *self.broken_pools)

    def as_dict(self) -> dict[str, Any]:
        """The refusal as JSON values."""
        found: dict[str, Any] = {"requests": [each.as_dict() for each in self.requests]}
        if self.elsewhere:
            found["allocated_elsewhere"] = [each.as_dict() for each in self.elsewhere]
        if self.broken_pools:
            found["broken_pools"] = list(self.broken_pools)
        if details := self.details:
            found["details"] = list(details)
        return found | ({"error": self.error} if self.error else {})

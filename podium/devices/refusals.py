"""Reasons why a node has no devices for a pod's claims, as values: by request, with counts, selectors and holders.

What is alike on many nodes is in the texts; which devices they are, and who has them, is not: nodes with the same text
are refused for the same reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from podium.lib.plurals import count_of

_EXPRESSION_MAX: Final = 160
_NAMES_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Devices that a selector refuses.

    Attributes:
        owner: the owner of the selector: the class or the request.
        expression: the selector.
        count: the number of devices that pass the earlier selectors and that this one refuses.
        values: the values that the selector reads on these devices, such as `model: a100 on 6, l4 on 2`.
    """

    owner: str
    expression: str
    count: int
    values: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The refusal in a few words."""
        expression = (
            self.expression if len(self.expression) <= _EXPRESSION_MAX else f"{self.expression[:_EXPRESSION_MAX]}…"
        )
        values = f" ({'; '.join(self.values)})" if self.values else ""
        return f"{self.owner} refuses {self.count} by {expression}{values}"

    def as_dict(self) -> dict[str, Any]:
        """Return the mismatch as JSON values."""
        answer = {"by": self.owner, "selector": self.expression, "devices": self.count}
        return answer | ({"values": list(self.values)} if self.values else {})


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
        # A claim whose allocation names no driver or pool may hold any device.
        if not self.claim:
            return f"{self.devices_text}: taken by an allocation that cannot be read"
        return f"{self.devices_text}: taken by claim {self.claim} ({self.users_text})"

    @property
    def users_text(self) -> str:
        """The pods that use the claim."""
        rest_count = len(self.pods) - _NAMES_MAX
        text = ", ".join(self.pods[:_NAMES_MAX]) + (f" and {rest_count} more" if rest_count > 0 else "")
        return f"{'pods' if len(self.pods) > 1 else 'pod'} {text}" if self.pods else "no pod uses it"

    @property
    def devices_text(self) -> str:
        """The devices by pool."""
        by_pool: dict[str, list[str]] = {}
        for device in self.devices:
            pool, _, name = device.rpartition("/")
            by_pool.setdefault(pool, []).append(name)
        return ", ".join(_of_pool(pool, names) for pool, names in by_pool.items())

    def as_dict(self) -> dict[str, Any]:
        """Return the holder as JSON values."""
        return {"claim": self.claim, "pods": list(self.pods), "devices": list(self.devices)}


def _of_pool(pool: str, names: Sequence[str]) -> str:
    rest_count = len(names) - _NAMES_MAX
    return f"{', '.join(names[:_NAMES_MAX])}{f' and {rest_count} more' if rest_count > 0 else ''} of {pool}"


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
        """The request and the node's devices, in words."""
        amount = "all devices" if self.count is None else count_of(self.count, "device")
        head = f"request {self.name} of claim {self.claim} asks for {amount} of class {self.device_class}"
        if not self.devices:
            return f"{head}: the node has no devices"
        parts = [f"{self.matching} of {self.devices} match"]
        if self.matching < (self.count or 1):
            parts += [mismatch.text for mismatch in self.mismatches]
        if self.matching:
            parts += [f"{self.taken} taken"] if self.taken else []
            parts += self.lacks
            parts.append(f"{self.free} free")
        return f"{head}: {', '.join(parts)}{f'; {self.reason}' if self.reason else ''}"

    def as_dict(self) -> dict[str, Any]:
        """Return the request as JSON values."""
        answer: dict[str, Any] = {
            "claim": self.claim,
            "request": self.name,
            "class": self.device_class,
            "count": "all" if self.count is None else self.count,
            "devices": self.devices,
            "matching": self.matching,
            "taken": self.taken,
            "free": self.free,
            "refused_by": [mismatch.as_dict() for mismatch in self.mismatches],
            "taken_by": [holder.as_dict() for holder in self.holders],
        }
        if self.lacks:
            answer["lacks"] = list(self.lacks)
        return answer | ({"reason": self.reason} if self.reason else {})


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """The reasons why a node has no devices for the claims of a pod.

    Attributes:
        requests: the requests that are not met.
        elsewhere: the claims that are allocated and that the node cannot use.
        broken_pools: the pools that offer nothing, each with the error in its slices.
        error: the reason why no request can be evaluated; "" if they can.
    """

    requests: tuple[UnmetRequest, ...] = ()
    elsewhere: tuple[Holder, ...] = ()
    broken_pools: tuple[str, ...] = field(default=())
    error: str = ""

    @property
    def reasons(self) -> tuple[str, ...]:
        """The shortage, without the parts that concern this node only."""
        reasons = [self.error] if self.error else []
        reasons += [request.text for request in self.requests]
        reasons += [f"claim {holder.claim} has its devices elsewhere" for holder in self.elsewhere]
        if self.broken_pools:
            count = len(self.broken_pools)
            reasons.append(
                f"{count} pool{' offers' if count == 1 else 's offer'} nothing, as slices are missing or wrong"
            )
        return tuple(reasons)

    @property
    def text(self) -> str:
        """The reasons in one text."""
        return "; ".join(self.reasons)

    @property
    def details(self) -> tuple[str, ...]:
        """The parts that concern this node only: the holders of devices, and invalid pools."""
        holders = dict.fromkeys(holder.text for request in self.requests for holder in request.holders)
        users = (f"claim {user.claim} ({user.users_text}) has {user.devices_text}" for user in self.elsewhere)
        return (*holders, *users, *self.broken_pools)

    def as_dict(self) -> dict[str, Any]:
        """Return the refusal as JSON values."""
        answer: dict[str, Any] = {"requests": [request.as_dict() for request in self.requests]}
        if self.elsewhere:
            answer["allocated_elsewhere"] = [holder.as_dict() for holder in self.elsewhere]
        if self.broken_pools:
            answer["broken_pools"] = list(self.broken_pools)
        if details := self.details:
            answer["details"] = list(details)
        return answer | ({"error": self.error} if self.error else {})

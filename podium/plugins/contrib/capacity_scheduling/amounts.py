"""The arithmetic of quotas: sums of amounts by resource, and which of them are above a limit.

Units: cpu in thousandths of a core, everything else as counted by its quantity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from podium.objects.meta import ResourceList
from podium.objects.quantity import INT64_MAX
from podium.objects.requests import Requests, whole_amounts
from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_counted_resource

_ALWAYS_LIMITED: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
"""A limit that does not list one of these limits it to 0."""
NO_LIMIT: Final[Requests] = {CPU: INT64_MAX, MEMORY: INT64_MAX, EPHEMERAL_STORAGE: INT64_MAX}
"""The maximum of a quota without one."""


def limits_of(amounts: ResourceList, path: str) -> Requests:
    """Return the amounts that a quota lists, as integers, without resources that no node is checked for.

    Raises:
        FieldError: a quantity cannot be parsed.
    """
    return {
        name: amount
        for name, amount in whole_amounts(amounts, path).items()
        if name == PODS or is_counted_resource(name)
    }


def excess(extra: Requests, usage: Requests, limit: Requests, unlisted: int) -> Iterator[tuple[str, int]]:
    """Yield the resources of which `extra` beside `usage` is above the limit, each with the amount above it.

    Args:
        unlisted: the limit of a resource that it does not list, except for cpu, memory, storage and pods: theirs is 0.
            Only those that `extra` lists are compared.
    """
    for name in _ALWAYS_LIMITED:
        above = extra.get(name, 0) + usage.get(name, 0) - limit.get(name, 0)
        if above > 0:
            yield name, above
    for name, amount in extra.items():
        if name not in _ALWAYS_LIMITED and (above := amount + usage.get(name, 0) - limit.get(name, unlisted)) > 0:
            yield name, above


def exceeds(extra: Requests, usage: Requests, limit: Requests, unlisted: int) -> bool:
    """Return whether `excess` yields anything."""
    # Written out: every attempt asks twice, and mostly nothing exceeds.
    for name, amount in extra.items():
        if amount + usage.get(name, 0) > limit.get(name, 0 if name in _ALWAYS_LIMITED else unlisted):
            return True
    for name in _ALWAYS_LIMITED:
        if name in extra:
            continue
        # Of what nothing is in use, only a negative limit is exceeded.
        if usage[name] > limit.get(name, 0) if name in usage else name in limit and limit[name] < 0:
            return True
    return False


def sum_exceeds(first: Requests, second: Requests, limit: Requests) -> bool:
    """Return whether any resource of the sum of both amounts is above the limit, which is 0 for those not listed."""
    # Written out as well, without making the sum.
    for name, amount in first.items():
        if (amount + second[name] if name in second else amount) > limit.get(name, 0):
            return True
    for name, amount in second.items():
        if name not in first and amount > limit.get(name, 0):
            return True
    # Of what nothing is in use, only a negative limit of these is exceeded.
    return min(limit.values(), default=0) < 0 and any(
        limit.get(name, 0) < 0 and name not in first and name not in second for name in _ALWAYS_LIMITED
    )


def total(amounts: Iterable[Requests]) -> dict[str, int]:
    """Add the amounts up by resource."""
    sums: dict[str, int] = {}
    for part in amounts:
        for name, amount in part.items():
            sums[name] = sums.get(name, 0) + amount
    return sums


def plus(first: Requests, second: Requests) -> dict[str, int]:
    """Return the sum of two amounts."""
    sums = {**first}
    for name, amount in second.items():
        sums[name] = sums[name] + amount if name in sums else amount
    return sums


def minus(first: Requests, second: Requests) -> dict[str, int]:
    """Return the first amounts less the second."""
    remainder = {**first}
    for name, amount in second.items():
        remainder[name] = remainder.get(name, 0) - amount
    return remainder

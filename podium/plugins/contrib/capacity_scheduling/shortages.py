"""Why quotas keep a pod waiting, in words: which one is full, by how much, and who has borrowed what it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from podium.objects.amounts import amount_text
from podium.objects.core import Pod
from podium.objects.quantity import INT64_MAX
from podium.objects.requests import Requests
from podium.plugins.contrib.capacity_scheduling.amounts import excess, plus
from podium.plugins.contrib.capacity_scheduling.quotas import QuotaState

_BORROWERS_SHOWN: Final = 5


def shortages(state: QuotaState, pod: Pod) -> Iterator[str]:
    """Yield a sentence for each limit that the pod of the attempt would exceed; none if it fits into the quotas."""
    owner, quotas = state.owner_of(pod), state.quotas.quotas
    if owner is None or quotas[owner].problem:
        return
    for name in state.line_of(owner):
        usage = state.usage_of(name)
        above = dict(excess(state.ahead, usage, quotas[name].max, INT64_MAX))
        if above:
            in_use = _amounts({resource: usage.get(resource, 0) for resource in above})
            yield f"quota {quotas[name].key}: {_amounts(above)} above its max, of which {in_use} is in use"
    above = dict(excess(plus(state.total, state.ahead_of_all), {}, state.quotas.guaranteed, 0))
    if above:
        borrowers = list(_borrowers(state, above))
        suffix = f"; {', '.join(borrowers)}" if borrowers else "; no quota has borrowed any"
        yield f"all quotas together: {_amounts(above)} above the sum of their min{suffix}"


def _borrowers(state: QuotaState, resources: Iterable[str]) -> Iterator[str]:
    """Yield who uses more of these resources than its min, the largest amounts first."""
    borrowed = []
    for name, quota in state.quotas.quotas.items():
        above = dict(excess(state.usage_of(name), {}, quota.min, 0))
        amounts = {resource: above[resource] for resource in resources if resource in above}
        if amounts:
            borrowed.append((sorted(amounts.values(), reverse=True), quota.key, amounts))
    borrowed.sort(key=lambda entry: ([-amount for amount in entry[0]], entry[1]))
    for _, key, amounts in borrowed[:_BORROWERS_SHOWN]:
        yield f"{key} has borrowed {_amounts(amounts)}"
    if len(borrowed) > _BORROWERS_SHOWN:
        yield f"and {len(borrowed) - _BORROWERS_SHOWN} more have borrowed"


def _amounts(amounts: Requests) -> str:
    return " and ".join(f"{name} {amount_text(name, amount)}" for name, amount in sorted(amounts.items()))

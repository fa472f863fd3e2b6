"""Why quotas keep a pod waiting, in words: which one is full, by how much, and who has borrowed what it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from podium.objects.amounts import amount_text
from podium.objects.quantity import INT64_MAX
from podium.objects.requests import Requests
from podium.plugins.contrib.capacity_scheduling.amounts import excess, plus, total
from podium.plugins.contrib.capacity_scheduling.quotas import QuotaState

_BORROWERS_SHOWN: Final = 5


def shortages(state: QuotaState, namespace: str) -> Iterator[str]:
    """Yield a sentence for each limit that the pod of the attempt would exceed; none if it fits into the quotas."""
    quota = state.quotas.get(namespace)
    if quota is None or quota.problem:
        return
    usage = state.usage.get(namespace, {})
    above = dict(excess(state.ahead, usage, quota.max, INT64_MAX))
    if above:
        yield f"quota {quota.key}: {_amounts(above)} above its max, of which {_uses(usage, above)} is in use"
    sums = total(state.usage.get(owner, {}) for owner, parsed in state.quotas.items() if not parsed.problem)
    above = dict(excess(plus(sums, state.ahead_of_all), {}, state.guaranteed, 0))
    if above:
        borrowers = list(_borrowers(state, above))
        suffix = f"; {', '.join(borrowers)}" if borrowers else "; no quota has borrowed any"
        yield f"all quotas together: {_amounts(above)} above the sum of their min{suffix}"


def _borrowers(state: QuotaState, resources: Iterable[str]) -> Iterator[str]:
    """Yield who uses more of these resources than its min, the largest amounts first."""
    borrowed = []
    for namespace, quota in state.quotas.items():
        above = dict(excess(state.usage.get(namespace, {}), {}, quota.min, 0))
        amounts = {name: above[name] for name in resources if name in above}
        if amounts:
            borrowed.append((sorted(amounts.values(), reverse=True), quota.key, amounts))
    borrowed.sort(key=lambda entry: ([-amount for amount in entry[0]], entry[1]))
    for _, key, amounts in borrowed[:_BORROWERS_SHOWN]:
        yield f"{key} has borrowed {_amounts(amounts)}"
    if len(borrowed) > _BORROWERS_SHOWN:
        yield f"and {len(borrowed) - _BORROWERS_SHOWN} more have borrowed"


def _amounts(amounts: Requests) -> str:
    return " and ".join(f"{name} {amount_text(name, amount)}" for name, amount in sorted(amounts.items()))


def _uses(usage: Requests, resources: Iterable[str]) -> str:
    return _amounts({name: usage.get(name, 0) for name in resources})

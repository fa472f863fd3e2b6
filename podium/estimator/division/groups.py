"""Chooses groups of clusters, such as regions, so that they have enough clusters together.

Source: karmada pkg/scheduler/core/spreadconstraint/select_groups.go, v1.18.
Differs: after `STEPS_MAX` steps the search ends with an error; upstream searches at any cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from podium.estimator.division.errors import DivisionError

STEPS_MAX: Final = 500_000


class Group(NamedTuple):
    """A group with its number of clusters and its weight."""

    name: str
    size: int
    weight: int


class _Combination(NamedTuple):
    groups: list[Group]
    weight: int
    size: int
    number: int

    def begins_with(self, combination: _Combination) -> bool:
        """Return True if the given one is a shorter combination of this one's first groups."""
        return (
            len(combination.groups) < len(self.groups) and self.groups[: len(combination.groups)] == combination.groups
        )


def best_groups(groups: Sequence[Group], group_min: int, group_max: int, clusters_min: int) -> list[Group]:
    """Return the best combination of groups, the heaviest first; an empty one if there is none.

    Args:
        group_min, group_max: how many groups there may be.
        clusters_min: how many clusters they must have together.

    Raises:
        DivisionError: there are too many combinations.
    """
    # In ascending order of size, so that the combinations are numbered as upstream numbers them.
    by_size = sorted(groups, key=lambda group: (group.size, -group.weight, group.name))
    combinations: list[_Combination] = []
    for number, members in enumerate(_combinations(by_size, group_min, group_max, clusters_min), start=1):
        heaviest_first = sorted(members, key=lambda group: (-group.weight, group.name))
        weight, size = sum(group.weight for group in members), sum(group.size for group in members)
        combinations.append(_Combination(heaviest_first, weight, size, number))
    if not combinations:
        return []
    combinations.sort(key=lambda item: (-item.weight, -item.size, item.number))
    best = combinations[0]
    for combination in combinations[1:]:
        if best.begins_with(combination):
            best = combination
    return best.groups


def _combinations(
    groups: Sequence[Group], group_min: int, group_max: int, clusters_min: int
) -> Iterator[tuple[Group, ...]]:
    """Generate the combinations that are large enough, depth first. None of them is extended."""
    # The clusters in each group and all after it: a branch that cannot have enough is left out.
    counts_left = [*accumulate((group.size for group in reversed(groups)), initial=0)][::-1]
    stack: list[tuple[tuple[Group, ...], int, int]] = [((), 0, 0)]
    for _ in range(STEPS_MAX):
        if not stack:
            return
        members, count, begin = stack.pop()
        if count >= clusters_min and group_min <= len(members) <= group_max:
            yield members
        elif len(members) < group_max and count + counts_left[begin] >= clusters_min:
            # With no group to spare only the combination of all is tried.
            end = begin + 1 if len(groups) == group_min else len(groups)
            stack += [
                ((*members, groups[index]), count + groups[index].size, index + 1)
                for index in range(min(end, len(groups)) - 1, begin - 1, -1)
                if len(members) + len(groups) - index >= group_min
            ]
    raise DivisionError(f"{len(groups)} groups have too many combinations to try")

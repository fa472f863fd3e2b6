"""Allocating devices to the claims of one pod, node by node.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, v0.36.2 and
v0.37.2.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podium.devices.allocated import AllocatedDevices
from podium.devices.choices import Choices
from podium.devices.counters import AvailableCounters
from podium.devices.interruptible import Interruptible
from podium.devices.inventory import DeviceID, Inventory
from podium.devices.pools import NodePools, pools_of_node
from podium.devices.questions import Question, Questions
from podium.devices.requests import ClaimData, GetClass, RequestReader
from podium.devices.results import allocation_of
from podium.devices.search import Search
from podium.devices.step_budget import STEPS_MAX, StepBudget
from podium.devices.valid_answers import ClusterNodes, RowAnswers
from podium.objects.claims import AllocationResult, ResourceClaim

_ANSWERS_MAX: Final = 64


class Refusal(enum.Enum):
    """The reasons for finding no devices. The values are the messages that users see."""

    NOT_FOUND = "cannot allocate all claims"
    INVALID_POOLS = "invalid resource pools were encountered"


class Allocator:
    """Allocates devices on any number of nodes, each as if it were the only one.

    Args:
        class_of: returns the device class with a name.
        allocated: must not change while the allocator is in use, unless it is interrupted.
        random: for the ids of shares.
        steps_max: the limit of search steps on a node, with the selectors on the nodes before; 0 means any
            number.
        questions: if given, answers are cached for claims that are alike.
    """

    def __init__(
        self,
        inventory: Inventory,
        class_of: GetClass,
        allocated: AllocatedDevices,
        random: Random,
        steps_max: int = STEPS_MAX,
        questions: Questions | None = None,
    ) -> None:
        self._inventory = inventory
        self._class_of = class_of
        self._allocated = allocated
        self._available = AvailableCounters(allocated)
        self._random = random
        self._steps_max = steps_max
        self._budget = StepBudget(steps_max)
        self._questions = questions
        self._query: tuple[Sequence[ResourceClaim], Question] | None = None

    def allocate_interruptibly(
        self, node_name: str, labels: Mapping[str, str], claims: Sequence[ResourceClaim]
    ) -> Interruptible[tuple[AllocationResult, ...] | Refusal]:
        """Return the allocations of the claims on a node, in their order, or why there are none.

        Yields where it can be interrupted. If devices are allocated or freed meanwhile, it may miss that.

        Raises:
            AllocationError: the attempt for the pod has to end.
            StepsExceededError.
        """
        pools = pools_of_node(self._inventory, node_name, labels)
        # Devices that are shared, consume counters or are of one node only: the answer is of this node alone.
        if self._questions is None or not pools.is_repeatable:
            return (yield from self._search(pools, node_name, labels, claims))
        question, version = self._question(self._questions, claims), self._allocated.version(pools.names)
        cache = pools.answers.get(question)
        if cache is not None and cache[0] == version:
            answer: tuple[AllocationResult, ...] | Refusal = cache[1]
            return answer
        # Unused questions are not told apart; the others are asked again soon.
        if cache is None and len(pools.answers) >= _ANSWERS_MAX:
            pools.answers.clear()
        answer = yield from self._search(pools, node_name, labels, claims)
        pools.answers[question] = version, answer
        return answer

    def cached_answers(
        self, claims: Sequence[ResourceClaim], rows: NDArray[np.intp], cluster: ClusterNodes
    ) -> RowAnswers | None:
        """Return the cached answers of `allocate` on the rows' nodes; None if answers are not cached.

        Hundreds of nodes are asked for each pod, and a pod of the same kind has asked most of them before.
        """
        if self._questions is None:
            return None
        question = self._question(self._questions, claims)
        return self._questions.valid_answers(question, self._inventory, self._allocated).of_rows(rows, cluster)

    def _question(self, questions: Questions, claims: Sequence[ResourceClaim]) -> Question:
        query = self._query
        if query is None or query[0] is not claims:
            query = self._query = claims, questions.of(claims, self._class_of, self._steps_max)
        return query[1]

    def allocations(
        self, node_name: str, labels: Mapping[str, str], claims: Sequence[ResourceClaim], count_max: int
    ) -> Interruptible[list[tuple[AllocationResult, ...]]]:
        """Return all that `allocate` could find on a node, up to that many: each set of devices for each claim once.

        Unlike `allocate`, this misses nothing for counters that upstream does not give back. Yields where it can be
        interrupted.

        Raises: as `allocate`.
        """
        pools = pools_of_node(self._inventory, node_name, labels)
        reader = self._reader(pools, node_name, labels)
        claim_data = yield from reader.read(claims)
        choices = Choices(claim_data, self._allocated, self._available, self._inventory.rules, undoes_all=True)
        result: dict[tuple[frozenset[DeviceID], ...], tuple[AllocationResult, ...]] = {}

        def keep() -> bool:
            # By sets: in another order the same devices are no other allocation.
            key = tuple(frozenset(choice.device.id for choice in choice_list) for choice_list in choices.by_claim)
            if key not in result:
                result[key] = self._result(claim_data, search, choices, node_name)
            return len(result) >= count_max

        search = Search(claim_data, pools.pools, reader, choices, keep)
        yield from search.run()
        return list(result.values())

    def _search(
        self, pools: NodePools, node_name: str, labels: Mapping[str, str], claims: Sequence[ResourceClaim]
    ) -> Interruptible[tuple[AllocationResult, ...] | Refusal]:
        reader = self._reader(pools, node_name, labels)
        claim_data = yield from reader.read(claims)
        choices = Choices(claim_data, self._allocated, self._available, self._inventory.rules)
        search = Search(claim_data, pools.pools, reader, choices)
        if not (yield from search.run()):
            # Upstream's message differs if a pool was left out for being invalid.
            return Refusal.INVALID_POOLS if any(pool.is_invalid for pool in pools.pools) else Refusal.NOT_FOUND
        return self._result(claim_data, search, choices, node_name)

    def _reader(self, pools: NodePools, node_name: str, labels: Mapping[str, str]) -> RequestReader:
        self._budget.start_search()
        rules = self._inventory.rules
        return RequestReader(node_name, labels, pools.pools, self._allocated, self._class_of, self._budget, rules)

    def _result(
        self, claim_data: Sequence[ClaimData], search: Search, choices: Choices, node_name: str
    ) -> tuple[AllocationResult, ...]:
        return tuple(
            allocation_of(
                data.claim,
                [alternatives[search.selected[index, i]] for i, alternatives in enumerate(data.requests)],
                choices.by_claim[index],
                node_name,
                self._random,
                self._inventory.rules,
            )
            for index, data in enumerate(claim_data)
        )

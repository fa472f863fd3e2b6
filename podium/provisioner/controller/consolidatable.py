"""Writes the condition Consolidatable of NodeClaims where no Karpenter does it.

Owns when it is written: a Karpenter sets it at once, so a condition that has been wrong for a while is nobody's work.
The next time is computed, not polled for.

Source: karpenter pkg/controllers/nodeclaim/disruption/consolidation.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import anyio

from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError
from podium.objects.times import format_time
from podium.provisioner.apis.labels import NODE_POOL
from podium.provisioner.apis.objects import Condition, NodeClaim, true_condition
from podium.provisioner.controller.status import ObjectClient
from podium.provisioner.controller.watched import WatchedCluster
from podium.provisioner.disruption.conditions import CONSOLIDATABLE, consolidatable_in_s
from podium.provisioner.state.manifests import NODE_CLAIMS
from podium.server.wakeup import WakeUp

log = get_logger("provisioner")

GRACE_S: Final = 20.0
"""How long a condition may be wrong before it is written: a Karpenter would have done it long since."""

_LOOKED_AT_S_MAX: Final = 60.0
_PAUSE_S: Final = 1.0


class ConsolidatableWriter:
    """Keeps the condition of every NodeClaim as its NodePool's `consolidateAfter` says."""

    def __init__(self, client: ObjectClient, cluster: WatchedCluster, clock: Clock) -> None:
        self._client = client
        self._watched = cluster
        self._clock = clock
        self._wrong_since_s: dict[str, float] = {}
        self._faults: dict[str, str] = {}
        self._wake_up = WakeUp()
        cluster.on_pod(lambda _: self._wake_up.set())
        cluster.on_change(NODE_CLAIMS.kind, self._wake_up.set)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            due_s = await self.step()
            # Pods come in hundreds, and one look serves them all.
            await anyio.sleep(_PAUSE_S)
            await self._wake_up.wait(due_s)

    async def step(self) -> float:
        """Write what is due, and return in how many seconds the next condition is, unless something changes."""
        objects, now_s, monotonic_s = self._watched.objects(), self._clock.now(), self._clock.monotonic()
        pools = {pool.metadata.name: pool for pool in objects.node_pools}
        # Stand-ins for nodes without a NodeClaim are no objects that could be written.
        own_names = {claim.metadata.name for claim in self._watched.node_claims()}
        wrong_since_s: dict[str, float] = {}
        due_s = _LOOKED_AT_S_MAX
        for claim in objects.node_claims:
            pool = pools.get(claim.metadata.labels.get(NODE_POOL, ""))
            is_leaving = claim.metadata.deletion_timestamp is not None
            if pool is None or is_leaving or claim.metadata.name not in own_names:
                continue
            in_s = consolidatable_in_s(claim, pool, now_s)
            due_s = min(due_s, in_s or due_s)
            if (in_s == 0.0) == (true_condition(claim.status.conditions, CONSOLIDATABLE) is not None):
                continue
            uid = claim.metadata.uid
            since_s = wrong_since_s[uid] = self._wrong_since_s.get(uid, monotonic_s)
            left_s = GRACE_S - (monotonic_s - since_s)
            if left_s <= 0.0:
                await self._write(claim, is_consolidatable=in_s == 0.0, now_s=now_s)
                # Whether it came to pass is seen in the watch; if it did not, it is tried again.
                wrong_since_s[uid] = monotonic_s
                left_s = GRACE_S
            due_s = min(due_s, left_s)
        self._wrong_since_s = wrong_since_s
        self._faults = {uid: fault for uid, fault in self._faults.items() if uid in wrong_since_s}
        return due_s

    async def _write(self, claim: NodeClaim, *, is_consolidatable: bool, now_s: float) -> None:
        # A merge patch replaces the whole list.
        conditions = [_condition_json(item) for item in claim.status.conditions if item.type != CONSOLIDATABLE]
        if is_consolidatable:
            condition = Condition(
                type=CONSOLIDATABLE, status="True", reason=CONSOLIDATABLE, last_transition_time=format_time(now_s)
            )
            conditions.append(_condition_json(condition))
        try:
            await self._client.patch(NODE_CLAIMS, claim, {"status": {"conditions": conditions}}, "status")
        except ApiError as error:
            if self._faults.get(claim.metadata.uid) != str(error):
                log.warning("Condition cannot be written", node_claim=claim.metadata.name, error=str(error))
            self._faults[claim.metadata.uid] = str(error)
        else:
            log.info("Wrote condition", node_claim=claim.metadata.name, consolidatable=is_consolidatable)


def _condition_json(condition: Condition) -> Mapping[str, Any]:
    form = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": condition.last_transition_time,
        "observedGeneration": condition.observed_generation,
    }
    return {key: value for key, value in form.items() if value is not None}

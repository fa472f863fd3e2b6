"""Random clusters to consolidate, each from a seed."""

from __future__ import annotations

import random

from podium.provisioner.disruption.disruption_state import DisruptionState
from tests.unit.provisioner.clusters import CAPACITY_TYPE, Document, instance_type, pod, requirement
from tests.unit.provisioner.fleets import machine, node_pool, state_of

PRICES = {1: 0.12, 2: 0.22, 4: 0.4, 8: 0.6, 16: 1.0}
"""By size: the larger, the less a core costs."""

TYPES = tuple(instance_type(f"c-{size}", size, f"{2 * size}Gi", 50, price=price) for size, price in PRICES.items())
STAYS = {"nodeSelector": {"gpu": "yes"}}


def any_fleet(seed: int, *, nodes_max: int = 6) -> DisruptionState:
    """Some nodes of all sizes; some pods cannot move, some wait, and budgets differ."""
    chance = random.Random(seed)
    parts: list[Document] = []
    pods = 0
    for index in range(chance.randint(2, nodes_max)):
        size = chance.choice(tuple(PRICES))
        free = size * 1000 - 100
        parts += machine(
            f"n{index}",
            size,
            pool=chance.choice(("one", "two")),
            zone=chance.choice(("zone-1", "zone-2")),
            capacity_type=chance.choice(("on-demand", "on-demand", "spot")),
        )
        for _ in range(chance.randint(0, 4)):
            cpu = chance.choice((50, 300, 700, 1500, 3000))
            if cpu > free:
                continue
            free -= cpu
            pods += 1
            pod_fields = STAYS if chance.random() < 0.1 else {}
            parts.append(pod(f"p{pods}", node=f"n{index}", cpu=f"{cpu}m", memory="10Mi", **pod_fields))
    if chance.random() < 0.3:
        parts.append(pod("waits", cpu="500m", memory="10Mi"))
    pools = [
        node_pool(name, nodes=chance.choice(("100%", "100%", "50%", "1")), policy=policy)
        for name, policy in (("one", "WhenEmptyOrUnderutilized"), ("two", chance.choice(("Balanced", "WhenEmpty"))))
    ]
    return state_of(parts, pools, types=TYPES, replaces_spot_with_spot=chance.random() < 0.5)


def against_prefixes(seed: int) -> DisruptionState:
    """The first candidate can never go; the others only several at a time, but for a few that can go alone."""
    chance = random.Random(seed)
    free = {"annotations": {"karpenter.sh/disruption-cost": str(-(2**27) + 2**20)}}
    parts = [*machine("first", 8), pod("stays", node="first", cpu="7800m", memory="10Mi", metadata=free, **STAYS)]
    for index in range(chance.randint(2, 4)):
        name = f"n{index}"
        parts += machine(name, 4)
        # No two of these fit on one such node, and each fits on nothing smaller.
        parts.append(pod(f"p{index}", node=name, cpu=f"{chance.randint(2000, 3800)}m", memory="10Mi"))
    if chance.random() < 0.5:
        parts += [*machine("idle", 1), pod("small", node="idle", cpu="10m", memory="10Mi")]
    return state_of(parts, node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")]), types=TYPES)

"""What happens in each round of a run, chosen by chance before the run begins."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from random import Random


class Trouble(enum.Enum):
    """What happens beside the kill of a member."""

    NONE = "kill alone"
    SLOW = "and another member stopped, shorter than its Lease"
    LOST = "and another member stopped until it has lost its Lease"
    ETCD = "and etcd restarted"
    API_SERVER = "and the API server killed and restarted"


_WEIGHTS = {Trouble.NONE: 40, Trouble.SLOW: 15, Trouble.LOST: 20, Trouble.ETCD: 10, Trouble.API_SERVER: 15}
_APART_S = 2.0


@dataclass(frozen=True, slots=True)
class Round:
    """One kill, and what else happens.

    Attributes:
        victim, bystander: the members that are killed and stopped, by number.
        kill_after_s, trouble_after_s: since the beginning of the round.
        stop_share: the time that the other member is stopped, as a share of its Lease's duration.
        is_early: whether the round begins once the victim holds its Lease, before all have divided the nodes.
        restarts_at_once: whether the victim is started again before its nodes are taken over.
    """

    victim: int
    trouble: Trouble = Trouble.NONE
    bystander: int = 0
    kill_after_s: float = 0.0
    trouble_after_s: float = 0.0
    stop_share: float = 0.0
    is_early: bool = False
    restarts_at_once: bool = False


def random_rounds(count: int, members: int, random: Random) -> list[Round]:
    """Return so many rounds."""
    return [_random_round(members, random) for _ in range(count)]


def _random_round(members: int, random: Random) -> Round:
    [trouble] = random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    victim, bystander = random.sample(range(members), 2)
    return Round(
        victim,
        trouble,
        bystander,
        kill_after_s=random.uniform(0.0, _APART_S),
        trouble_after_s=random.uniform(0.0, _APART_S),
        stop_share=random.uniform(0.05, 0.6) if trouble is Trouble.SLOW else random.uniform(1.05, 1.5),
        is_early=random.random() < 0.3,
        restarts_at_once=random.random() < 0.5,
    )

"""Disruption budgets: how many nodes of a NodePool may be disrupted at a time, for each reason.

Owns the budgets of one NodePool and what they allow. Reads no clock, and never chooses the nodes to disrupt.

Source: karpenter pkg/apis/v1/nodepool.go (Budget) and pkg/controllers/disruption/helpers.go (NodePoolStatsFromNodes),
v1.15.0.
Differs: what the API server would refuse in a NodePool makes the budgets invalid here, too: a `schedule` without a
`duration`, a percentage over 100, seconds in a `duration`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias, cast, get_args

from msgspec import Struct

from podium.config.duration import parse_duration
from podium.objects.errors import FieldError
from podium.provisioner.apis.cron import CronSchedule

DisruptionReason: TypeAlias = Literal["Underutilized", "Empty", "Drifted", "Unhealthy"]
REASONS: Final[tuple[DisruptionReason, ...]] = get_args(DisruptionReason)

UNLIMITED: Final = 2**31 - 1
"""What is allowed if no budget is active."""

_NODES: Final = re.compile(r"(100|[0-9]{1,2})%|[0-9]+", re.ASCII)
_DURATION: Final = re.compile(r"([0-9]+[hm]|[0-9]+h[0-9]+m)(0s)?", re.ASCII)


class Budget(Struct, frozen=True):
    """A limit on the nodes that are disrupted at a time.

    Invariant: a schedule and a duration only come together.

    Attributes:
        nodes: The limit, as a number or as a percentage of the nodes of the NodePool.
        is_percentage: Whether `nodes` is a percentage.
        reasons: The reasons to which the budget applies; None means all of them.
        schedule: When the budget becomes active; None means that it always is.
        duration: For how long it stays active.
    """

    nodes: int
    is_percentage: bool = False
    reasons: frozenset[str] | None = None
    schedule: CronSchedule | None = None
    duration: timedelta | None = None

    def is_active(self, moment: datetime) -> bool:
        """Return True if the last hit of the schedule is less than the duration ago.

        As upstream, a schedule that never hits is always active.
        """
        if self.schedule is None or self.duration is None:
            return True
        moment = moment.astimezone(UTC)
        # A hit exactly `duration` ago no longer counts: `next_hit` looks after that moment.
        hit = self.schedule.next_hit(moment - self.duration)
        # A schedule that never hits again counts as active, as upstream: nothing has ended it.
        return hit is None or hit <= moment

    def nodes_allowed(self, nodes_counted: int, moment: datetime) -> int:
        """Return the number of nodes that may be disrupted: percentages rounded up, no limit if not active."""
        if not self.is_active(moment):
            return UNLIMITED
        # Rounded up in integers: 10% of three nodes lets one go.
        return -(-self.nodes * nodes_counted // 100) if self.is_percentage else self.nodes


class DisruptionBudgets(Struct, frozen=True):
    """The budgets of a NodePool.

    Attributes:
        budgets: Those that could be read.
        errors: What is wrong with the others. With an error nothing may be disrupted, for whatever reason.
    """

    budgets: tuple[Budget, ...] = (Budget(10, is_percentage=True),)
    errors: tuple[FieldError, ...] = ()

    @classmethod
    def parse(cls, raw: object, path: str = "spec.disruption.budgets") -> DisruptionBudgets:
        """Read the budgets from their form in the API. None means the default, which is one budget of 10%.

        Args:
            path: the path of the budgets, for errors.
        """
        if raw is None:
            return cls()
        if not isinstance(raw, list):
            return cls((), (FieldError(path, "must be a list"),))
        errors: list[FieldError] = []
        budgets = [_parse_budget(part, f"{path}[{index}]", errors) for index, part in enumerate(raw)]
        return cls(tuple(budget for budget in budgets if budget is not None), tuple(errors))

    def nodes_allowed(self, reason: DisruptionReason, nodes_counted: int, moment: datetime) -> int:
        """Return the number of nodes that may be disrupted for this reason at a time: the least of any budget.

        Args:
            nodes_counted: how many nodes of the NodePool are counted (`PoolNode.is_counted`).
            moment: the time, with a time zone.
        """
        # Fail closed: a budget that cannot be read may have been meant to protect everything.
        if self.errors:
            return 0
        return min(
            (
                budget.nodes_allowed(nodes_counted, moment)
                for budget in self.budgets
                if budget.reasons is None or reason in budget.reasons
            ),
            default=UNLIMITED,
        )

    def remaining(self, reason: DisruptionReason, nodes: Iterable[PoolNode], moment: datetime) -> int:
        """Return the number of further nodes that may be disrupted for this reason, beyond those that already are."""
        counted_nodes = [node for node in nodes if node.is_counted]
        used_count = sum(node.consumes(reason) for node in counted_nodes)
        return max(0, self.nodes_allowed(reason, len(counted_nodes), moment) - used_count)


class PoolNode(Struct, frozen=True, gc=False, kw_only=True):
    """A node as the budgets of its NodePool count it.

    Attributes:
        managed: It has a NodeClaim.
        initialized: It carries the label `karpenter.sh/initialized`.
        ready: Its condition Ready is True.
        rebooting: A reboot that repairs it is under way.
        marked_for_deletion: It is being disrupted or deleted.
        instance_terminating: The condition InstanceTerminating of its NodeClaim is True.
    """

    managed: bool = True
    initialized: bool = True
    ready: bool = True
    rebooting: bool = False
    marked_for_deletion: bool = False
    instance_terminating: bool = False

    @property
    def is_counted(self) -> bool:
        """Return True if it is one of the nodes of which a percentage is taken."""
        return self.managed and (self.initialized or self.rebooting) and not self.instance_terminating

    def consumes(self, reason: DisruptionReason) -> bool:
        """Return True if it takes up one of the nodes that are allowed. It must be counted.

        A node that is not ready is what a repair is for, so it does not take up the budget for Unhealthy.
        """
        # Repair must not be held up by the nodes that it is there for.
        return self.marked_for_deletion or self.rebooting or (not self.ready and reason != "Unhealthy")


def _parse_budget(raw: object, path: str, all_errors: list[FieldError]) -> Budget | None:
    if not isinstance(raw, Mapping):
        all_errors.append(FieldError(path, "must be an object"))
        return None
    errors: list[FieldError] = []
    fields = cast("Mapping[str, object]", raw)
    nodes, is_percentage = _parse_nodes(fields.get("nodes", "10%"), f"{path}.nodes", errors)
    reasons = _parse_reasons(fields.get("reasons"), f"{path}.reasons", errors)
    schedule = _parse_schedule(fields.get("schedule"), f"{path}.schedule", errors)
    duration = _parse_duration(fields.get("duration"), f"{path}.duration", errors)
    if (fields.get("schedule") is None) != (fields.get("duration") is None):
        errors.append(FieldError(path, "schedule and duration must be set together"))
    all_errors.extend(errors)
    return None if errors else Budget(nodes, is_percentage, reasons, schedule, duration)


def _parse_nodes(raw: object, path: str, errors: list[FieldError]) -> tuple[int, bool]:
    text = str(raw) if isinstance(raw, (int, str)) and not isinstance(raw, bool) else ""
    if not _NODES.fullmatch(text):
        errors.append(
            FieldError(path, f"must be a number of nodes or a percentage from 0% to 100%, not {_value_text(raw)}")
        )
        return 0, False
    digits = text.removesuffix("%").lstrip("0") or "0"
    # The length first: int() of a text of a million digits takes seconds.
    if len(digits) > len(str(UNLIMITED)) or int(digits) > UNLIMITED:
        errors.append(FieldError(path, f"must not be more than {UNLIMITED}"))
        return 0, False
    return int(digits), text.endswith("%")


def _parse_reasons(raw: object, path: str, errors: list[FieldError]) -> frozenset[str] | None:
    """Parse the reasons. As upstream, no list means every reason, and an empty list means none."""
    if raw is None:
        return None
    if not isinstance(raw, list):
        errors.append(FieldError(path, "must be a list"))
        return None
    for index, reason in enumerate(raw):
        if reason not in REASONS:
            errors.append(FieldError(f"{path}[{index}]", f"{_value_text(reason)} is not one of {', '.join(REASONS)}"))
    return frozenset(reason for reason in raw if reason in REASONS)


def _parse_schedule(raw: object, path: str, errors: list[FieldError]) -> CronSchedule | None:
    if raw is None:
        return None
    if not isinstance(raw, str):
        errors.append(FieldError(path, f"must be a cron schedule, not {_value_text(raw)}"))
        return None
    try:
        return CronSchedule.parse(raw)
    except ValueError as error:
        errors.append(FieldError(path, str(error)))
        return None


def _parse_duration(raw: object, path: str, errors: list[FieldError]) -> timedelta | None:
    if raw is None:
        return None
    if not isinstance(raw, str) or not _DURATION.fullmatch(raw):
        errors.append(FieldError(path, f"must be hours and minutes such as 1h30m, not {_value_text(raw)}"))
        return None
    try:
        return timedelta(seconds=parse_duration(raw))
    except ValueError as error:
        errors.append(FieldError(path, str(error)))
        return None


def _value_text(raw: object) -> str:
    return f'"{raw}"' if isinstance(raw, str) else repr(raw)

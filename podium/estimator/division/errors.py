"""The errors of a division, with upstream's texts."""

from __future__ import annotations

from podium.lib.error_text import UserFacingError


class DivisionError(UserFacingError):
    """The workload cannot be divided for another reason than too few replicas."""


class NotEnoughReplicas(DivisionError):  # noqa: N818 - upstream's word for it is "unschedulable"
    """The clusters have fewer available replicas than are asked for."""

"""The scores of one attempt as the recorder keeps them: references to arrays that the attempt has made anyway."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from podium.cluster import IntArray, Rows


class Scored(msgspec.Struct, eq=False):
    """The nodes that an attempt compared. A struct, because making one calls no function.

    Attributes:
        total: the total by node, including what extenders added.
        weighted: the weighted scores of plugins that were computed in this attempt.
        raw: the scores that were cached and need no normalising; None if none were.
        weights: the weight of each plugin in `raw`, in its order.
        constant: the weighted score of plugins that score all nodes alike.

    Shape: every array is as long as `rows` along its last axis.
    """

    rows: Rows
    total: IntArray
    weighted: dict[str, IntArray]
    raw: IntArray | None
    weights: Mapping[str, int]
    constant: Mapping[str, int]


NONE: Mapping[str, int] = {}
"""No weights, or no constants."""

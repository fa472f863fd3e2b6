"""The scores of one attempt as the recorder keeps them: references to arrays that the attempt has made anyway."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from podium.cluster import IntArray, Rows


class Scored(msgspec.Struct, eq=False):
    """The nodes that an attempt compared. A struct, because making one calls no function.

    Attributes:
        total: the total by node, including what extenders added.
        weighted: the weighted scores of plugins that were computed in this attempt.
        raw: the scores from 0 to 100 that were cached and need no normalising, plugin by plugin.
        weights: the weight of each plugin in `raw`, in its order.
        constant: the weighted score of plugins that score all nodes alike.
        is_extended: whether extenders were asked, so that `total` may be more than the sum of all these.

    Shape: every array is as long as `rows` along its last axis.
    """

    rows: Rows
    total: IntArray
    weighted: dict[str, IntArray]
    raw: IntArray
    weights: Mapping[str, int]
    constant: Mapping[str, int]
    is_extended: bool = False


NONE: Mapping[str, int] = {}
"""No weights, or no constants."""
NO_SCORES: IntArray = np.zeros(0, np.int64)

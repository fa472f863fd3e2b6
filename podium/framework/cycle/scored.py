"""The scores of one attempt as the recorder keeps them: small, and made while the attempt has them at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray
from podium.framework.cycle.cached_answers import SmallScores


class Scored(msgspec.Struct, eq=False):
    """The nodes that an attempt compared. A struct, because making one calls no function.

    Attributes:
        rows: of these nodes: a part of the snapshot's order where they are neighbours in it, or else small integers.
        computed: the weight of each plugin that was computed in this attempt, and its scores.
        raw: the scores that were cached and need no normalising, a row for each node, or nothing.
        weights: the weight of each plugin in `raw`, in the order of its columns, of which the last may mean nothing.
        constant: the weighted score of plugins that score all nodes alike.
        extended: the total by node if extenders were asked, who may have added to the sum of all these.
        chosen: the total of the node that was chosen.

    Shape: every array is as long as `rows`.
    """

    rows: NDArray[np.integer[Any]]
    computed: Mapping[str, tuple[int, SmallScores]]
    raw: SmallScores
    weights: Mapping[str, int]
    constant: Mapping[str, int]
    extended: IntArray | None = None
    chosen: int = 0


NONE: Mapping[str, Any] = {}
"""Nothing computed, no weights, or no constants."""
NO_SCORES: SmallScores = np.zeros((0, 0), np.int8)
_UINT16_MAX = 65_535


def small(rows: NDArray[np.integer[Any]], row_count: int) -> NDArray[np.unsignedinteger[Any]]:
    """A copy of the rows in the smallest type that holds the numbers of so many. Shape: as `rows`."""
    return rows.astype(np.uint16 if row_count <= _UINT16_MAX else np.uint32)

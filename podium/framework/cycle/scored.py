"""The scores of one attempt as the recorder keeps them: small, and made while the attempt has them at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray
from podium.framework.profile.score_history import ScoreHistory, SmallScores

NONE: Mapping[str, Any] = {}
"""Nothing computed, no weights, or no constants."""


class Scored(msgspec.Struct, eq=False, gc=False):
    """The nodes that an attempt compared. A struct, because making one calls no function; in no cycle of references.

    Attributes:
        rows: of these nodes: a part of the snapshot's order where they are neighbours in it, or else a copy.
        computed: the weight of each plugin that was computed in this attempt, and its scores.
        history: has the scores that were cached and need no normalising; None if there are none, or `raw` has them.
        version: the version of the history that was used.
        weights: the weight of each plugin in the history, in the order of its columns.
        constant: the weighted score of plugins that score all nodes alike.
        extended: the total by node if extenders were asked, who may have added to the sum of all these.
        chosen: the total of the node that was chosen.
        raw: what the history had for the rows, a row for each node.

    Shape: every array is as long as `rows`.
    """

    rows: NDArray[np.integer[Any]]
    computed: Mapping[str, tuple[int, SmallScores]]
    history: ScoreHistory | None = None
    version: int = 0
    weights: Mapping[str, int] = NONE
    constant: Mapping[str, int] = NONE
    extended: IntArray | None = None
    chosen: int = 0
    raw: SmallScores | None = None

    def raw_scores(self) -> SmallScores | None:
        """Return the cached scores, None without any. Shape: a row for each of `rows`, a column for each weight."""
        return self.raw if self.history is None else self.history.at(self.version).take(self.rows, axis=0)

    def leave_history(self) -> None:
        """Keep the cached scores of the rows themselves."""
        self.raw, self.history = self.raw_scores(), None

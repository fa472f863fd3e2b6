"""The default normalisation of scores to 0..MAX_NODE_SCORE.

Source: kubernetes pkg/scheduler/framework/plugins/helper/normalize_score.go, v1.36.2.
"""

from __future__ import annotations

import numpy as np

from podium.cluster import IntArray
from podium.framework import contract as fwk


def default_normalize(scores: IntArray, *, reverse: bool = False) -> IntArray:
    """Scale so that the highest score becomes MAX_NODE_SCORE, truncating; `reverse` makes low scores the good ones.

    If no score is above 0, the scores stay as they are; with `reverse` all become MAX_NODE_SCORE.

    Shape: as `scores`.
    """
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full(len(scores), fwk.MAX_NODE_SCORE, np.int64) if reverse else scores
    scaled_scores = truncated_quotient(scores * fwk.MAX_NODE_SCORE, highest)
    return fwk.MAX_NODE_SCORE - scaled_scores if reverse else scaled_scores


def truncated_quotient(dividend: IntArray, divisor: int) -> IntArray:
    """Return the quotient rounded towards zero, as Go divides; NumPy rounds down. The divisor is above 0.

    Shape: as `dividend`.
    """
    quotient = dividend // divisor
    if dividend.min(initial=0) < 0:
        quotient += (dividend < 0) & (quotient * divisor != dividend)
    return quotient

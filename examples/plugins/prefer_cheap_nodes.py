"""A score with args: the lower the price on a node's label, the better."""

from dataclasses import dataclass

import numpy as np

from podium.framework import MAX_NODE_SCORE, NodeInfo, ScorePlugin


class PreferCheapNodes(ScorePlugin):
    @dataclass(frozen=True)
    class Args:
        label: str
        unpriced: int = 1000

    args: Args

    def score(self, state, pod, node: NodeInfo) -> int:
        price = node.node.metadata.labels.get(self.args.label, "")
        return int(price) if price.isdecimal() else self.args.unpriced

    def normalize_scores(self, state, pod, scores):
        """The cheapest gets 100, the dearest 0."""
        cheapest, dearest = scores.min(), scores.max()
        if cheapest == dearest:
            return np.full_like(scores, MAX_NODE_SCORE)
        return (dearest - scores) * MAX_NODE_SCORE // (dearest - cheapest)

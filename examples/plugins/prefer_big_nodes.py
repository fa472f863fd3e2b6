from podium.framework import ScorePlugin


class PreferBigNodes(ScorePlugin):
    """The more cores a node has, the better."""

    def score(self, state, pod, node):
        return min(node.allocatable("cpu") // 1000, 100)

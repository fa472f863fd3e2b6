"""The names of nodes by row, to which recorded attempts refer."""

from __future__ import annotations


class NodeNames:
    """The names of nodes by row, as they were for some attempts.

    A row keeps its name after its node was deleted. A row that is given to another node needs new NodeNames.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.nbytes = 0

    def learn(self, names: list[str]) -> bool:
        """Add the names of rows that had none; return False if a row has another name now.

        Args:
            names: by row; "" for a row without a node.
        """
        current = self.names
        if any(old and new and old != new for old, new in zip(current, names, strict=False)):
            return False
        current[:] = [
            new or (current[row] if row < len(current) else "") for row, new in enumerate(names + current[len(names) :])
        ]
        self.nbytes = sum(57 + len(name) for name in current)
        return True

"""The names of nodes by row, which recorded attempts refer to."""

from __future__ import annotations


class NodeNames:
    """The names of nodes by row, as they were for some attempts.

    A row keeps its name after its node was deleted. A row that is given to another node needs new NodeNames.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.nbytes = 0

    def learn(self, names: list[str]) -> bool:
        """Add the names of rows that had none; False if a row has another name now.

        Args:
            names: by row; "" for a row without a node.
        """
        known = self.names
        if any(old and new and old != new for old, new in zip(known, names, strict=False)):
            return False
        known[:] = [
            new or (known[row] if row < len(known) else "") for row, new in enumerate(names + known[len(names) :])
        ]
        self.nbytes = sum(57 + len(name) for name in known)
        return True

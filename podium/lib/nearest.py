"""Names that somebody may have meant by one that does not exist."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

_NEAREST: Final = 3


def nearest(key: str, keys: Iterable[str]) -> str:
    """A question that names the most similar keys; whatever namespace they have, their names must be similar.

    Cost: about 20 us for each key.
    """
    name, by_name = key.rpartition("/")[2], defaultdict[str, list[str]](list)
    for each in keys:
        by_name[each.rpartition("/")[2]].append(each)
    similar = difflib.get_close_matches(name, by_name, n=_NEAREST, cutoff=0.6)
    shown = [each for found in similar for each in by_name[found]][:_NEAREST]
    return f"; did you mean {', '.join(shown)}?" if shown else ""

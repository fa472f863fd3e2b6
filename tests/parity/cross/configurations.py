"""New configuration files: subtrees of recorded ones grafted onto others, whether they make sense there or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import yaml

from tests.parity.cross.drawing import Json, chance


def crossed_configurations(texts: Sequence[str], seed: int, count: int) -> Iterator[tuple[str, str]]:
    """As many files, each by its name."""
    documents = [document for text in texts if isinstance(document := _read(text), dict)]
    for number in range(count):
        random = chance(seed, number)
        document = _copy(random.choice(documents))
        for _ in range(random.choice((1, 1, 2))):
            _graft(random, document, random.choice(documents))
        yield f"configuration-{seed}x{number}", yaml.safe_dump(document, sort_keys=False)


def _read(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _graft(random: Random, onto: Json, donor: Json) -> None:
    """Half of what the other says replaces, extends or goes into what is there."""
    for name, theirs in donor.items():
        if random.random() < 0.5:
            continue
        mine = onto.get(name)
        if isinstance(mine, dict) and isinstance(theirs, dict):
            _graft(random, mine, theirs)
        elif isinstance(mine, list) and isinstance(theirs, list):
            onto[name] = _splice(random, mine, theirs)
        else:
            onto[name] = _copy(theirs)


def _splice(random: Random, mine: list[Any], theirs: list[Any]) -> list[Any]:
    if mine and theirs and random.random() < 0.6:
        element, graft = random.choice(mine), random.choice(theirs)
        if isinstance(element, dict) and isinstance(graft, dict):
            _graft(random, element, graft)
            return mine
    copies: list[Any] = _copy(theirs)
    return [*mine, *copies] if random.random() < 0.5 else copies


def _copy(document: Any) -> Any:
    # By way of YAML's own types: a date is one for the scheduler too.
    return yaml.safe_load(yaml.safe_dump(document))

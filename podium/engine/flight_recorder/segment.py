"""Many attempts as columns, which never change but for the results of bindings.

Owns the columns, their smallest types, and how an attempt is read back. The sealing of a segment works on all its
attempts at once: its cost for one attempt is a few array copies and no function call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.engine.flight_recorder.attempts import RESULTS, Details, RecordedAttempt
from podium.engine.flight_recorder.entry import Entry, NodeNames
from podium.framework.contract.status import Status
from podium.framework.cycle.diagnosis import Diagnosis, Rejection
from podium.framework.cycle.scored import NO_SCORES, NONE, Scored
from podium.lib.transitions import Transition

_Column: TypeAlias = NDArray[Any]

_OBJECT_BYTES: Final = 2048
"""A segment and what it consists of, beside its arrays and texts."""
_SIGNATURE_BYTES: Final = 1024
"""The weights and constant scores that attempts at pods of one signature share."""
_STATUS_BYTES: Final = 512
"""A status with its verdict and its reasons, which many attempts may share."""
_NUMBER_OF: Final = {each.value: number for number, each in enumerate(RESULTS)}
_UINT16_MAX: Final = 65_535
_UNKNOWN_S: Final = -1.0
_NOT_SCORED: Final = Scored(NO_SCORES, NO_SCORES, {}, NO_SCORES, NONE, NONE)
_KINDS: Final = [
    (kind, int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    for kind in (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32)
]


class Segment:
    """Attempts of one kind in the order of their decisions.

    Attributes:
        head_bytes: what the attempts themselves take.
        names: the names of nodes that the details need.
    """

    def __init__(self, entries: Sequence[Entry], diagnoses: Sequence[Diagnosis]) -> None:
        """Args: `diagnoses` are those that the entries refer to by number."""
        self.count = len(entries)
        self.names = entries[0].names
        self._sequences = np.array([each.sequence for each in entries], np.int64)
        self._started_s = np.array([each.started_s for each in entries])
        self._decision_s = np.array([each.decision_s for each in entries], np.float32)
        self._total_s = np.array([each.total_s for each in entries], np.float32)
        self._results = np.array([each.result for each in entries], np.uint8)
        self._counts = np.array(
            [(each.attempt, each.node_count, each.examined, each.feasible) for each in entries], np.uint32
        ).reshape(len(entries), 4)
        self._keys = "\n".join([f"{each.namespace}/{each.name}/{each.uid}" for each in entries])
        self._nodes = "\n".join([each.node for each in entries])
        story = [line for each in entries for line in each.story]
        words = [(event, before, after, by) for _, event, before, after, by in story]
        texts = dict.fromkeys([text for line in words for text in line])
        texts.update(dict.fromkeys([text for each in entries for text in (each.message, each.profile)]))
        self._texts = tuple(texts)
        number = dict(zip(texts, range(len(texts)), strict=True))
        self._messages = _smallest(np.array([number[each.message] for each in entries], np.int64))
        self._profiles = _smallest(np.array([number[each.profile] for each in entries], np.int64))
        told = [at for at, each in zip(range(self.count), entries, strict=True) for _ in each.story]
        self._story_ends = _ends(told, self.count)
        self._story_s = np.array([line[0] for line in story])
        self._story = _smallest(np.array([number[text] for line in words for text in line], np.int64).reshape(-1, 4))
        self._late_messages: dict[int, str] = {}
        self._details: _DetailColumns | None = _DetailColumns(entries, diagnoses)
        self.head_bytes = self._count_bytes()

    def _count_bytes(self) -> int:
        columns = (self._sequences, self._started_s, self._decision_s, self._total_s, self._results, self._counts)
        more = (self._messages, self._profiles, self._story_ends, self._story_s, self._story)
        return _OBJECT_BYTES + _array_bytes((*columns, *more)) + _text_bytes((self._keys, self._nodes, *self._texts))

    @property
    def detail_bytes(self) -> int:
        """What the verdicts and scores take."""
        return 0 if self._details is None else self._details.nbytes

    def drop_details(self) -> None:
        """Forget the verdicts and scores."""
        self._details, self.names = None, NodeNames()

    def end(self, position: int, result: int, total_s: float, message: str) -> None:
        """Note how an attempt has ended that was being bound."""
        self._results[position], self._total_s[position] = result, total_s
        if message:
            self._late_messages[position] = message
            self.head_bytes += _text_bytes([message])

    # ------------------------------------------------------------ reading

    def newest_first(self, namespace: str, name: str, result: str) -> Iterator[int]:
        """The positions of the attempts at such pods; "" for any."""
        start = f"{namespace}/{name}/" if name and namespace else f"{namespace}/" if namespace else ""
        within = f"/{name}/" if name else ""
        if start not in self._keys or within not in self._keys:
            return
        positions = range(self.count) if not result else np.flatnonzero(self._results == _NUMBER_OF[result]).tolist()
        keys = self._keys.split("\n")
        for position in reversed(positions):
            if keys[position].startswith(start) and within in keys[position]:
                yield position

    def position_of(self, sequence: int) -> int | None:
        """Where the attempt with that number is; None if it is not here."""
        position = int(np.searchsorted(self._sequences, sequence))
        return position if position < self.count and self._sequences[position] == sequence else None

    def attempt(self, position: int) -> RecordedAttempt:
        """The attempt at this position."""
        namespace, name, uid = self._keys.split("\n")[position].split("/", 2)
        attempt, node_count, examined, feasible = self._counts[position].tolist()
        total_s = float(self._total_s[position])
        return RecordedAttempt(
            sequence=int(self._sequences[position]),
            namespace=namespace,
            name=name,
            uid=uid,
            profile=self._texts[self._profiles[position]],
            attempt=attempt,
            started_s=float(self._started_s[position]),
            decision_s=float(self._decision_s[position]),
            total_s=None if total_s == _UNKNOWN_S else total_s,
            result=RESULTS[self._results[position]],
            node=self._nodes.split("\n")[position],
            message=self._late_messages.get(position) or self._texts[self._messages[position]],
            node_count=node_count,
            examined=examined,
            feasible=feasible,
            story=tuple(self._transitions(position)),
        )

    def details(self, position: int) -> Details | None:
        """The verdicts and scores of the attempt; None if they were dropped."""
        return None if self._details is None else self._details.of(position)

    def _transitions(self, position: int) -> Iterator[Transition]:
        begin = int(self._story_ends[position - 1]) if position else 0
        for at in range(begin, int(self._story_ends[position])):
            event, before, after, by = (self._texts[number] for number in self._story[at])
            yield Transition(float(self._story_s[at]), event, before, after, by)


class _DetailColumns:
    """The verdicts and scores of a segment's attempts, each kind in one array for all."""

    def __init__(self, entries: Sequence[Entry], diagnoses: Sequence[Diagnosis]) -> None:
        self.names = entries[0].names
        scored = [_NOT_SCORED if each.scored is None else each.scored for each in entries]
        self._rows = _Pieces(
            [each.rows for each in scored], np.uint16 if len(self.names.names) <= _UINT16_MAX else np.uint32
        )
        # The total is the sum of what the plugins gave, unless extenders added to it.
        self._totals = _Pieces([each.total if each.is_extended else NO_SCORES for each in scored])
        self._raw = _Pieces([each.raw for each in scored], np.uint8)
        self._weights = tuple([each.weights for each in scored])
        self._constants = tuple([each.constant for each in scored])
        self._plugins = tuple([(*each.weighted,) for each in scored])
        self._weighted = _Pieces([each.weighted[plugin] for each in scored for plugin in each.weighted])
        self._diagnosis_of = np.array([each.diagnosis for each in entries], np.int32)
        numbered = zip(range(len(diagnoses)), diagnoses, strict=True)
        owned = [(number, part) for number, each in numbered for part in each.rejections]
        self._ends = _ends([number for number, _ in owned], len(diagnoses))
        rejections = [part for _, part in owned]
        self._rejected = _Pieces([each.rows for each in rejections])
        self._verdicts = _Pieces([each.verdicts for each in rejections])
        self._meanings = tuple([each.meanings for each in rejections])
        self._single = tuple([each.single or None for each in diagnoses])
        self._absent = tuple([each.absent if each.absent.reasons else None for each in diagnoses])
        self.nbytes = self._count_bytes()

    def _count_bytes(self) -> int:
        pieces = (self._rows, self._totals, self._raw, self._weighted, self._rejected, self._verdicts)
        signatures = {id(each) for each in self._weights}
        meanings = (*self._meanings, *[each for each in self._single if each])
        statuses = sum([1 for each in meanings for _ in each])
        return (
            _OBJECT_BYTES
            + sum([each.ends.nbytes + each.values.nbytes for each in pieces])
            + _array_bytes((self._diagnosis_of, self._ends))
            + 24 * len(self._weights)
            + sum([40 + 8 * len(each) for each in self._plugins if each])
            + _SIGNATURE_BYTES * len(signatures)
            + 8 * (len(self._meanings) + len(self._single) + len(self._absent))
            + _STATUS_BYTES * (statuses + len(self._absent))
        )

    def of(self, position: int) -> Details:
        """The details of the attempt at this position."""
        names = self.names.names
        rejected: dict[str, tuple[str, str]] = {}
        all_others: Status | None = None
        if (number := int(self._diagnosis_of[position])) >= 0:
            all_others = self._absent[number]
            for part in range(int(self._ends[number - 1]) if number else 0, int(self._ends[number])):
                rejection = Rejection(self._rejected.of(part), self._verdicts.of(part), self._meanings[part])
                for row, status in rejection.by_row():
                    rejected[names[row]] = _told(status)
            for row, status in (self._single[number] or {}).items():
                rejected[names[row]] = _told(status)
        compared = [names[row] for row in self._rows.of(position).tolist()]
        plugins = self._scores(position, len(compared)) if compared else {}
        extended = self._totals.of(position).tolist()
        totals = extended or np.sum([*plugins.values(), np.zeros(len(compared), np.int64)], axis=0).tolist()
        scores = {plugin: each.tolist() for plugin, each in plugins.items()}
        told_of_all = None if all_others is None else _told(all_others)
        return Details(rejected, told_of_all, dict(zip(compared, totals, strict=True)), scores)

    def _scores(self, position: int, count: int) -> dict[str, NDArray[np.int64]]:
        """The weighted scores of the nodes that the attempt compared, by plugin."""
        weights, computed = self._weights[position], self._plugins[position]
        raw = self._raw.of(position).reshape(len(weights), count)
        found = {plugin: weights[plugin] * scores for plugin, scores in zip(weights, raw, strict=True)}
        first = sum([len(each) for each in self._plugins[:position]])
        found |= {plugin: self._weighted.of(first + at) for at, plugin in enumerate(computed)}
        return found | {plugin: np.full(count, score) for plugin, score in self._constants[position].items()}


class _Pieces:
    """Arrays of different sizes, one after the other in one array.

    Args:
        kind: the type that is known to hold them all; None for the smallest, which takes longer to find.
    """

    def __init__(self, pieces: Sequence[_Column], kind: type[np.unsignedinteger[Any]] | None = None) -> None:
        self.ends = np.add.accumulate(np.array([each.size for each in pieces], np.uint32), dtype=np.uint32)
        if kind is not None:
            self.values = np.concatenate(pieces, axis=None, dtype=kind, casting="unsafe")
        else:
            self.values = _smallest(np.concatenate(pieces)) if pieces else NO_SCORES

    def of(self, position: int) -> NDArray[np.int64]:
        begin = int(self.ends[position - 1]) if position else 0
        return self.values[begin : int(self.ends[position])].astype(np.int64)


def _smallest(values: _Column) -> _Column:
    """The same integers in the smallest type that holds them all."""
    if not values.size:
        return values.astype(np.uint8)
    flat = values.ravel()
    least, greatest = np.minimum.reduce(flat), np.maximum.reduce(flat)
    for kind, lowest, highest in _KINDS:
        if lowest <= least and greatest <= highest:
            return values.astype(kind)
    return values


def _ends(owners: Sequence[int], count: int) -> _Column:
    """Where the things of each owner end in a list that has them owner by owner."""
    return np.add.accumulate(np.bincount(np.array(owners, np.intp), minlength=count), dtype=np.uint32)


def _told(status: Status) -> tuple[str, str]:
    return status.plugin, status.message


def _array_bytes(arrays: Sequence[_Column]) -> int:
    return sum([each.nbytes for each in arrays])


def _text_bytes(texts: Sequence[str]) -> int:
    """At most four bytes for a character, and what every text has beside them."""
    together = "".join(texts)
    return 64 * len(texts) + (len(together) if together.isascii() else 4 * len(together))

"""Redacts texts of a recording that may hold a secret and decide nothing, above all values of environment variables.

Owns which texts these are: annotations with whole manifests, as `kubectl apply` and other tools keep them; error texts
of the API server, into which a webhook may write anything; and messages of pods' conditions, which repeat them. A mark
replaces each text. Equal texts get equal marks, so that a replay decides as the run did. A mark is a hash whose key is
never stored: guesses of the secret cannot be checked against it.

Cost: 1 us for an object without such texts, on the recorder's thread.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from podium.lib.error_text import cut, error_text
from podium.objects.api_errors import REASONS
from podium.objects.core import Pod
from podium.objects.meta import ObjectMeta
from podium.recording.entries import RAISED, REFUSED, error_of, unexpected_error

MARK: Final = "left out of the recording: "
"""The prefix of every mark."""
_KEY_BYTES: Final = 32
_DIGEST_BYTES: Final = 10
_MARKS_KEPT: Final = 1 << 14
_KEPT_LENGTH_MAX: Final = 512
"""Marks of longer texts are not cached: hashing them again costs less than the memory."""
_TEXTS_LENGTH_MAX: Final = 1 << 24
_TEXTS_TRIED: Final = 64
_BEFORE_A_TEXT: Final = re.compile(": ")
_VALUE_LENGTH_MAX: Final = 256
"""Longer values of annotations count as documents, which may be compressed. podium reads no value of that length."""


class Redactor:
    """Replaces texts by marks, for one recording."""

    def __init__(self) -> None:
        key = os.urandom(_KEY_BYTES)

        def mark(text: str) -> str:
            content = text.encode("utf-8", "surrogatepass")
            return MARK + blake2b(content, key=key, digest_size=_DIGEST_BYTES).hexdigest()

        self._mark = mark
        self._cached_mark = lru_cache(_MARKS_KEPT)(mark)
        self._error_marks: dict[str, str] = {}
        """The marked forms of the latest error texts, oldest first."""
        self._error_length = 0

    def mark(self, text: str) -> str:
        """Return the mark of the text; "" for ""."""
        if not text:
            return ""
        return self._cached_mark(text) if len(text) <= _KEPT_LENGTH_MAX else self._mark(text)

    # ------------------------------------------------------------ objects

    def item(self, item: Any) -> Any:
        """Return the object with its texts redacted."""
        if isinstance(item, Pod):
            item = self._pod(item)
        meta = getattr(item, "metadata", None)
        # Most pods have no annotations and no messages, and this runs for each state of each pod.
        if isinstance(meta, ObjectMeta) and meta.annotations and any(map(_is_document, meta.annotations.values())):
            item = replace(item, metadata=self._metadata(meta))
        return item

    def _pod(self, pod: Pod) -> Pod:
        """Mark the messages of the pod's conditions."""
        conditions = pod.status.conditions
        if not conditions or not any(condition.message for condition in conditions):
            return pod
        conditions = tuple(replace(condition, message=self.mark(condition.message)) for condition in conditions)
        return replace(pod, status=replace(pod.status, conditions=conditions))

    def _metadata(self, meta: ObjectMeta) -> ObjectMeta:
        annotations = {
            key: self.mark(value) if _is_document(value) else value for key, value in meta.annotations.items()
        }
        return replace(meta, annotations=annotations)

    # ------------------------------------------------------------ errors

    def answer(self, outcome: int, value: Any) -> Any:
        """Redact the value of an `ANSWER` without an object."""
        if outcome == RAISED:
            self._learn(value, error_text(unexpected_error(self.mark(value))))
            return self.mark(value)
        if outcome != REFUSED:
            return value
        name, message, code, reason, *details = value
        fields = (name, self.mark(message), code, reason if reason in REASONS else self.mark(reason), *details)
        self._learn(message, fields[1])
        self._learn(str(error_of([*value])), str(error_of([*fields])))
        return fields

    def failure(self, failure: tuple[str, str, str]) -> tuple[str, str, str, str]:
        """Redact the error texts in the message of a `FAILED`, and add the mark of the message in conditions."""
        uid, result, message = failure
        return uid, result, self._without_errors(message), self.mark(message)

    def _learn(self, text: str, marked_text: str) -> None:
        """Have the error text replaced in later messages."""
        if text:
            # A message holds it whole or cut. `_forget` first: a repeated text counts as a new one.
            for variant in (text, cut(text)):
                self._forget(variant)
                self._error_marks[variant] = marked_text
                self._error_length += len(variant)
        while self._error_length > _TEXTS_LENGTH_MAX and len(self._error_marks) > 1:
            self._forget(next(iter(self._error_marks)))

    def _forget(self, text: str) -> None:
        if self._error_marks.pop(text, None) is not None:
            self._error_length -= len(text)

    def _without_errors(self, message: str) -> str:
        if not self._error_marks:
            return message
        # Nearly always the error text stands at the end, after podium's own words.
        for position in (0, *(match.end() for match in _BEFORE_A_TEXT.finditer(message))):
            if (marked_text := self._error_marks.get(message[position:])) is not None:
                return message[:position] + marked_text
        for text in islice(reversed(self._error_marks), _TEXTS_TRIED):
            if text in message:
                message = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", self._error_marks[text], message)
        return message


def _is_document(value: str) -> bool:
    """Tell whether an annotation's value may hold a document: JSON, YAML, or a text longer than any name."""
    return len(value) > _VALUE_LENGTH_MAX or "\n" in value or value.lstrip()[:1] in ("{", "[")

"""Leaves out of a recording what may hold a secret and decides nothing: values of environment variables, above all.

Owns which texts these are: annotations with whole manifests, as `kubectl apply` and other tools keep them; the texts of
errors of the API server, into which a webhook may write anything; and the words of pods' conditions, which repeat
them. In the place of each stands a mark, so that what is equal stays equal, and a replay goes on as the run did. A mark
is a hash with a key that is written nowhere: nobody can try out which secret was there.

Cost: 1 us for an object that has none of them, on the recorder's thread.
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
from podium.recording import tape

MARK: Final = "left out of the recording: "
"""How a mark begins."""
_KEY_BYTES: Final = 32
_DIGEST_BYTES: Final = 10
_MARKS_KEPT: Final = 1 << 14
_KEPT_LENGTH_MAX: Final = 512
"""Marks of longer texts are made again each time, which takes less than the memory."""
_TEXTS_LENGTH_MAX: Final = 1 << 24
_TEXTS_TRIED: Final = 64
_BEFORE_A_TEXT: Final = re.compile(": ")
_VALUE_LENGTH_MAX: Final = 256
"""Longer values of annotations are documents, compressed ones among them. None that podium reads is as long."""


class Withholder:
    """Puts marks in the places of texts, for one recording."""

    def __init__(self) -> None:
        key = os.urandom(_KEY_BYTES)

        def mark(text: str) -> str:
            content = text.encode("utf-8", "surrogatepass")
            return MARK + blake2b(content, key=key, digest_size=_DIGEST_BYTES).hexdigest()

        self._mark = mark
        self._kept_mark = lru_cache(_MARKS_KEPT)(mark)
        self._replaced: dict[str, str] = {}
        """What stands in the place of the latest texts of errors."""
        self._replaced_length = 0

    def mark(self, text: str) -> str:
        """What stands in the place of the text; nothing for nothing."""
        if not text:
            return ""
        return self._kept_mark(text) if len(text) <= _KEPT_LENGTH_MAX else self._mark(text)

    # ------------------------------------------------------------ objects

    def item(self, item: Any) -> Any:
        """The object with its marks."""
        if isinstance(item, Pod) and (said := self._said(item)) is not item:
            item = said
        meta = getattr(item, "metadata", None)
        if isinstance(meta, ObjectMeta) and (changed := self._metadata(meta)) is not meta:
            item = replace(item, metadata=changed)
        return item

    def _said(self, pod: Pod) -> Pod:
        """The pod with marks for the messages of its conditions."""
        conditions = pod.status.conditions
        if not any(condition.message for condition in conditions):
            return pod
        marked = tuple(replace(condition, message=self.mark(condition.message)) for condition in conditions)
        return replace(pod, status=replace(pod.status, conditions=marked))

    def _metadata(self, meta: ObjectMeta) -> ObjectMeta:
        if not any(map(_is_document, meta.annotations.values())):
            return meta
        annotations = {
            key: self.mark(value) if _is_document(value) else value for key, value in meta.annotations.items()
        }
        return replace(meta, annotations=annotations)

    # ------------------------------------------------------------ errors

    def answer(self, outcome: int, value: Any) -> Any:
        """What an `ANSWER` without an object says."""
        if outcome == tape.RAISED:
            self._without(value, error_text(tape.raised(self.mark(value))))
            return self.mark(value)
        if outcome != tape.REFUSED:
            return value
        name, message, code, reason, *rest = value
        marked = (name, self.mark(message), code, reason if reason in REASONS else self.mark(reason), *rest)
        self._without(message, marked[1])
        self._without(str(tape.error_of([*value])), str(tape.error_of([*marked])))
        return marked

    def failed(self, failed: tuple[str, str, str]) -> tuple[str, str, str, str]:
        """What a `FAILED` says: its message without texts of errors, and the mark of the message in conditions."""
        uid, result, message = failed
        return uid, result, self._without_errors(message), self.mark(message)

    def _without(self, text: str, marked: str) -> None:
        """Have the text of an error replaced in what follows."""
        if text:
            # A message has it whole or cut, and both again at the end: the oldest texts are forgotten first.
            for shown in (text, cut(text)):
                self._forget(shown)
                self._replaced[shown] = marked
                self._replaced_length += len(shown)
        while self._replaced_length > _TEXTS_LENGTH_MAX and len(self._replaced) > 1:
            self._forget(next(iter(self._replaced)))

    def _forget(self, text: str) -> None:
        if self._replaced.pop(text, None) is not None:
            self._replaced_length -= len(text)

    def _without_errors(self, message: str) -> str:
        if not self._replaced:
            return message
        # Nearly always the text stands at the end, after what podium says of it.
        for at in (0, *(found.end() for found in _BEFORE_A_TEXT.finditer(message))):
            if (marked := self._replaced.get(message[at:])) is not None:
                return message[:at] + marked
        for text in islice(reversed(self._replaced), _TEXTS_TRIED):
            if text in message:
                message = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", self._replaced[text], message)
        return message


def _is_document(value: str) -> bool:
    """Whether an annotation's value is, or may hold, a document: JSON, YAML, or longer than any name."""
    return len(value) > _VALUE_LENGTH_MAX or "\n" in value or value.lstrip()[:1] in ("{", "[")

from __future__ import annotations

import pytest

from podium.lib.error_words import LENGTH_MAX, Worded, words_of


class Sentence(Worded):
    pass


class MuteError(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class OddError(Exception):
    def __str__(self) -> str:
        return 42  # type: ignore[return-value]  # noqa: PLE0307 - as a stranger may


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("team"), "KeyError: 'team'"),
        (AssertionError(), "AssertionError"),
        (SystemExit(3), "SystemExit: 3"),
        (Sentence("the file is gone"), "the file is gone"),
        (Sentence(), "Sentence"),
        (MuteError(), "MuteError, and its text cannot be read: SystemExit"),
        (OddError(), "OddError, and its text cannot be read: TypeError"),
    ],
)
def test_an_exception_is_told_with_its_type_unless_its_text_is_a_sentence(error: BaseException, words: str) -> None:
    assert words_of(error) == words


def test_a_text_without_end_is_cut() -> None:
    words = words_of(ValueError("x" * 10_000_000))
    assert len(words) == LENGTH_MAX + len("ValueError: ")
    assert words.endswith("x ...")

from __future__ import annotations

import pytest

from podium.lib.error_text import LENGTH_MAX, UserFacingError, error_text


class PlainError(UserFacingError):
    pass


class MuteError(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class OddError(Exception):
    def __str__(self) -> str:
        return 42  # type: ignore[return-value]  # noqa: PLE0307 - as a stranger may


class EvilText(str):
    def __len__(self) -> int:
        raise SystemExit(4)

    __str__ = __format__ = __len__  # type: ignore[assignment]


class EvilError(Exception):
    def __str__(self) -> str:
        return EvilText("evil")


class Nameless(type):
    @property
    def __name__(cls) -> str:
        raise SystemExit(5)


class NamelessError(Exception, metaclass=Nameless):
    pass


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("team"), "KeyError: 'team'"),
        (AssertionError(), "AssertionError"),
        (SystemExit(3), "SystemExit: 3"),
        (PlainError("the file is gone"), "the file is gone"),
        (PlainError(), "PlainError"),
        (MuteError(), "MuteError, and its text cannot be read: SystemExit"),
        (EvilError(), "EvilError: evil"),
        (NamelessError("x"), "NamelessError: x"),
        (OddError(), "OddError, and its text cannot be read: TypeError"),
    ],
)
def test_an_exception_is_shown_with_its_type_unless_its_text_is_a_sentence(error: BaseException, words: str) -> None:
    assert error_text(error) == words


def test_a_text_without_end_is_cut() -> None:
    words = error_text(ValueError("x" * 10_000_000))
    assert len(words) == LENGTH_MAX + len("ValueError: ")
    assert words.endswith("x ...")

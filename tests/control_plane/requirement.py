"""What tests need built: obtained with the progress shown; else they are skipped, or fail where it is required."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

from tests.control_plane.builder import BuildError
from tests.control_plane.progress import Progress

T = TypeVar("T")


def built_or_skipped(config: pytest.Config, subject: str, obtain: Callable[[Progress], T]) -> T:
    """What `obtain` finds or builds; `PODIUM_REQUIRE_CONTROL_PLANE=1` makes it required."""
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    try:
        # The build's progress is for the person who waits, not for the test's report.
        with capture.global_and_fixture_disabled():
            return obtain(Progress())
    except BuildError as problem:
        reason = str(problem)
    if os.environ.get("PODIUM_REQUIRE_CONTROL_PLANE") == "1":
        pytest.fail(f"{subject} is required: {reason}", pytrace=False)
    pytest.skip(f"no {subject}: {reason}")

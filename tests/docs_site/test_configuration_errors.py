"""Every place in `podium.config` that finds an error is shown on the page."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import podium.config
from podium.config import ErrorList, FieldError
from tests.docs_site import configuration_errors as page

CODE = Path(podium.config.__file__).parent
FINDERS = {"invalid", "required", "duplicate", "not_supported", "forbidden", "FieldError"}
LEASE = ("resourceLock", "resourceNamespace", "resourceName")
NOT_SHOWN = {
    # The file is no text, or needs more memory than there is.
    ("loader.py", "FieldError('', ErrorKind.SYNTAX, None, detail)"),
    ("document.py", "FieldError('', ErrorKind.SYNTAX, None, _TOO_DEEP)"),
    # Defaults take the place of what is missing or empty in a file.
    *(("validation.py", f"errors.required(f'{{path}}.{key}')") for key in LEASE),
    ("validation.py", "errors.required(path)"),
    ("loader.py", "FieldError(f'profiles[{i}].pluginConfig', ErrorKind.PROFILE, None, detail)"),
    # podium has all plugins of kube-scheduler.
    ("support.py", "FieldError(path, ErrorKind.FORBIDDEN, None, detail, file.present.get(path))"),
}

Place = tuple[str, str, range]


def places() -> Iterator[Place]:
    """File, function and lines of each call that makes an error."""
    for path in CODE.glob("*.py"):
        if path.name == "field_errors.py":
            continue
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                for call in ast.walk(function):
                    if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in FINDERS:
                        yield path.name, ast.unparse(call), range(call.lineno, (call.end_lineno or 0) + 1)


def test_every_error_that_the_code_can_find_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    errors_raised: set[tuple[str, int]] = set()
    init = FieldError.__init__

    def note(self: FieldError, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        frame = sys._getframe(1)
        while frame.f_code.co_filename == sys.modules[ErrorList.__module__].__file__:
            assert frame.f_back is not None
            frame = frame.f_back
        errors_raised.add((Path(frame.f_code.co_filename).name, frame.f_lineno))

    monkeypatch.setattr(FieldError, "__init__", note)
    for wrong in page.WRONG:
        assert page.found_in(wrong)
    finders = list(places())
    assert len(finders) > 70
    missing = {
        (file, call) for file, call, lines in finders if not any((file, line) in errors_raised for line in lines)
    }
    assert missing == NOT_SHOWN


def test_each_file_is_shown_with_all_that_is_said_about_it() -> None:
    text = page.errors()
    zero = "parallelism: 0\n# parallelism: Invalid value: 0: should be an integer value greater than zero\n"
    assert "\n## Invalid value\n\n```yaml\n" in text
    assert f"```yaml\n{zero}```" in text
    assert 'paralelism: 8\n# paralelism: unknown field: did you mean "parallelism"?\n' in text
    for gate in ("DRASchedulerFilterTimeout", "StorageCapacityScoring"):
        assert f"# --feature-gates={gate}=false\n" in text

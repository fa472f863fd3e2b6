import errno
import io

import pytest

from podium.cli.command_errors import report_fatal_errors


class _Full(io.StringIO):
    def __init__(self, number):
        super().__init__()
        self.number = number

    def flush(self):
        raise OSError(self.number, "it takes no more")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), "Error: not enough memory for this input\n"),
        (RecursionError("deep"), "Error: an input is nested too deep\n"),
        (OSError(errno.ENOSPC, "No space left on device"), "Error: cannot write the output: No space left on device\n"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), ""),
    ],
)
def test_what_any_command_may_meet_is_one_line_and_1(error, line, capsys):
    with pytest.raises(SystemExit) as exit_error, report_fatal_errors():
        raise error
    assert exit_error.value.code == 1
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("error", [KeyError("mistake"), FileNotFoundError(errno.ENOENT, "gone", "config.yaml")])
def test_a_mistake_keeps_its_traceback(error):
    with pytest.raises(type(error)), report_fatal_errors():
        raise error


def test_what_is_not_written_by_the_end_is_an_error_though_the_command_went_well(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout", _Full(errno.ENOSPC))
    with pytest.raises(SystemExit) as error, report_fatal_errors():
        raise SystemExit(0)
    assert error.value.code == 1
    assert capsys.readouterr().err == "Error: cannot write the output: it takes no more\n"

"""How podium logs: one line per entry, JSON for machines or colours for a terminal, on standard error.

Owns structlog's configuration, the bridge from the standard library's loggers, and verbosity. Never logs a secret: what
stands under a key that sounds like one is replaced, and so are bearer tokens and passwords of URLs in text.

Each module writes `log = get_logger("queues")` (`lib.log`) and calls `log.info("Pod moved", pod=…)`. The configuration
may be changed at any time and holds for all loggers made before. `event` is structlog's word for the message, so a
cluster event is logged as `cluster_event`.

Cost: as a plain structlog line with orjson, 4-8 us, and one write for all lines of 10 ms; a debug line that is not
shown costs 0.2 us if `log` is bound, 1.2 us if it is the module's.
Differs: the default is JSON, not klog's text; of `-v` only two levels remain: info, and from 4 on debug.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import re
import sys
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final, Literal, cast

import orjson
import structlog
from structlog.typing import Processor, WrappedLogger

from podium.telemetry.log_text import (
    REDACTED,
    printable,
    printable_json,
    printable_lines,
    printable_value,
    without_user_info,
)
from podium.telemetry.log_writer import LogWriter

Form = Literal["json", "console"]

VERBOSITY_DEFAULT: Final = 2
VERBOSITY_MAX: Final = 10
FLUSH_S_MAX: Final = 2.0
"""How long the end of the process waits for whoever reads the log."""

_DEBUG_FROM = 4
_FOREIGN_INFO_FROM = 4
_FOREIGN_DEBUG_FROM = 6

_SECRET_KEY = re.compile(r"authorization|token|passw|secret|cookie|credential|bearer|(private|api|client|tls)_?key")
_BEARER = re.compile(r"(?i)\b(bearer)\s+[\w.~+/=-]+")

_WITHOUT_BEARER = rf"\1 {REDACTED}"
_KEYS_MAX = 4096
_NUMBERS = frozenset({int, float, bool, type(None)})

_Filtering: Any = structlog.make_filtering_bound_logger(logging.DEBUG)


class _Logger(_Filtering):  # type: ignore[misc]
    """structlog's filtering logger, except that whether debug lines are shown can change while it is in use."""

    verbosity = VERBOSITY_DEFAULT

    def debug(self, event: str, *args: Any, **values: Any) -> Any:
        """Log at debug level, from verbosity 4 on."""
        if _Logger.verbosity >= _DEBUG_FROM:
            return super().debug(event, *args, **values)
        return None


class _Sink:
    """Where all lines go. Loggers keep it, so another stream can take over under loggers that were used already.

    Standard error is written by a thread of its own, a stream that was passed in at once.
    """

    stream: BinaryIO | None = None
    writer: LogWriter | None = None

    def msg(self, line: bytes) -> None:
        """Write one line."""
        if self.stream is not None:
            try:
                self.stream.write(line + b"\n")
                self.stream.flush()
            except OSError:
                # Nobody reads it any more: there is nowhere to say so, and no reason to stop.
                pass
        elif self.writer is not None:
            self.writer.put(line + b"\n")

    debug = info = warning = error = msg

    def critical(self, line: bytes) -> None:
        """Write a line that has to get out even where others are lost."""
        if self.stream is None and self.writer is not None:
            self.writer.put(line + b"\n", is_critical=True)
        else:
            self.msg(line)

    def to_standard_error(self) -> None:
        """Write there from now on; nowhere if it is closed."""
        self.stream = None
        try:
            descriptor = sys.stderr.fileno()
        except (AttributeError, OSError, ValueError):
            # Closed, or replaced by a stream in memory.
            self.stream = getattr(sys.stderr, "buffer", None)
            return
        if self.writer is None or self.writer.descriptor != descriptor:
            self.writer = LogWriter(descriptor, _lost_lines_note)
            atexit.register(self.writer.flush, FLUSH_S_MAX)


class _Bridge(logging.Handler):
    """Passes on what libraries log through the standard library."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log the record under its logger's name."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            # The library's format and its arguments do not match: the standard library's own way with that.
            self.handleError(record)
            return
        level = min(record.levelno // 10 * 10, logging.CRITICAL)
        logger = structlog.get_logger(component=record.name)
        # Straight to `log`: whether the record is wanted has been decided by the level of its own logger.
        logger.log(max(level, logging.DEBUG), message, exc_info=record.exc_info or None)


_sink = _Sink()
_processors: list[Processor] = []


def configure(*, form: Form | None = None, verbosity: int = VERBOSITY_DEFAULT, stream: BinaryIO | None = None) -> Form:
    """Set logging up for the whole process; may be called again.

    The console form has colours on a terminal, unless NO_COLOR is set to anything (https://no-color.org).

    Args:
        form: by default, console if the stream is a terminal.
        verbosity: as `set_verbosity`.
        stream: standard error by default.

    Returns: the form.
    """
    if stream is None:
        _sink.to_standard_error()
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
    else:
        _sink.stream = stream
        is_terminal = stream.isatty()
    if form is None:
        form = "console" if is_terminal else "json"
    # In place: loggers that were used already hold this list.
    colors = is_terminal and not os.environ.get("NO_COLOR")
    _processors[:] = [_describe, _console(colors=colors) if form == "console" else _to_json]
    structlog.configure(
        processors=_processors,
        wrapper_class=_Logger,
        logger_factory=lambda *_: _sink,
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _Bridge)]:
        root.removeHandler(handler)
    root.addHandler(_Bridge())
    set_verbosity(verbosity)
    return form


def lines_lost() -> int:
    """How many lines were lost because nobody read them, or because they could not be written."""
    return 0 if _sink.writer is None else _sink.writer.lost


def lines_waiting() -> float:
    """Which part of the room for lines that are not written yet is taken; 1 is full."""
    return 0.0 if _sink.writer is None else _sink.writer.fill


def flush(seconds_max: float = FLUSH_S_MAX) -> bool:
    """Wait until every line is written or cannot be, for at most so long; whether all are written."""
    return _sink.stream is not None or _sink.writer is None or _sink.writer.flush(seconds_max)


def verbosity() -> int:
    """The verbosity now, for code that would have to work to produce a line."""
    return _Logger.verbosity


def set_verbosity(level: int) -> None:
    """Change what is logged, from now on: info lines always, debug lines from 4 on.

    Libraries' loggers show warnings, from 4 on also info, from 6 on also debug.

    Raises: ValueError for a level outside 0..10.
    """
    if not 0 <= level <= VERBOSITY_MAX:
        raise ValueError(f"verbosity must be between 0 and {VERBOSITY_MAX}, not {level}")
    _Logger.verbosity = level
    foreign = logging.WARNING
    if level >= _FOREIGN_INFO_FROM:
        foreign = logging.DEBUG if level >= _FOREIGN_DEBUG_FROM else logging.INFO
    logging.getLogger().setLevel(foreign)
    # Its debug lines are the bodies of answers, which can hold credentials.
    logging.getLogger("kubernetes_asyncio").setLevel(max(foreign, logging.INFO))


def _lost_lines_note(lines: int) -> bytes:
    """What stands in the log in the place of lost lines."""
    entry: Any = {
        "event": "Log lines were lost here: they were not read, or could not be written",
        "component": "telemetry",
        "lines": lines,
    }
    for process in _processors:
        entry = process(None, "warning", entry)
    return cast(bytes, entry) + b"\n"


def _describe(_: WrappedLogger, method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Put time and level in front, take secrets out, turn an exception into text."""
    if "exc_info" in entry:
        entry = structlog.processors.format_exc_info(_, method, entry)
    described: dict[str, Any] = {"ts": datetime.now(UTC), "level": method, "msg": entry.pop("event")}
    described.update(entry)
    for key, value in described.items():
        if _SECRET_KEYS[key]:
            described[key] = REDACTED
        elif type(value) is str:
            if "earer " in value or "EARER " in value or "://" in value:
                described[key] = _without_secrets(value)
        elif type(value) not in _NUMBERS:
            described[key] = _without_secrets(value)
    return described


def _to_json(_: WrappedLogger, __: str, entry: MutableMapping[str, Any]) -> bytes:
    try:
        return printable_json(orjson.dumps(entry, default=str, option=orjson.OPT_UTC_Z))
    except TypeError:
        # Lone surrogates and integers beyond 64 bits: rare, and no reason to lose the line.
        return json.dumps(entry, default=str).encode()


def _console(*, colors: bool) -> Processor:
    renderer = structlog.dev.ConsoleRenderer(
        colors=colors,
        timestamp_key="ts",
        event_key="msg",
        pad_event_to=0,
        exception_formatter=structlog.dev.plain_traceback,
    )

    def render(logger: WrappedLogger, method: str, entry: MutableMapping[str, Any]) -> bytes:
        shown = {printable(key): printable_value(value) for key, value in entry.items()}
        shown["ts"] = f"{entry['ts'].astimezone():%H:%M:%S.%f}"[:-3]
        if "exception" in entry:
            shown["exception"] = printable_lines(str(entry["exception"]))
        return renderer(logger, method, shown).encode(errors="backslashreplace")

    return render


def _without_secrets(value: Any) -> Any:
    """The value with what is secret replaced, at any depth."""
    if isinstance(value, str):
        return without_user_info(_BEARER.sub(_WITHOUT_BEARER, value))
    if isinstance(value, Mapping):
        return {key: REDACTED if _SECRET_KEYS[str(key)] else _without_secrets(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets(each) for each in value]
    return value


class _SecretKeys(dict[str, bool]):
    """Key → whether it sounds like a secret; keys are words of the source, so there are few."""

    def __missing__(self, key: str) -> bool:
        if len(self) >= _KEYS_MAX:
            self.clear()
        self[key] = answer = _SECRET_KEY.search(key.lower().replace("-", "_")) is not None
        return answer


_SECRET_KEYS = _SecretKeys()

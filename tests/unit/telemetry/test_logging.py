import io
import json
import logging
import os
import sys

import pytest
import structlog

from podium.lib.log import get_logger
from podium.telemetry import (
    Metrics,
    configure_logging,
    flush_log,
    lines_lost,
    lines_waiting,
    set_verbosity,
    verbosity,
)


def entries(json_log):
    return [json.loads(line) for line in json_log.getvalue().splitlines()]


def test_a_line_is_one_json_object_with_time_level_message_and_values_first(json_log):
    get_logger("binder", profile="podium").info("Successfully bound pod to node", pod="default/web-1", nodes=3)
    (entry,) = entries(json_log)
    assert list(entry)[:3] == ["ts", "level", "msg"]
    assert entry.pop("ts").endswith("Z")
    assert entry == {
        "level": "info",
        "msg": "Successfully bound pod to node",
        "component": "binder",
        "profile": "podium",
        "pod": "default/web-1",
        "nodes": 3,
    }


def test_debug_lines_appear_when_the_verbosity_is_raised_at_run_time(json_log):
    module_log = get_logger("queues")
    bound_log = module_log.bind(profile="podium")
    module_log.debug("hidden")
    bound_log.debug("hidden")
    set_verbosity(4)
    assert verbosity() == 4
    module_log.debug("shown")
    bound_log.debug("shown")
    set_verbosity(3)
    bound_log.debug("hidden again")
    assert [entry["msg"] for entry in entries(json_log)] == ["shown", "shown"]


@pytest.mark.parametrize("level", [-1, 11])
def test_a_verbosity_out_of_range_is_refused(level):
    with pytest.raises(ValueError, match="between 0 and 10"):
        set_verbosity(level)


@pytest.mark.parametrize(
    "key",
    ["authorization", "Authorization", "token", "bearerToken", "access_token", "clientKeyData", "tls-private-key"],
)
def test_what_stands_under_a_key_that_sounds_secret_is_not_logged(json_log, key):
    log = get_logger("kube")
    log.info("Connected", **{key: "s3cr3t"}, headers={key: "s3cr3t"}, requests=[{"headers": {key: "s3cr3t"}}])
    assert b"s3cr3t" not in json_log.getvalue()
    assert entries(json_log)[0]["headers"] == {key: "[redacted]"}


@pytest.mark.parametrize("key", ["pod", "node", "profile", "key", "monkey"])
def test_other_keys_are_logged(json_log, key):
    get_logger("kube").info("Connected", **{key: "plain"})
    assert entries(json_log)[0][key] == "plain"


def test_bearer_tokens_are_taken_out_of_text_and_tracebacks(json_log):
    log = get_logger("kube")
    log.info("Sent Authorization: Bearer s3cr3t.abc", error="bearer s3cr3t", errors=["BEARER s3cr3t"])
    try:
        raise RuntimeError("refused: Bearer s3cr3t")
    except RuntimeError:
        log.exception("Request failed")
    assert b"s3cr3t" not in json_log.getvalue()
    assert "RuntimeError: refused: Bearer [redacted]" in entries(json_log)[1]["exception"]


def test_libraries_logs_come_out_in_the_same_form(json_log):
    logging.getLogger("aiohttp.server").error("Error handling %s", "request")
    logging.getLogger("asyncio").info("not shown at this verbosity")
    set_verbosity(4)
    logging.getLogger("asyncio").info("shown")
    logging.getLogger("asyncio").log(35, "between two levels")
    lines = [(entry["level"], entry["component"], entry["msg"]) for entry in entries(json_log)]
    assert lines == [
        ("error", "aiohttp.server", "Error handling request"),
        ("info", "asyncio", "shown"),
        ("warning", "asyncio", "between two levels"),
    ]


def test_a_librarys_exception_keeps_its_traceback(json_log):
    try:
        raise RuntimeError("boom")
    except RuntimeError:
        logging.getLogger("asyncio").exception("Task failed")
    assert "RuntimeError: boom" in entries(json_log)[0]["exception"]


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("boom" * 1_000_000),
        ExceptionGroup("g", [ExceptionGroup("g", [ExceptionGroup("boom", [RuntimeError("boom")] * 15)] * 15)] * 15),
    ],
    ids=["a long text", "many members"],
)
def test_the_middle_of_an_endless_exception_is_left_out(json_log, error):
    get_logger("daemon").error("Plugin failed", exc_info=error)
    (entry,) = entries(json_log)
    assert len(entry["exception"]) < 20_000
    assert "boom" in entry["exception"][:9_000]
    assert entry["exception"].endswith(("boom", "-"))
    assert " characters left out ..." in entry["exception"]


def test_bodies_of_the_clients_answers_are_logged_at_no_verbosity(json_log):
    set_verbosity(10)
    logging.getLogger("kubernetes_asyncio.client.rest").debug("response body: secret")
    logging.getLogger("aiohttp.client").debug("connected")
    assert [entry["msg"] for entry in entries(json_log)] == ["connected"]


def test_a_logger_that_was_used_follows_a_new_configuration(json_log):
    log = get_logger("daemon")
    log.info("to the first")
    new_stream = io.BytesIO()
    configure_logging(form="console", stream=new_stream)
    log.info("to the second")
    logging.getLogger("asyncio").warning("once")
    assert [entry["msg"] for entry in entries(json_log)] == ["to the first"]
    assert new_stream.getvalue().count(b"\n") == 2


def test_the_console_form_is_plain_text_without_a_terminal(json_log):
    configure_logging(form="console", stream=json_log)
    try:
        raise RuntimeError("boom \udcff")
    except RuntimeError:
        get_logger("daemon").exception("Scheduling failed", pod="default/web-1", token="s3cr3t")
    text = json_log.getvalue().decode()
    assert "Scheduling failed" in text
    assert "pod=default/web-1" in text
    assert "RuntimeError: boom" in text
    assert "s3cr3t" not in text
    assert "\x1b" not in text


class _Terminal(io.BytesIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("no_color", "has_colours"), [(None, True), ("", True), ("1", False), ("false", False)])
def test_a_terminal_gets_colours_unless_no_color_is_set(json_log, monkeypatch, no_color, has_colours):
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    terminal = _Terminal()
    assert configure_logging(stream=terminal) == "console"
    get_logger("cli").warning("Careful", pod="default/web")
    assert (b"\x1b[" in terminal.getvalue()) is has_colours


def test_a_stream_that_is_no_terminal_gets_json(json_log):
    configure_logging(stream=json_log)
    get_logger("daemon").info("Starting")
    assert entries(json_log)[0]["msg"] == "Starting"


def test_values_that_json_does_not_know_do_not_lose_the_line(json_log):
    log = get_logger("daemon")
    log.info("Odd values", path="/srv/\udcff", big=2**70, exotic=object, binary=b"x")
    (entry,) = entries(json_log)
    assert entry["big"] == 2**70
    assert entry["msg"] == "Odd values"


def test_entries_can_be_captured_in_tests(json_log):
    log = get_logger("daemon")
    log.info("before")
    with structlog.testing.capture_logs() as captured:
        log.info("Scheduled", pod="default/web-1")
    assert captured == [{"component": "daemon", "event": "Scheduled", "log_level": "info", "pod": "default/web-1"}]


def test_a_librarys_broken_format_does_not_reach_the_library(json_log, capsys, monkeypatch):
    # pytest's own handlers would raise.
    root = logging.getLogger()
    ours = [handler for handler in root.handlers if type(handler).__module__.startswith("podium.")]
    monkeypatch.setattr(root, "handlers", ours)
    logging.getLogger("aiohttp.server").error("%d requests", "many")
    assert entries(json_log) == []
    assert "Logging error" in capsys.readouterr().err


def test_logging_goes_on_without_a_reader(json_log):
    reader, writer = os.pipe()
    os.close(reader)
    # Unbuffered, so that closing it does not try again what cannot be written.
    with open(writer, "wb", buffering=0) as full_pipe:
        configure_logging(form="json", stream=full_pipe)
        get_logger("daemon").info("into the void")


def test_standard_error_is_written_by_a_thread_and_tells_what_was_lost(json_log, monkeypatch):
    reader, writer = os.pipe()
    # The writing end stays open: its thread never ends.
    with open(writer, "w", closefd=False) as standard_error, open(reader, "rb") as read:
        monkeypatch.setattr(sys, "stderr", standard_error)
        configure_logging(form="json")
        log = get_logger("daemon")
        lines = 0
        while lines_lost() == 0:
            log.info("Nobody reads this", padding="x" * 4000)
            lines += 1
        assert lines_waiting() > 0.9
        log.critical("This has to get out")
        log_entries = []
        while not log_entries or log_entries[-1]["msg"] != "This has to get out":
            log_entries.append(json.loads(read.readline()))
        assert flush_log(20.0)
    assert [entry["msg"] for entry in log_entries[:-2]] == ["Nobody reads this"] * (lines - 1)
    assert (log_entries[-2]["level"], log_entries[-2]["component"], log_entries[-2]["lines"]) == (
        "warning",
        "telemetry",
        1,
    )
    assert "podium_log_lines_lost_total 1" in Metrics().render().decode()


def test_lines_for_a_standard_error_that_is_closed_go_nowhere(json_log, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    configure_logging()
    get_logger("daemon").critical("into the void")


@pytest.mark.parametrize("form", ["console", "json"])
def test_text_from_outside_moves_no_cursor_and_begins_no_line(json_log, form):
    configure_logging(form=form, stream=json_log)
    log = get_logger("serving")
    log.info("Refused \x1b[2J", path="/\x1b[31m\n12:00:00 [error] fake", names=["\x9b2J"], error=ValueError("\x1b[0m"))
    try:
        raise RuntimeError("boom\x1b[2J\n12:00:00 [error] fake")
    except RuntimeError:
        log.exception("Failed")
    text = json_log.getvalue().decode()
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert not [line for line in text.splitlines() if line.startswith("12:00:00 [error]")]


def test_passwords_of_urls_are_not_logged(json_log):
    get_logger("kube").info("Connecting", server="https://ann:s3cr3t@host", proxies=["http://ann:s3cr3t@proxy:3128"])
    assert b"s3cr3t" not in json_log.getvalue()

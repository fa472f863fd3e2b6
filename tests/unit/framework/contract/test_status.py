from __future__ import annotations

import enum

import pytest

from podium.framework.contract.status import SKIP, Code, PluginError, Status, error_status, unresolvable, unschedulable

UPSTREAM = {
    0: ("Success", False),
    1: ("Error", False),
    2: ("Unschedulable", True),
    3: ("UnschedulableAndUnresolvable", True),
    4: ("Wait", False),
    5: ("Skip", False),
    6: ("Pending", True),
}


def test_codes_have_upstreams_numbers_names_and_classes():
    assert {int(code): (code.label, code.is_rejected) for code in Code} == UPSTREAM


@pytest.mark.parametrize("code", Code)
def test_status_is_a_rejection_where_its_code_is(code):
    assert Status(code).is_rejected == code.is_rejected


def test_error_text_comes_before_the_reasons():
    status = Status(Code.ERROR, ("second", "third"), error=ValueError("first"))
    assert status.all_reasons == ("ValueError: first", "second", "third")
    assert status.message == "ValueError: first, second, third"


def test_status_without_reasons_has_an_empty_message():
    assert Status(Code.UNSCHEDULABLE).message == ""


def test_naming_the_plugin_leaves_the_original_alone():
    status = unschedulable("no room")
    assert status.by("Fit") == Status(Code.UNSCHEDULABLE, ("no room",), "Fit")
    assert status.plugin == ""


def test_short_forms_have_their_codes():
    assert unresolvable("a", "b") == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("a", "b"))
    assert SKIP.code is Code.SKIP


def test_error_status_keeps_exceptions_and_wraps_texts():
    cause = OSError("gone")
    assert error_status(cause).error is cause
    error = error_status("gone").error
    assert isinstance(error, PluginError)
    assert error_status("gone").message == "gone"


def test_reasons_of_a_class_of_their_own_become_plain_texts():
    status = unschedulable("a", enum.StrEnum("Reason", {"FULL": "full"}).FULL)
    assert status.message == "a, full"
    assert {type(reason) for reason in status.reasons} == {str}

import pytest

from podium.config.field_errors import ConfigError, ErrorKind, ErrorList, FieldError


def test_errors_read_as_in_kubernetes():
    errors = ErrorList()
    errors.invalid("a.b", -1, "must be non-negative")
    errors.invalid("a", "x", "no")
    errors.invalid("a", {"b": [1]}, "no")
    errors.required("a")
    errors.required("a", "can not be empty")
    errors.duplicate("a[1]", "x")
    errors.not_supported("a", "Maybe", ["Yes", "No"])
    errors.forbidden("a", "must be nil")
    assert [str(error) for error in errors.errors] == [
        "a.b: Invalid value: -1: must be non-negative",
        'a: Invalid value: "x": no',
        'a: Invalid value: {"b":[1]}: no',
        "a: Required value",
        "a: Required value: can not be empty",
        'a[1]: Duplicate value: "x"',
        'a: Unsupported value: "Maybe": supported values: "Yes", "No"',
        "a: Forbidden: must be nil",
    ]


def test_error_of_the_whole_file_has_no_path():
    assert FieldError("", ErrorKind.SYNTAX, None, "yaml: oops").text == "yaml: oops"


@pytest.mark.parametrize(
    ("source", "line", "text"),
    [
        ("c.yaml", 3, "c.yaml:3: a: Required value"),
        ("c.yaml", None, "c.yaml: a: Required value"),
        ("", 3, "line 3: a: Required value"),
        ("", None, "a: Required value"),
    ],
)
def test_refusal_says_where_as_far_as_it_is_known(source, line, text):
    error = ConfigError([FieldError("a", ErrorKind.REQUIRED, line=line)], source)
    assert error.lines() == (text,)
    assert str(error) == text

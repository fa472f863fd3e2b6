import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        'timestamp("2026-01-02T03:04:05.678Z").getFullYear() == 2026',
        'timestamp("2026-01-02T03:04:05.678Z").getMonth() == 0',
        'timestamp("2026-01-02T03:04:05.678Z").getDate() == 2',
        'timestamp("2026-01-02T03:04:05.678Z").getDayOfMonth() == 1',
        'timestamp("2026-01-02T03:04:05.678Z").getDayOfWeek() == 5',
        'timestamp("2026-01-02T03:04:05.678Z").getDayOfYear() == 1',
        'timestamp("2026-01-02T03:04:05.678Z").getHours() == 3',
        'timestamp("2026-01-02T03:04:05.678Z").getMilliseconds() == 678',
        'timestamp("2026-01-02T03:04:05Z").getHours("+02:30") == 5',
        'timestamp("2026-01-02T03:04:05Z").getMinutes("-00:30") == 34',
        'timestamp("2026-01-02T03:04:05Z").getHours("America/New_York") == 22',
        'timestamp("2020-01-01T00:00:00+02:00").getHours() == 22',
        'timestamp("0001-01-01T00:00:00Z").getFullYear("-03:30") == 0',
        'timestamp("0001-01-01T00:00:00Z").getHours("-03:30") == 20',
        'timestamp("9999-12-31T23:59:59Z").getFullYear("Europe/Berlin") == 10000',
        'timestamp("9999-12-31T23:59:59Z").getDayOfWeek("Europe/Berlin") == 6',
        'duration("1h30m").getHours() == 1',
        'duration("1h30m").getMinutes() == 90',
        'duration("-90s").getMinutes() == -1',
        'duration("1.5s").getMilliseconds() == 1500',
        'duration("1.5s").getSeconds() == 1',
        'duration("1µs") == duration("1000ns")',
        'duration("0") == duration("0s")',
        'duration("-1.5h") == duration("-90m")',
        'duration("+1s") == duration("1s")',
        'timestamp("2020-02-29T00:00:00Z") < timestamp("2020-03-01T00:00:00Z")',
        'timestamp("2020-01-01T00:00:00,5Z") > timestamp(0)',
    ],
)
def test_times_have_parts(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        'timestamp("2026-02-30T00:00:00Z") > timestamp(0)',
        'timestamp("2026-01-01") > timestamp(0)',
        'timestamp("2026-01-01t00:00:00z") > timestamp(0)',
        'timestamp("0000-01-01T00:00:00Z") < timestamp(0)',
        'timestamp("x") == timestamp(0)',
        'duration("1") == duration("1s")',
        'duration("1d") == duration("24h")',
        'duration("") == duration("0")',
        'duration("9999999999h") > duration("0")',
        'timestamp(0).getHours("Mars/Olympus") == 0',
        'timestamp(0).getHours("x:y") == 0',
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)

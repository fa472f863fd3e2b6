"""Cron schedules: what each notation means, what is refused, and the next hit against a walk through every minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.provisioner.apis.cron import CronSchedule


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


MONDAY = utc("2026-11-23T03:00:30")


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("* * * * *", "2026-11-23T03:01"),
        ("? ? ? ? ?", "2026-11-23T03:01"),
        ("15,45 3 * * *", "2026-11-23T03:15"),
        ("0-59/20 * * * *", "2026-11-23T03:20"),
        ("50/5 * * * *", "2026-11-23T03:50"),
        ("*/30 4 * * *", "2026-11-23T04:00"),
        ("+5 05 * * *", "2026-11-23T05:05"),
        ("1,,2 * * * *", "2026-11-23T03:01"),
        ("*-7 * * * *", "2026-11-23T03:01"),
        ("0 9 * * MON-fri", "2026-11-23T09:00"),
        ("0 0 * * sun", "2026-11-29T00:00"),
        ("0 0 1 Feb *", "2027-02-01T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("  0\t9 * * *  ", "2026-11-23T09:00"),
        ("@hourly", "2026-11-23T04:00"),
        ("@daily", "2026-11-24T00:00"),
        ("@midnight", "2026-11-24T00:00"),
        ("@weekly", "2026-11-29T00:00"),
        ("@monthly", "2026-12-01T00:00"),
        ("@yearly", "2027-01-01T00:00"),
        ("@annually", "2027-01-01T00:00"),
    ],
)
def test_each_notation_has_its_next_hit(text: str, hit: str) -> None:
    assert CronSchedule.parse(text).next_hit(MONDAY) == utc(hit)


def test_a_day_matches_either_field_if_both_are_restricted() -> None:
    assert CronSchedule.parse("0 0 28 * 5").next_hit(MONDAY) == utc("2026-11-27T00:00")
    assert CronSchedule.parse("0 0 28 * 5").next_hit(utc("2026-11-27T00:00")) == utc("2026-11-28T00:00")


def test_a_day_matches_both_fields_if_one_has_a_star() -> None:
    assert CronSchedule.parse("0 0 28 * *").next_hit(MONDAY) == utc("2026-11-28T00:00")
    assert CronSchedule.parse("0 0 ? * 5").next_hit(MONDAY) == utc("2026-11-27T00:00")
    assert CronSchedule.parse("0 0 28 * */1").next_hit(MONDAY) == utc("2026-11-28T00:00")


def test_a_star_with_a_greater_step_restricts_the_field() -> None:
    assert CronSchedule.parse("0 0 */2 * 2").next_hit(MONDAY) == utc("2026-11-24T00:00")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "expected 5 fields, found 0"),
        ("* * * *", "expected 5 fields, found 4"),
        ("0 * * * * *", "expected 5 fields, found 6"),
        ("60 * * * *", 'minute "60" is not within 0-59'),
        ("* 24 * * *", 'hour "24" is not within 0-23'),
        ("* * 0 * *", 'day of month "0" is not within 1-31'),
        ("* * * 13 *", 'month "13" is not within 1-12'),
        ("* * * * 7", 'day of week "7" is not within 0-6'),
        ("* * * * sat-sun", 'day of week "sat-sun" ends before it begins'),
        ("*/0 * * * *", 'minute "*/0" has a step of 0'),
        ("1-2-3 * * * *", 'minute "1-2-3": "2-3" is not a number'),
        ("1/2/3 * * * *", 'minute "1/2/3": "2/3" is not a number'),
        ("jan * * * *", 'minute "jan": "jan" is not a number'),
        ("* * * monday *", 'month "monday": "monday" is not a number'),
        ("* * L * *", 'day of month "L": "L" is not a number'),
        ("* * * * 1#2", 'day of week "1#2": "1#2" is not a number'),
        ("٣ * * * *", 'minute "٣": "٣" is not a number'),
        ("@every 1h", '"@every 1h" is not one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly'),
        ("@Hourly", '"@Hourly" is not one of @yearly'),
        ("TZ=Asia/Tokyo 0 9 * * *", "a schedule is in UTC and cannot name a time zone"),
        ("CRON_TZ=UTC @daily", "a schedule is in UTC and cannot name a time zone"),
    ],
)
def test_what_is_no_schedule_is_refused(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=r".") as failure:
        CronSchedule.parse(text)
    assert str(failure.value).startswith(error)


def test_the_next_hit_is_later_than_the_moment_asked_about() -> None:
    schedule = CronSchedule.parse("0 9 * * *")
    assert schedule.next_hit(utc("2026-11-23T09:00")) == utc("2026-11-24T09:00")
    assert schedule.next_hit(utc("2026-11-23T08:59:59.999999")) == utc("2026-11-23T09:00")
    assert schedule.next_hit(utc("2026-11-23T09:00:00.000001")) == utc("2026-11-24T09:00")


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 4,6 *", ", * * * *"])
def test_some_schedules_never_hit(text: str) -> None:
    assert CronSchedule.parse(text).next_hit(MONDAY) is None


def test_the_search_ends_with_the_fifth_following_year() -> None:
    leap_day = CronSchedule.parse("0 0 29 2 *")
    assert leap_day.next_hit(utc("2096-03-01T00:00")) is None
    assert leap_day.next_hit(utc("2098-12-31T23:59:58")) is None
    assert leap_day.next_hit(utc("2098-12-31T23:59:59")) == utc("2104-02-29T00:00")


def numbers(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    item = st.one_of(st.sampled_from(["*", "?"]), number.map(str), span)
    step = st.sampled_from(["", "", "/1", "/2", "/5"])
    return st.lists(st.builds(str.__add__, item, step), min_size=1, max_size=3).map(",".join)


def matches(text: str, value: int, low: int, high: int) -> bool:
    """Return True if a field has the value, item by item, without building the set of its values."""
    for item in text.split(","):
        bounds, _, step = item.partition("/")
        first, _, last = bounds.partition("-")
        start = low if first in "*?" else int(first)
        end = int(last) if last else high if step or first in "*?" else start
        if start <= value <= end and (value - start) % int(step or 1) == 0:
            return True
    return False


def is_free(text: str) -> bool:
    return any(item in ("*", "?", "*/1", "?/1") for item in text.split(","))


@pytest.mark.long
@given(
    numbers(0, 59),
    numbers(0, 23),
    numbers(1, 31),
    numbers(1, 12),
    numbers(0, 6),
    st.datetimes(datetime(2023, 1, 1), datetime(2033, 1, 1)),
    st.integers(1, 600),
)
def test_the_next_hit_is_the_first_minute_that_matches(
    minute: str, hour: str, day: str, month: str, weekday: str, start: datetime, minutes: int
) -> None:
    start_time = start.replace(tzinfo=UTC)
    time = start_time + timedelta(minutes=minutes)

    def is_hit(moment: datetime) -> bool:
        days = matches(day, moment.day, 1, 31), matches(weekday, moment.isoweekday() % 7, 0, 6)
        return (
            matches(minute, moment.minute, 0, 59)
            and matches(hour, moment.hour, 0, 23)
            and matches(month, moment.month, 1, 12)
            and (all(days) if is_free(day) or is_free(weekday) else any(days))
        )

    walked = start_time.replace(second=0, microsecond=0) + timedelta(minutes=1)
    while walked <= time and not is_hit(walked):
        walked += timedelta(minutes=1)
    hit = CronSchedule.parse(f"{minute} {hour} {day} {month} {weekday}").next_hit(start_time)
    assert (hit if hit is not None and hit <= time else None) == (walked if walked <= time else None)

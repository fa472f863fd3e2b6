from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat

import anyio
import msgspec
import pytest
from structlog.testing import capture_logs

from podium.client.dispatcher import Requester
from podium.client.server_version import release_of
from podium.config import RELEASES
from podium.daemon.server_release import OtherReleaseError, ServerRelease
from podium.objects.api_errors import Malformed, Unreachable
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio

V36, V37 = RELEASES.values()


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


class Server(Requester):
    """Answers `/version` with one minor after the other, the last one for ever; None is no answer."""

    def __init__(self, *minors: str | None) -> None:
        self._minors: Iterator[str | None] = chain(minors, repeat(minors[-1]))

    async def request(self, method: str, path: str, *_: object, **options: object) -> bytes:
        assert (method, path) == ("GET", "/version")
        minor = next(self._minors)
        if minor is None:
            raise Unreachable("it is away")
        return msgspec.json.encode({"major": "1", "minor": minor, "gitVersion": f"v1.{minor}.2", "platform": "linux"})


async def seen(watch: ServerRelease, seconds: float = 200.0) -> list[str]:
    with capture_logs() as entries, anyio.move_on_after(seconds):
        await watch.run()
    return [entry["server"] for entry in entries if entry["log_level"] == "warning"]


async def test_release_is_the_servers() -> None:
    assert await release_of(Server("36")) == (V36, "v1.36.2")
    assert await release_of(Server("37+")) == (V37, "v1.37+.2")


@pytest.mark.parametrize("minor", ["", "new", "+"])
async def test_answer_without_a_version_is_malformed(minor: str) -> None:
    with pytest.raises(Malformed, match="/version"):
        await release_of(Server(minor))


async def test_upgrade_is_logged_once() -> None:
    assert await seen(ServerRelease(Server("36", "36", None, "37"), V36)) == ["v1.37.2"]


async def test_server_that_is_downgraded_and_upgraded_again_is_logged_once_for_each_other_minor() -> None:
    assert await seen(ServerRelease(Server("37", "36", "36", "37", "36"), V37)) == ["v1.36.2", "v1.36.2"]


async def test_release_that_was_assumed_is_checked_as_soon_as_the_server_answers() -> None:
    assert await seen(ServerRelease(Server(None, None, "37", "36"), V37, is_assumed=True)) == ["v1.36.2"]
    with pytest.raises(OtherReleaseError, match=r"it is v1\.36\.2|v1\.36\.2, but podium decides as 1\.37"):
        await seen(ServerRelease(Server(None, "36"), V37, is_assumed=True), 10.0)

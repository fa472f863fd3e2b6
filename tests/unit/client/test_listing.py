from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.client.listing import all_objects
from podium.objects.api_errors import NotFound
from podium.objects.resource_types import NODES

pytestmark = pytest.mark.anyio


class Pages:
    """Answers each request with the next page; `paths` are those that were asked for."""

    def __init__(self, *pages: Any) -> None:
        self.paths: list[str] = []
        self._pages = iter(pages)

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        self.paths.append(path)
        page = next(self._pages)
        if isinstance(page, Exception):
            raise page
        return msgspec.json.encode(page)


def page(*names: str, proceed: str = "") -> dict[str, Any]:
    return {"metadata": {"continue": proceed}, "items": [{"metadata": {"name": name}} for name in names]}


async def test_all_pages_are_read_and_each_object_says_what_it_is() -> None:
    session: Any = Pages(page("n1", "n2", proceed="a=b"), page("n3"))
    objects = await all_objects(session, NODES)
    assert [(item["apiVersion"], item["kind"], item["metadata"]["name"]) for item in objects] == [
        ("v1", "Node", name) for name in ("n1", "n2", "n3")
    ]
    assert [path.partition("&")[2] for path in session.paths] == ["", "continue=a%3Db"]


@pytest.mark.parametrize("answer", [NotFound("no such kind"), {"metadata": {}, "items": None}])
async def test_a_kind_that_is_not_served_or_has_no_objects_is_an_empty_list(answer: Any) -> None:
    session: Any = Pages(answer)
    assert await all_objects(session, NODES) == []

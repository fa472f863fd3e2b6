from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.client.listing import all_objects
from podium.objects.api_errors import Malformed, NotFound
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
        return page if isinstance(page, bytes) else msgspec.json.encode(page)


def page(*names: str, proceed: str = "") -> dict[str, Any]:
    kind = {"kind": "NodeList", "apiVersion": "v1"}
    return {**kind, "metadata": {"continue": proceed}, "items": [{"metadata": {"name": name}} for name in names]}


async def test_all_pages_are_read_and_each_object_says_what_it_is() -> None:
    session: Any = Pages(page("n1", "n2", proceed="a=b"), page("n3"))
    objects = await all_objects(session, NODES)
    assert [(item["apiVersion"], item["kind"], item["metadata"]["name"]) for item in objects] == [
        ("v1", "Node", name) for name in ("n1", "n2", "n3")
    ]
    assert [path.partition("&")[2] for path in session.paths] == ["", "continue=a%3Db"]


@pytest.mark.parametrize("answer", [NotFound("no such kind"), {**page(), "items": None}])
async def test_a_kind_that_is_not_served_or_has_no_objects_is_an_empty_list(answer: Any) -> None:
    session: Any = Pages(answer)
    assert await all_objects(session, NODES) == []


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>Please sign in</html>",
        b"",
        None,
        [],
        {"items": []},
        {**page("n1"), "kind": "PodList"},
        {**page("n1"), "apiVersion": "v2"},
        {**page(), "items": {}},
        {**page(), "items": [None]},
        {**page(), "items": [{}]},
        {**page(), "items": [{"metadata": None}]},
        {**page(), "items": [{"metadata": {"name": ""}}]},
        {**page(), "items": [{"metadata": {"name": 7}}]},
        {**page(), "metadata": {"continue": 7}},
        {"kind": "Status", "apiVersion": "v1", "status": "Success"},
    ],
)
async def test_an_answer_that_is_no_such_list_says_nothing_about_what_there_is(answer: Any) -> None:
    with pytest.raises(Malformed):
        await all_objects(Pages(answer), NODES)  # type: ignore[arg-type]


async def test_a_server_that_repeats_a_page_is_not_read_for_ever() -> None:
    pages: Any = Pages(*[page("n1", proceed="a")] * 3)
    with pytest.raises(Malformed, match="twice"):
        await all_objects(pages, NODES)


async def test_a_kind_that_must_be_served_is_not_taken_for_an_empty_one() -> None:
    pages: Any = Pages(NotFound("no such kind"))
    with pytest.raises(NotFound):
        await all_objects(pages, NODES, may_be_absent=False)

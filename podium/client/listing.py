"""Lists of objects as they are served, for those who look once and do not watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct, field

from podium.client.requests import LIST_BYTES_MAX
from podium.objects.api_errors import Malformed, NotFound
from podium.objects.resource_types import ResourceType
from podium.objects.wire import NOT_DECODED

if TYPE_CHECKING:
    from podium.client.session import ApiSession

_PAGE: Final = 500


class _ListMeta(Struct):
    continue_token: str | None = field(default=None, name="continue")


class _Page(Struct):
    kind: str = ""
    api_version: str = field(default="", name="apiVersion")
    metadata: _ListMeta = field(default_factory=_ListMeta)
    items: list[dict[str, Any]] | None = None


_decode = msgspec.json.Decoder(_Page).decode


async def all_objects(
    session: ApiSession, resource: ResourceType[Any], *, may_be_absent: bool = True
) -> list[dict[str, Any]]:
    """Return all objects of a kind as the API server sends them, page by page; none if it does not serve the kind.

    Args:
        may_be_absent: whether a server that does not serve the kind has none of it; otherwise that is an error, too.

    Raises:
        Malformed: an answer is no list of this kind, so that it says nothing about what there is.
        ApiError: the API server cannot be reached, or refuses.
    """
    items: list[dict[str, Any]] = []
    tokens = {""}
    token = ""
    while True:
        query = f"?limit={_PAGE}" + (f"&continue={quote(token, safe='')}" if token else "")
        try:
            answer = await session.request("GET", resource.path + query, answer_bytes_max=LIST_BYTES_MAX)
        except NotFound:  # an older cluster does not serve every kind
            if not may_be_absent:
                raise
            return items
        page = _page_of(answer, resource)
        items += ({**item, "apiVersion": resource.api_version, "kind": resource.kind} for item in page.items or ())
        token = page.metadata.continue_token or ""
        if not token:
            return items
        # A server that repeats a page would never come to an end.
        if token in tokens:
            raise Malformed(f"the list of {resource.plural} has a page twice")
        tokens.add(token)


def _page_of(answer: bytes, resource: ResourceType[Any]) -> _Page:
    try:
        page = _decode(answer)
    except NOT_DECODED as error:
        raise Malformed(f"not a {resource.kind}List: {error}: {answer[:100]!r}") from error
    if (page.kind, page.api_version) != (f"{resource.kind}List", resource.api_version):
        received = f"{page.kind or 'list without a kind'} ({page.api_version or 'no version'})"
        raise Malformed(f"not a {resource.kind}List ({resource.api_version}), but a {received}")
    for index, item in enumerate(page.items or ()):
        metadata = item.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(name, str) or not name:
            raise Malformed(f"item {index} of the {resource.kind}List has no name")
    return page

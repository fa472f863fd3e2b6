"""Lists of objects as they are served, for those who look once and do not watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from podium.client.requests import LIST_BYTES_MAX
from podium.objects.api_errors import NotFound
from podium.objects.resource_types import ResourceType

if TYPE_CHECKING:
    from podium.client.session import ApiSession

_PAGE: Final = 500


async def all_objects(session: ApiSession, resource: ResourceType[Any]) -> list[dict[str, Any]]:
    """Return all objects of a kind as the API server sends them, page by page; none if it does not serve the kind.

    Raises:
        ApiError: the API server cannot be reached, or refuses.
    """
    items: list[dict[str, Any]] = []
    token = ""
    while True:
        query = f"?limit={_PAGE}" + (f"&continue={quote(token, safe='')}" if token else "")
        try:
            answer = await session.request("GET", resource.path + query, answer_bytes_max=LIST_BYTES_MAX)
            page = msgspec.json.decode(answer)
        except NotFound:  # an older cluster does not serve every kind
            return items
        page_items = page.get("items") or ()
        items += ({**item, "apiVersion": resource.api_version, "kind": resource.kind} for item in page_items)
        token = page.get("metadata", {}).get("continue") or ""
        if not token:
            return items

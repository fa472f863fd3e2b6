"""Lists in pages that are consistent: all are read at the revision of the first page."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right

import orjson

from podium.sandbox.errors import ApiError, Cause, bad_request, expired
from podium.sandbox.journal import Collection, Key, Record
from podium.sandbox.presentation import ListMeta
from podium.sandbox.requests import ResourceRequest
from podium.sandbox.selectors import Selection


def list_page(
    collection: Collection, selection: Selection, request: ResourceRequest, present: int
) -> tuple[list[Record], ListMeta]:
    """Return the records of one page of a list request.

    Args:
        present: the store's revision.

    Raises:
        ApiError: 400, a parameter is invalid; 410, the revision is too old; 504, it is in the future.
    """
    query = request.query
    limit = int(query["limit"]) if query.get("limit", "").isdecimal() else 0
    token = query.get("continue", "")
    if token:
        revision, last_key = _decode(token)
    else:
        revision, last_key = (
            _revision_asked_for(query.get("resourceVersion", ""), query.get("resourceVersionMatch", ""), present),
            None,
        )
    try:
        records = collection.at(revision)
    except ApiError:
        if token:
            raise expired("The provided continue parameter is too old to display a consistent list result.") from None
        raise
    keys = collection.sorted_keys() if records is collection.records else sorted(records)
    start = bisect_right(keys, last_key) if last_key else 0
    return _page(records, keys, start, selection, limit, revision)


def _page(
    records: dict[Key, Record], keys: list[Key], start: int, selection: Selection, limit: int, revision: int
) -> tuple[list[Record], ListMeta]:
    page: list[Record] = []
    for position in range(start, len(keys)):
        record = records[keys[position]]
        if not selection.matches(record.obj):
            continue
        if limit and len(page) == limit:
            token = _encode(revision, page[-1].key)
            is_whole = selection.namespace is None and not selection.selective
            return page, ListMeta(revision, token, len(keys) - position if is_whole else None)
        page.append(record)
    return page, ListMeta(revision)


def _revision_asked_for(revision: str, rule: str, present: int) -> int:
    if revision and not revision.isdecimal():
        raise bad_request(f"resourceVersion: Invalid value: {revision!r}")
    if rule not in ("", "Exact", "NotOlderThan") or (rule and not revision):
        raise ApiError(422, "Invalid", f"resourceVersionMatch: Invalid value: {rule!r}")
    requested_version = int(revision or 0)
    if requested_version > present:
        message = f"Timeout: Too large resource version: {requested_version}, current: {present}"
        cause = Cause("", "Too large resource version", "ResourceVersionTooLarge")
        raise ApiError(504, "Timeout", message, details={"causes": [cause.as_json()]}, retry_after_s=1)
    return requested_version if rule == "Exact" and requested_version else present


def _encode(revision: int, key: Key) -> str:
    return base64.urlsafe_b64encode(orjson.dumps({"rv": revision, "after": key})).decode().rstrip("=")


def _decode(token: str) -> tuple[int, Key]:
    try:
        fields = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = fields["after"]
        return int(fields["rv"]), (str(namespace), str(name))
    except (binascii.Error, ValueError, KeyError, TypeError):
        raise bad_request("continue key is not valid") from None

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bound_pods import MarkerCount

MARKER = b'"type":"ADDED"'


@pytest.mark.long
@given(st.lists(st.sampled_from([MARKER, b"{", b'"type":"MODIFIED"', b'"type"', b"\n"])), st.data())
def test_the_count_does_not_depend_on_where_the_stream_is_cut(parts: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    counter = MarkerCount(MARKER)
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        counter.feed(stream[start:end])
    assert counter.count == stream.count(MARKER)

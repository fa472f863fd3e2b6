import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.framework.profile.score_history import ScoreHistory

ROWS = 6


@given(st.lists(st.integers(0, ROWS - 1) | st.sets(st.integers(0, ROWS - 1)), max_size=12), st.randoms())
def test_every_version_of_the_table_can_be_read(changes, random):
    table = np.zeros((ROWS, 2), np.int8)
    history, versions_seen = ScoreHistory(table), [(0, table.copy())]
    for change in changes:
        rows = np.array([change] if isinstance(change, int) else sorted(change), np.intp)
        if not (history.note(change) if isinstance(change, int) else history.note_all(rows)):
            break
        table[rows] = np.array([random.randrange(101) for _ in range(2 * len(rows))]).reshape(-1, 2)
        versions_seen.append((history.version, table.copy()))
    assert all((history.at(version) == table_then).all() for version, table_then in versions_seen)


def test_history_takes_no_more_notes_than_the_table_has_rows():
    history = ScoreHistory(np.zeros((3, 1), np.int8))
    assert history.note_all(np.array([2, 0]))
    assert (history.note_all(np.array([0, 1])), history.note(1), history.note(0)) == (False, True, False)
    assert history.nbytes == 3 + 3 + 12

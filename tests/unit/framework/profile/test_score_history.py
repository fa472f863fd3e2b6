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
        table[rows] = np.array([random.randrange(101) for _ in range(2 * len(rows))]).reshape(-1, 2)
        is_one = isinstance(change, int)
        if not (history.note(change, table[change].tolist()) if is_one else history.note_all(rows, table[rows])):
            break
        versions_seen.append((history.version, table.copy()))
    assert all((history.at(version) == table_then).all() for version, table_then in versions_seen)


def test_history_takes_no_more_notes_than_the_table_has_rows():
    history, scores = ScoreHistory(np.zeros((3, 1), np.int8)), np.ones((2, 1), np.int8)
    assert history.note_all(np.array([2, 0]), scores)
    assert (history.note_all(np.array([0, 1]), scores), history.note(1, [7]), history.note(0, [8])) == (
        False,
        True,
        False,
    )
    assert history.nbytes == 3 + 3 + 12


def test_history_of_no_scores_has_versions_too():
    history = ScoreHistory(np.zeros((3, 0), np.int8))
    assert history.note(1, [])
    assert history.note_all(np.array([0]), np.zeros((1, 0), np.int8))
    assert history.at(2).shape == (3, 0)

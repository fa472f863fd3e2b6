from __future__ import annotations

from podium.lib.story import Line, Story


def test_lines_are_told_oldest_first() -> None:
    story = Story()
    story.tell(1.0, "Add", "gone", "gated", "Gates")
    story.tell(2.5, "Update", "gated", "active")
    assert story.lines == (
        Line(1.0, "Add", "gone", "gated", "Gates"),
        Line(2.5, "Update", "gated", "active"),
    )
    assert str(story).splitlines() == ["1.000 Add: gone -> gated (Gates)", "2.500 Update: gated -> active"]


def test_only_the_last_lines_are_remembered() -> None:
    story = Story()
    for number in range(Story.LENGTH + 3):
        story.tell(float(number), "Tick", "", "")
    assert [line.at_s for line in story.lines] == [float(number) for number in range(3, Story.LENGTH + 3)]


def test_a_new_story_is_empty() -> None:
    assert (Story().lines, str(Story())) == ((), "")

from dataclasses import replace

from podium.engine.gang_story import COSCHEDULING, UPSTREAM, GangStory, too_few

STORY = GangStory("ns/train", COSCHEDULING, 3, {"ns/a": "n1"}, {"ns/b": "n2"}, {"ns/c": "too large"}, wait_s=30.0)


def test_a_member_in_each_state_is_listed():
    assert STORY.headline == (
        "It is a member of the gang ns/train (scheduling.x-k8s.io): "
        "3 of its 3 pods must have a node before any of them starts"
    )
    assert STORY.lines == (
        "ns/a has a node: n1",
        "ns/b would get a node now: n2",
        "ns/c gets none: too large",
        "1 more must get a node, so none of those that wait starts",
        "a member that gets a node waits for the others for 30 s at most, then gives it back and is tried again",
    )

    story = replace(STORY, needed=9)
    assert "(scheduling.x-k8s.io): 9 pods must have a node before" in story.headline


def test_many_members_are_counted():
    nodes_by_pod = {f"ns/p{index}": f"n{index % 7}" for index in range(20)}
    lacking = {f"ns/q{index}": "too large" for index in range(8)}
    story = replace(
        STORY, needed=28, placed=nodes_by_pod, would_get={}, lacking=lacking, missing=((7, "Insufficient cpu"),)
    )
    first = ", ".join(f"ns/p{index}" for index in range(5))
    nodes = "n0 (3), n1 (3), n2 (3), n3 (3), n4 (3) and 2 more"
    assert story.lines[:3] == (
        f"{first} and 15 more have a node: {nodes}",
        "ns/q0, ns/q1, ns/q2, ns/q3, ns/q4 and 3 more get none: too large",
        "  Insufficient cpu, on 7 nodes",
    )
    assert story.short == 8


def test_a_member_with_a_held_node_waits():
    story = replace(STORY, placed={}, would_get={}, held={"ns/a": "n1"}, left_s=12.4)
    assert story.lines[0] == ("ns/a holds a node and waits for the others: n1; 12 s are left, then they are given back")
    assert story.as_dict()["held"] == {"ns/a": "n1"}


def test_gang_without_a_lack_is_complete_and_fits():
    story = replace(STORY, needed=1, would_get={}, lacking={})
    assert (story.is_complete, story.fits, story.lines[-1]) == (True, True, "the gang is complete")


def test_a_group_with_a_problem_never_fits():
    story = replace(STORY, api=UPSTREAM, needed=1, problem=too_few(3, 4), note="a note", domain="zone=z1")
    assert not story.fits
    assert story.lines[:2] == ("only 3 of the 4 pods that it needs exist", "all of them on nodes with zone=z1")
    assert story.lines[-1] == "a note"
    assert story.as_dict()["problem"] == "only 3 of the 4 pods that it needs exist"


def test_members_are_grouped_by_what_they_lack():
    lacking = {"ns/a": "waits", "ns/b": "too large", "ns/c": "waits"}
    assert replace(STORY, placed={}, would_get={}, lacking=lacking).lines[:2] == (
        "ns/a, ns/c get none: waits",
        "ns/b gets none: too large",
    )
    lacking = {f"ns/{index}": f"reason {index}" for index in range(8)}
    assert "other members get none for 3 more reasons" in replace(STORY, placed={}, lacking=lacking).lines

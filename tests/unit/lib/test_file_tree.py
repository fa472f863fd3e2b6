from podium.lib.file_tree import files_below


def test_only_wanted_files_are_found_in_order_of_their_paths(tmp_path):
    for name in ("b/a.txt", "a.txt", "b.txt", "b/.hidden/a.txt", "b/.a.txt", "c.other", "..2026/a.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    tree = files_below(str(tmp_path), lambda name: name.endswith(".txt"))
    assert tree.files == [f"{tmp_path}/{name}" for name in ("a.txt", "b.txt", "b/a.txt")]
    assert tree.hidden == [f"{tmp_path}/{name}" for name in ("b/.a.txt", "b/.hidden/a.txt")]


def test_a_hidden_directory_that_is_named_itself_is_read(tmp_path):
    folder = tmp_path / ".dump"
    folder.mkdir()
    (folder / "a.txt").touch()
    assert files_below(str(folder), lambda _: True).files == [f"{folder}/a.txt"]

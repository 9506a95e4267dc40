"""Documents out of one store and into another."""

from __future__ import annotations

import gc
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from memories_app.memory_documents.store import documents_transfer
from memories_app.models import MemoryDocument
from tests.memory_documents.conftest import Place
from tests.memory_documents.test_database import kept
from tests.memory_documents.test_tree import written
from tests.unit.memory_documents.examples import CONTENTS, document


def fill(place: Place) -> None:
    for category, content in CONTENTS.items():
        place.save(category, "feature-auth", **content)
    place.save("context", "feature-auth", days_ago=1, notes="older")
    place.save("decisions", "שלום", decision="שלום")
    for task in ("one", "two"):
        place.save("handoffs", "task-42", task=task)
        place.run("archive", "--category", "handoffs", "--identifier", "task-42")
    place.save("handoffs", "task-42", task="three")


def files_below(folder: Path) -> dict[str, bytes]:
    found = folder.rglob("*.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_out_of_the_database_and_in_again_is_the_same(database: Place, tmp_path: Path) -> None:
    fill(database)
    before = [database.paths(), database.paths(archived=True)]
    exported = database.run("export", str(tmp_path / "out"), "--json")
    assert (exported.code, exported.json["created"]) == (0, 9)
    first = files_below(tmp_path / "out")
    assert sorted(first) == sorted([*before[0], *before[1]])

    MemoryDocument.objects.all().delete()
    brought_in = database.run("import", str(tmp_path / "out"))
    assert brought_in.out == ("9 documents copied, 0 replaced, 0 there already, 0 left alone.\n")
    assert [database.paths(), database.paths(archived=True)] == before
    database.run("export", str(tmp_path / "again"))
    assert files_below(tmp_path / "again") == first, "byte for byte"


def test_from_tree_to_tree(make_place: Any, tmp_path: Path) -> None:
    tree = make_place("tree")
    fill(tree)
    assert tree.run("export", str(tmp_path / "copy")).code == 0
    assert files_below(tmp_path / "copy") == files_below(tree.root)


def test_files_of_other_programs_are_left_unchanged(database: Place, tmp_path: Path) -> None:
    value = document("context", content={"notes": "x", "more": [1.50, 1e3]}, version=3)
    raw = json.dumps(value, separators=(",", ":")).encode() + b"\r\n"
    written(tmp_path / "in", "context/2025-11-25-feature-auth.json", raw)
    written(tmp_path / "in", "context/undated.json", b"\xef\xbb\xbf" + raw)
    assert database.run("import", str(tmp_path / "in")).code == 0
    database.run("export", str(tmp_path / "out"))
    assert files_below(tmp_path / "out") == {
        "context/2025-11-25-feature-auth.json": raw,
        "context/undated.json": raw,
    }


@pytest.mark.parametrize("action", ["export", "import"])
def test_doing_it_again_changes_nothing(database: Place, tmp_path: Path, action: str) -> None:
    fill(database)
    database.run("export", str(tmp_path / "out"))
    again = database.run(action, str(tmp_path / "out"), "--json")
    assert again.code == 0
    assert again.json == {
        "created": 0,
        "updated": 0,
        "unchanged": 9,
        "refused": 0,
        "conflicts": [],
        "broken": [],
    }
    assert set(MemoryDocument.objects.values_list("version", flat=True)) == {1}


def test_one_that_was_stopped_goes_on_where_it_was(database: Place, tmp_path: Path) -> None:
    fill(database)
    database.run("export", str(tmp_path / "out"))
    MemoryDocument.objects.filter(category__in=["context", "handoffs"]).delete()
    report = database.run("import", str(tmp_path / "out"), "--json").json
    assert (report["created"], report["unchanged"]) == (6, 3)


@pytest.mark.parametrize("action", ["export", "import"])
def test_another_text_under_the_same_name_is_a_conflict_until_it_may_be_replaced(
    database: Place, tmp_path: Path, action: str
) -> None:
    database.save("decisions", "auth", decision="ours")
    database.run("export", str(tmp_path / "out"))
    path = "decisions/auth.json"
    theirs = document("decisions", content={"decision": "theirs"})
    written(tmp_path / "out", path, theirs)
    database.save("decisions", "other", decision="x")

    left = database.run(action, str(tmp_path / "out"))
    assert left.code == 1
    assert f"conflict: {path}: another text stands there" in left.out
    assert "1 document was left alone" in left.err
    assert json.loads((tmp_path / "out" / path).read_text()) == theirs
    loaded = database.run("load", "--category", "decisions", "--identifier", "auth")
    assert loaded.json["content"] == {"decision": "ours"}

    replaced = database.run(action, str(tmp_path / "out"), "--replace", "--json")
    assert (replaced.code, replaced.json["updated"]) == (0, 1)
    ours_wins = action == "export"
    wanted = {"decision": "ours" if ours_wins else "theirs"}
    assert json.loads((tmp_path / "out" / path).read_text())["content"] == wanted
    loaded = database.run("load", "--category", "decisions", "--identifier", "auth")
    assert loaded.json["content"] == wanted
    assert MemoryDocument.objects.get(name="auth").version == (1 if ours_wins else 2)


def test_broken_files_are_told_and_the_rest_comes_in(database: Place, tmp_path: Path) -> None:
    written(tmp_path / "in", "decisions/good.json", document("decisions"))
    written(tmp_path / "in", "decisions/bad.json", b"{")
    written(tmp_path / "in", "archive/context/bad.json", document("decisions"))
    ran = database.run("import", str(tmp_path / "in"), "--json")
    assert (ran.code, ran.json["created"], ran.json["refused"]) == (1, 1, 2)
    assert [each["path"] for each in ran.json["broken"]] == [
        "decisions/bad.json",
        "archive/context/bad.json",
    ]
    assert "not JSON" in ran.json["broken"][0]["detail"]


def test_a_broken_file_at_the_goal_is_left_alone(database: Place, tmp_path: Path) -> None:
    database.save("decisions", "auth", decision="ours")
    file = written(tmp_path / "out", "decisions/auth.json", b"{")
    ran = database.run("export", str(tmp_path / "out"), "--replace")
    assert ran.code == 1
    assert "what is there is broken" in ran.out
    assert file.read_bytes() == b"{"


@pytest.mark.parametrize("goal", ["database", "tree"])
def test_what_was_archived_stays_so(db: None, make_place: Any, tmp_path: Path, goal: str) -> None:
    source, target = make_place("source"), make_place(goal)
    source.save("handoffs", "task", task="one")
    source.save("handoffs", "task-2", task="two")
    assert target.run("import", str(source.root)).code == 0
    target.run("archive", "--category", "handoffs", "--identifier", "task")
    again = target.run("import", str(source.root), "--json").json
    assert (again["created"], again["unchanged"]) == (0, 2)
    assert target.paths() == ["handoffs/task-2.json"]
    source.save("handoffs", "task", task="changed")
    third = target.run("import", str(source.root), "--json").json
    assert (third["created"], third["unchanged"]) == (1, 1)


def test_a_folder_that_is_not_there_is_told(database: Place, tmp_path: Path) -> None:
    ran = database.run("import", str(tmp_path / "none"))
    assert (ran.code, ran.out) == (1, "")
    assert "There is no folder" in ran.err
    assert not (tmp_path / "none").exists()


def test_it_tells_how_far_it_is(database: Place, make_place: Any) -> None:
    tree = make_place("tree")
    tree.store.put([kept("decisions", f"d{number}") for number in range(250)])
    told: list[tuple[int, int]] = []
    documents_transfer(
        source=tree.store, target=database.store, progress=lambda *parts: told.append(parts)
    )
    assert told == [(100, 250), (200, 250), (250, 250)]


@pytest.mark.slow
@pytest.mark.parametrize("goal", ["database", "tree"])
def test_many_documents_take_no_memory(
    db: None, make_place: Any, tmp_path: Path, goal: str
) -> None:
    def peak(count: int) -> int:
        """The most that is held while so many documents of 10 KB go over."""
        source = make_place(f"from-{count}")
        texts = {"notes": "x" * 10_000}
        for start in range(0, count, 100):
            source.store.put(
                [kept("context", f"d{count}-{start + place}", **texts) for place in range(100)]
            )
        target = make_place(goal)
        tracemalloc.start()
        documents_transfer(source=source.store, target=target.store, progress=find_garbage)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    def find_garbage(done: int, total: int) -> None:
        """How much of it waits to be found depends on what ran before."""
        gc.collect()

    peak(100)
    assert peak(600) < peak(200) * 1.5


@pytest.mark.parametrize("replace", [False, True])
def test_of_two_texts_under_one_name_the_first_is_kept(
    database: Place, make_place: Any, replace: bool
) -> None:
    for place in (database, make_place("tree")):
        twice = [kept("decisions", "d1", decision=each) for each in ("first", "second")]
        outcomes = [put.outcome for put in place.store.put(twice, replace=replace)]
        assert outcomes == ["created", "conflict"]
        loaded = place.run("load", "--category", "decisions", "--identifier", "d1")
        assert loaded.json["content"]["decision"] == "first"

"""What both stores do, through the command: one suite for the database and the tree."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from memories_app.memory_document_format.envelope import read_stamp
from memories_app.memory_document_format.strict_json import MemoryDocumentInvalidError
from memories_app.memory_documents.store import Filter
from tests.memory_documents.conftest import NOON, Place
from tests.unit.memory_documents.examples import CONTENTS


def today() -> str:
    return datetime.now(timezone.utc).date().isoformat()


def test_the_commands_of_the_format_do_what_it_says(place: Place) -> None:
    """Save, load, list, query, cleanup and archive as they are printed there."""
    saved = place.run(
        "save", "--category", "context", "--identifier", "feature-auth",
        "--content", '{"decisions": ["Use JWT"]}',
    )  # fmt: skip
    assert (saved.code, saved.err) == (0, "")
    decision = json.dumps(CONTENTS["decisions"])
    place.run(
        "save", "--category", "decisions", "--identifier", "auth-implementation",
        "--content", decision,
    )  # fmt: skip
    place.run(
        "save", "--category", "handoffs", "--identifier", "task-42",
        "--content", json.dumps(CONTENTS["handoffs"]),
    )  # fmt: skip

    loaded = place.run("load", "--category", "decisions", "--identifier", "auth-implementation")
    assert (loaded.code, loaded.json["content"]) == (0, CONTENTS["decisions"])
    assert loaded.json["meta"]["summary"] == "auth-implementation"

    listed = place.run("list", "--category", "context", "--since", "7d")
    assert listed.out.split()[-1] == f"{today()}-feature-auth"
    queried = place.run("query", "--pattern", "auth*", "--category", "decisions")
    assert queried.out.split()[-1] == "auth-implementation"

    cleaned = place.run("cleanup", "--category", "context", "--older-than", "7d")
    assert (cleaned.code, cleaned.out) == (0, "0 documents removed.\n")
    archived = place.run("archive", "--category", "handoffs", "--identifier", "task-42")
    assert (archived.code, archived.out) == (0, "Archived as archive/handoffs/task-42.json.\n")
    assert place.paths(archived=True) == ["archive/handoffs/task-42.json"]
    gone = place.run("load", "--category", "handoffs", "--identifier", "task-42")
    assert gone.code == 1
    assert gone.err.startswith("There is no handoffs/task-42.json. ")
    kept = place.run("load", "--category", "handoffs", "--identifier", "task-42", "--archived")
    assert kept.json["content"] == CONTENTS["handoffs"]


def test_a_loaded_document_is_an_envelope_as_the_format_has_it(place: Place) -> None:
    arguments = ["--category", "context", "--identifier", "feature-auth"]
    content = json.dumps(CONTENTS["context"])
    saved = place.run("save", *arguments, "--content", content, "--session-id", "s-1", "--json")
    assert saved.json["outcome"] == "created"
    envelope = place.run("load", *arguments).json
    assert list(envelope) == ["meta", "content"]
    created = envelope["meta"].pop("created")
    assert created.endswith("Z")
    assert read_stamp(created) is not None
    assert envelope["meta"] == {
        "category": "context",
        "summary": "feature-auth",
        "session_id": "s-1",
    }
    assert list(envelope["content"]) == list(CONTENTS["context"])


@pytest.mark.parametrize(
    "text",
    [
        "שלום \U0001f642 e\u0301",
        'back\\slash "quotes" \\u0041 \\n',
        "lines\r\nand\ttabs\x7f",
        " spaces ",
        "\u2028\u200f<script>&amp;",
    ],
)
def test_texts_come_back_byte_for_byte(place: Place, text: str) -> None:
    place.save("context", "x", notes=text)
    loaded = place.run("load", "--category", "context", "--identifier", "x").json
    assert loaded["content"]["notes"] == text


def test_saving_again_updates_and_the_same_changes_nothing(place: Place) -> None:
    arguments = ["--category", "interfaces", "--identifier", "auth-module"]
    place.save("interfaces", "auth-module", days_ago=30, module="auth", version=1)
    first = place.run("load", *arguments).json["meta"]
    same = place.run("save", *arguments, "--content", '{"module": "auth", "version": 1}', "--json")
    assert same.json["outcome"] == "unchanged"
    assert place.run("load", *arguments).json["meta"] == first
    other = place.run("save", *arguments, "--content", '{"module": "b"}', "--json")
    assert other.json["outcome"] == "updated"
    after = place.run("load", *arguments).json
    assert after["content"] == {"module": "b"}
    assert after["meta"]["created"] == first["created"]
    assert after["meta"]["updated"] > first["created"]
    assert place.paths() == ["interfaces/auth-module.json"]


def test_load_in_context_takes_the_newest_date_or_the_one_that_is_named(place: Place) -> None:
    place.save("context", "feature-auth", days_ago=2, notes="older")
    place.save("context", "feature-auth", days_ago=1, notes="newer")
    place.save("context", "other-feature-auth", notes="another")

    def notes(identifier: str) -> Any:
        loaded = place.run("load", "--category", "context", "--identifier", identifier)
        return loaded.json["content"]["notes"]

    assert notes("feature-auth") == "newer"
    assert notes("2025-11-23-feature-auth") == "older"
    place.run("archive", "--category", "context", "--identifier", "feature-auth")
    assert notes("feature-auth") == "older"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", ["content: is not JSON"]),
        ("[]", ["content: must be an object, not a list"]),
        ('{"decisions": [1], "notes": 2}', ["content.decisions[0]: ", "content.notes: "]),
        (r'{"notes": "\u0000"}', ["content.notes: has a NUL character"]),
        ('{"a": 1, "a": 2}', ["content.a: stands there more than once"]),
        ("[" * 100_000, ["content: is nested deeper"]),
    ],
)
def test_all_wrong_content_is_told_of(place: Place, content: str, told: list[str]) -> None:
    place.save("context", "good", notes="good")
    refused = place.run("save", "--category", "context", "--identifier", "x", "--content", content)
    assert (refused.code, refused.out) == (1, "")
    for each in told:
        assert each in refused.err
    assert place.paths() == ["context/2025-11-25-good.json"]


@pytest.mark.parametrize("identifier", ["../../etc/passwd", "/tmp/x", "a/b", "..", ".x", "x.json"])
@pytest.mark.parametrize("action", ["save", "load", "archive"])
def test_names_that_lead_elsewhere_are_refused(place: Place, action: str, identifier: str) -> None:
    place.save("handoffs", "task", task="t")
    more = ["--content", "{}"] if action == "save" else []
    refused = place.run(action, "--category", "handoffs", f"--identifier={identifier}", *more)
    assert refused.code == 1
    assert "The identifier" in refused.err
    assert place.paths() == ["handoffs/task.json"]


def test_a_session_that_cannot_be_stored_is_refused_with_its_path(place: Place) -> None:
    refused = place.run(
        "save", "--category", "context", "--identifier", "x", "--content", "{}",
        "--session-id", "\udcff",
    )  # fmt: skip
    assert refused.code == 1
    assert "meta.session_id: has half a character" in refused.err


def test_lists_have_a_line_each_by_category_and_name(place: Place) -> None:
    place.save("handoffs", "task-10", progress="70%")
    place.save("decisions", "b", status="superseded")
    place.save("decisions", "B", status="accepted")
    place.save("decisions", "ה", status="deprecated")
    place.save("context", "z", days_ago=1)
    place.save("context", "a")
    assert place.run("list").out.splitlines() == [
        "2025-11-24T12:00:00Z  context                 2025-11-24-z",
        "2025-11-25T12:00:00Z  context                 2025-11-25-a",
        "2025-11-25T12:00:00Z  decisions   accepted    B",
        "2025-11-25T12:00:00Z  decisions   superseded  b",
        "2025-11-25T12:00:00Z  decisions   deprecated  ה",
        "2025-11-25T12:00:00Z  handoffs    70%         task-10",
    ]
    assert place.run("list", "--category", "decisions", "--json").json[1] == {
        "category": "decisions",
        "name": "b",
        "path": "decisions/b.json",
        "archived": False,
        "summary": "b",
        "created": "2025-11-25T12:00:00Z",
        "changed": "2025-11-25T12:00:00Z",
        "status": "superseded",
        "session_id": "",
    }
    assert place.run("list", "--category", "interfaces", "--json").json == []
    assert place.run("list", "--category", "interfaces").out == ""


def test_since_counts_from_the_last_save(place: Place) -> None:
    place.save("interfaces", "old", days_ago=30, module="a")
    place.save("interfaces", "changed", days_ago=30, module="a")
    place.save("interfaces", "changed", days_ago=3, module="b")
    place.save("interfaces", "new", days_ago=1)

    def since(days: float) -> list[str]:
        found = place.store.find(
            Filter(categories=["interfaces"], since=NOON - timedelta(days=days))
        )
        return [each.key.name for each in found]  # type: ignore[union-attr]

    assert since(7) == ["changed", "new"]
    assert since(2) == ["new"]
    assert since(30) == ["changed", "new", "old"]
    place.now = datetime.now(timezone.utc)
    place.save("interfaces", "now")
    assert place.run("list", "--since", "30m").out.split()[-1] == "now"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("auth*", ["2025-11-25-auth", "auth-1"]),
        ("*auth", ["2025-11-25-auth", "feature-auth"]),
        ("2025-11-2?-*", ["2025-11-25-auth"]),
        ("auth-[0-9].json", ["auth-1"]),
        ("AUTH*", []),
    ],
)
def test_query_finds_by_shell_patterns(place: Place, pattern: str, names: list[str]) -> None:
    place.save("context", "auth")
    place.save("decisions", "auth-1")
    place.save("decisions", "feature-auth")
    found = place.run("query", "--pattern", pattern, "--json").json
    assert [each["name"] for each in found] == names


def test_cleanup_removes_what_was_last_saved_long_ago(place: Place) -> None:
    place.now = datetime.now(timezone.utc)
    old = place.save("context", "old", days_ago=8)
    place.save("context", "new", days_ago=6)
    place.save("context", "kept", days_ago=9)
    place.run("archive", "--category", "context", "--identifier", "kept")
    place.save("decisions", "old", days_ago=900)
    before = place.paths()
    arguments = ["--category", "context", "--older-than", "7d"]
    would = place.run("cleanup", *arguments, "--dry-run", "--json").json
    assert would == {"removed": 1, "names": [old], "dry_run": True}
    assert place.paths() == before
    done = place.run("cleanup", *arguments)
    assert done.out == f"{old}\n1 document removed.\n"
    assert place.paths() == [path for path in before if old not in path]
    assert len(place.paths(archived=True)) == 1
    assert place.run("cleanup", *arguments, "--json").json["removed"] == 0


def test_what_was_saved_again_since_is_not_old(place: Place) -> None:
    place.save("interfaces", "auth", days_ago=60, module="a")
    place.save("interfaces", "auth", days_ago=1, module="b")
    assert place.store.cleanup(category="interfaces", older_than=timedelta(days=30)).names == ()
    assert place.store.cleanup(category="interfaces", older_than=timedelta(hours=1)).names == (
        "auth",
    )


def test_an_archived_document_is_never_overwritten(place: Place) -> None:
    for task in ("first", "second", "third"):
        place.save("handoffs", "task-42", task=task)
        archived = place.run(
            "archive", "--category", "handoffs", "--identifier", "task-42", "--json"
        )
        assert archived.code == 0
    assert place.paths(archived=True) == [
        "archive/handoffs/task-42.json",
        "archive/handoffs/task-42.2.json",
        "archive/handoffs/task-42.3.json",
    ]
    for name, task in (("task-42", "first"), ("task-42.2", "second"), ("task-42.3", "third")):
        loaded = place.run("load", "--category", "handoffs", "--identifier", name, "--archived")
        assert loaded.json["content"]["task"] == task
    assert archived.json["path"] == "archive/handoffs/task-42.3.json"


@pytest.mark.parametrize("action", ["load", "archive"])
def test_who_looks_for_an_archived_document_is_told_where_it_is(place: Place, action: str) -> None:
    named = ["--category", "handoffs", "--identifier", "task-42"]
    place.save("handoffs", "task-41")
    nowhere = place.run(action, *named)
    assert nowhere.err.endswith("There is no handoffs/task-42.json.")
    place.save("handoffs", "task-42", progress="100%")
    ran = place.run(action, *named)
    assert (ran.code, ran.out) == (1, "")
    assert "There is no handoffs/task-42.json. There is one in the archive" in ran.err


def test_a_handoff_is_archived_when_it_is_completed(place: Place) -> None:
    arguments = ["--category", "handoffs", "--identifier", "task-42"]
    place.run("save", *arguments, "--content", '{"progress": "70%", "pending": ["Logout"]}')
    still = place.run("save", *arguments, "--content", '{"progress": "100%", "pending": ["x"]}')
    assert "archived" not in still.out
    done = place.run("save", *arguments, "--content", '{"progress": "100%", "pending": []}')
    assert done.out == (
        "handoffs/task-42.json: updated. It is completed, and was archived as "
        "archive/handoffs/task-42.json.\n"
    )
    assert place.paths() == []
    assert place.paths(archived=True) == ["archive/handoffs/task-42.json"]
    at_once = place.run("save", *arguments, "--content", '{"progress": "100%"}', "--json")
    assert at_once.json["archived_as"] == "archive/handoffs/task-42.2.json"


def test_a_superseded_decision_stays_until_somebody_archives_it(place: Place) -> None:
    arguments = ["--category", "decisions", "--identifier", "auth"]
    saved = place.run("save", *arguments, "--content", '{"status": "superseded"}')
    assert "archive it" in saved.err
    assert place.run("list").out.split()[2] == "superseded"
    refused = place.run("save", *arguments, "--content", '{"status": "replaced"}')
    assert "content.status: must be one of accepted, superseded, deprecated" in refused.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "--category", "notes"],
        ["list", "--since", "7 days"],
        ["list", "--since", "sevend"],
        ["cleanup", "--category", "context", "--older-than", "-1d"],
        ["cleanup", "--category", "context"],
        ["save", "--category", "context", "--identifier", "x"],
        ["load", "--identifier", "x"],
        ["query"],
        ["archive", "--category", "handoffs"],
        ["nothing"],
    ],
)
def test_wrong_usage_is_told(place: Place, arguments: list[str]) -> None:
    """That the exit code is 2 is shown with the real program in test_program.py."""
    assert place.run(*arguments).err.startswith("Error: ")


@pytest.mark.parametrize("option", ["--identifier", "--content"])
def test_two_hyphens_are_no_value(place: Place, option: str) -> None:
    """Some versions of argparse make an empty list of them."""
    place.save("handoffs", "task-41")
    given = {"--identifier": "x", "--content": "{}", option: "--"}
    options = [f"{name}={value}" for name, value in given.items()]
    ran = place.run("save", "--category", "context", *options)
    assert ran.code in (1, 2)
    assert ran.err
    assert place.paths() == ["handoffs/task-41.json"]


def test_both_stores_give_the_same_errors_and_the_same_texts(make_place: Any, db: None) -> None:
    places = [make_place("database"), make_place("tree")]
    printed = []
    for each in places:
        each.save("decisions", "auth", decision="Use JWT")
        told = [
            each.run("load", "--category", "decisions", "--identifier", "auth"),
            each.run("load", "--category", "decisions", "--identifier", "none"),
            each.run("archive", "--category", "context", "--identifier", "none"),
            each.run("query", "--pattern", ""),
            each.run("list", "--json"),
        ]
        printed.append([(ran.out, ran.err, ran.code) for ran in told])
    assert printed[0] == printed[1]


def test_what_load_prints_is_saved_as_the_document_that_it_is(place: Place) -> None:
    named = ["--category", "decisions", "--identifier", "auth"]
    content = json.dumps(CONTENTS["decisions"])
    place.run("save", *named, "--session-id", "s1", "--content", content)
    whole = place.run("load", *named).out
    again = place.run("save", *named, "--content", whole)
    assert (again.code, again.out) == (0, "decisions/auth.json: unchanged.\n")
    assert place.run("load", *named).out == whole
    other = ["--category", "decisions", "--identifier", "copy"]
    assert place.run("save", *other, "--content", whole).code == 0
    copied = place.run("load", *other).json
    assert (copied["content"], copied["meta"]["session_id"]) == (CONTENTS["decisions"], "s1")


def test_a_whole_document_that_a_save_would_cut_or_nest_is_refused(place: Place) -> None:
    named = ["--category", "decisions", "--identifier", "auth"]
    meta = {"created": "2025-11-25T10:30:00Z", "category": "decisions", "summary": "auth"}
    whole = {"meta": meta, "content": {"decision": "a"}}
    for given, said in (
        ({"meta": {**meta, "category": "context"}, "content": {}}, "meta.category: is context"),
        ({**whole, "own": 1}, "own: would be lost"),
        ({**whole, "meta": {**meta, "own": 1}}, "meta.own: would be lost"),
        ({**whole, "content": {"decision": 1}}, "content.decision: must be a text"),
        ({**whole, "content": whole}, "content: is a whole document"),
    ):
        refused = place.run("save", *named, "--content", json.dumps(given))
        assert refused.code == 1
        assert said in refused.err
    with pytest.raises(MemoryDocumentInvalidError):
        place.store.save(category="decisions", identifier="auth", content=whole)
    assert place.run("load", *named).code == 1
    # Nothing of an envelope: fields of their own, which are kept.
    own = json.dumps({"meta": {"author": "me"}, "content": "x"})
    assert place.run("save", *named, "--content", own).code == 0
    assert place.run("load", *named).json["content"] == json.loads(own)

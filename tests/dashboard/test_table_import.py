"""Tables of opening hours, prices, questions and facts, from the preview to the recall."""

from __future__ import annotations

import html
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client

from memories_app.models import Memory, MergeProposal, Visibility
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.embedding.facade import embedder
from sessions_app.recall.facade import MEMORIES, Viewer, recall
from tests.remembering import remember
from tests.shown import words

pytestmark = pytest.mark.django_db

PAGE = "/admin/memories_app/memory/table/"
PRICES = "item,price\nChallah,₪25\nCheesecake,₪48\n"
HOURS = "day,opens,closes\nFri,8,14\n"
PARKING = "question,answer\nParking?,No\n"
ROW = re.compile(r'name="row" value="(\w+)"')


def preview(client: Client, text: str, **more: Any) -> Any:
    return client.post(PAGE, {"text": text, "visibility": "public", "do": "preview", **more})


def store(client: Client, text: str, ticked: list[str] | None = None, **more: Any) -> Any:
    """Confirm the preview, with all rows ticked if none are named."""
    rows = ROW.findall(preview(client, text, **more).content.decode())
    posted = {"text": text, "visibility": "public", "do": "store", **more}
    return client.post(PAGE, {**posted, "row": rows if ticked is None else ticked})


def statuses(answer: Any) -> list[str]:
    return [row.status for row in answer.context["plan"].rows]


def active() -> set[str]:
    return set(Memory.objects.filter(status="active").values_list("content", flat=True))


def figures(answer: Any) -> dict[str, int]:
    found = re.findall(r'<dd id="([\w-]+)">(\d+)</dd>', answer.content.decode())
    return {name: int(count) for name, count in found}


def found_by(question: str) -> str:
    """What a client is told first."""
    hits = recall(
        query=question,
        viewer=Viewer(user_role="client"),
        embedder=embedder(),
        sources=[MEMORIES],
        min_similarity=0.3,
    ).hits
    return hits[0].content if hits else ""


def test_the_preview_shows_each_sentence_and_stores_nothing(admin_client: Client) -> None:
    answer = preview(admin_client, f"{PRICES}Tea,ask\n")
    assert "The price of Challah is ₪25." in words(answer)
    assert statuses(answer) == ["new", "new", "invalid"]
    for text in ("row 4", "“ask” is no price"):
        assert text in words(answer)
    file = SimpleUploadedFile("p.csv", "פריט,מחיר\nחלה,25 ₪\n".encode("cp1255", "replace"))
    answer = preview(admin_client, "", file=file)
    assert "המחיר של חלה הוא 25" in words(answer)
    assert "חלה" in answer.context["form"].initial["text"], "a file stays in the form"
    for text in ("", "colour,size\nred,5\n", 'item,price\n"Tea,5\n'):
        answer = preview(admin_client, text)
        assert answer.status_code == 400
        assert text.strip() in html.unescape(answer.content.decode())
    assert not Memory.objects.exists()
    assert not AuditEvent.objects.filter(action="memory.table").exists()


def test_what_is_ticked_is_remembered_for_everyone(admin_client: Client) -> None:
    rows = ROW.findall(preview(admin_client, PRICES).content.decode())
    answer = store(admin_client, PRICES, ticked=rows[:1])
    assert figures(answer) == {"added": 1, "replaced": 0, "known": 0, "left-out": 1}
    memory = Memory.objects.get()
    assert memory.content == "The price of Challah is ₪25."
    assert (memory.visibility, memory.source) == (str(Visibility.PUBLIC), "table")
    assert memory.embeddings.count() == 1
    event = AuditEvent.objects.get(action="memory.table")
    assert (event.actor, event.details["memories"]) == ("admin", 1)
    # All that is new can be erased as a whole.
    form = answer.content.decode().split('value="forget_selected"')[1]
    chosen = re.findall(r'name="_selected_action" value="([\w-]+)"', form)
    assert chosen == [str(memory.pk)]
    # The same table again adds what is missing alone, and then nothing.
    assert statuses(preview(admin_client, PRICES)) == ["same", "new"]
    for added in (1, 0):
        again = store(admin_client, PRICES)
        assert figures(again) == {"added": added, "replaced": 0, "known": 2 - added}
    store(admin_client, "item,price\nSecret margin,₪9\n", visibility="owner")
    assert Memory.objects.get(content__contains="Secret").visibility == "owner"
    assert "Secret" not in found_by("What is the price of the secret margin?")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("item,price\nChallah or rolls,₪25\n", "item,price\nChallah or rolls,₪30\n"),
        (HOURS, "day,opens,closes\nFri,9,13\n"),
        (HOURS, "day,opens,closes\nFri,closed,\n"),
        (PARKING, "question,answer\nParking?,Behind the house\n"),
    ],
)
def test_what_changed_replaces_what_was(admin_client: Client, first: str, second: str) -> None:
    store(admin_client, first)
    older = Memory.objects.get()
    answer = preview(admin_client, second)
    assert statuses(answer) == ["replaces"]
    assert older.content in words(answer)
    assert figures(store(admin_client, second)) == {"added": 0, "replaced": 1, "known": 0}
    older.refresh_from_db()
    newer = Memory.objects.get(status="active")
    assert (older.status, older.superseded_by) == ("superseded", newer)


def test_about_pinned_memories_and_what_changed_staff_are_asked(admin_client: Client) -> None:
    store(admin_client, "item,price\nTea,₪5\n")
    Memory.objects.update(pinned=True)
    assert statuses(preview(admin_client, "item,price\nTea,₪6\n")) == ["asks"]
    store(admin_client, "item,price\nTea,₪6\n")
    prices = {"The price of Tea is ₪5.", "The price of Tea is ₪6."}
    assert active() == prices
    assert MergeProposal.objects.count() == 1
    rows = ROW.findall(preview(admin_client, PRICES).content.decode())
    remember("The price of Challah is ₪20.", visibility="public")
    answer = store(admin_client, PRICES, ticked=rows)
    assert answer.status_code == 409
    assert statuses(answer) == ["replaces", "new"]
    assert active() == prices | {"The price of Challah is ₪20."}


def test_it_is_found_by_asking(admin_client: Client) -> None:
    for table in (
        "day,opens,closes,note\nSun-Thu,8:00,18:00,\nFri,8:00,14:00,\nSat,closed,,\n",
        PRICES,
        'question,answer\nDo you deliver?,"Yes, within Haifa, for orders from ₪100."\n',
        "פריט,מחיר\nקפה,12 ₪\nעוגיות,30 ₪\n",
    ):
        store(admin_client, table)
    for question, answer in (
        ("When are you open on Friday?", "On Friday we are open from 8:00 to 14:00."),
        ("are you open on saturday", "On Saturday we are closed."),
        ("How much is a challah?", "The price of Challah is ₪25."),
        ("what does the cheesecake cost", "The price of Cheesecake is ₪48."),
        ("Can you deliver to my home?", "Do you deliver? Yes, within Haifa"),
        ("כמה עולה קפה?", "המחיר של קפה הוא 12 ₪."),
    ):
        assert found_by(question).startswith(answer), question


def test_an_example_can_be_downloaded_and_imported(admin_client: Client) -> None:
    for kind in ("hours", "prices", "questions", "facts"):
        table = admin_client.get(f"{PAGE}{kind}.csv")
        assert "attachment" in table["Content-Disposition"]
        answer = preview(admin_client, table.content.decode("utf-8-sig"))
        assert set(statuses(answer)) == {"new"}
    assert admin_client.get(f"{PAGE}secrets.csv").status_code == 404
    many = "".join(f"The code of box {number} is B{number}\n" for number in range(901))
    answer = preview(admin_client, f"fact\n{many}")
    assert answer.status_code == 400
    assert "more than 900 rows" in words(answer)


def test_the_command_imports_what_the_page_imports(db: None, tmp_path: Path) -> None:
    def run(table: str, *options: str) -> str:
        file, out = tmp_path / "table.csv", StringIO()
        file.write_text(table)
        call_command("import_knowledge", str(file), *options, stdout=out)
        return out.getvalue()

    assert "new       row 2: The price of Challah is ₪25." in run(PRICES, "--dry-run")
    assert not Memory.objects.exists()
    assert "2 new, 0 replaced, 0 known already" in run(PRICES)
    assert "0 new, 0 replaced, 2 known already" in run(PRICES)
    assert "now: The price of Challah is ₪26." not in run("item,price\nRolls,₪26\n")
    assert "now: The price of Challah is ₪25." in run("item,price\nChallah,₪26\n")
    assert AuditEvent.objects.filter(action="memory.table").count() == 3
    with pytest.raises(CommandError, match="1 of the rows can't be used"):
        run("Tea;5\nCake;ask\n", "--kind", "prices", "--currency", "€")
    assert "The price of Tea is €5." in active()
    with pytest.raises(CommandError, match="no headers that are known"):
        run("Tea;5\n")

"""Tables of opening hours, prices, questions and facts, from the preview to the recall."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from memories_app.models import Memory, MergeProposal, Visibility
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.embedding.facade import embedder
from sessions_app.recall.facade import MEMORIES, Viewer, recall
from tests.dashboard.staff import staff_with
from tests.remembering import memory_update, remember
from tests.shown import words

pytestmark = pytest.mark.django_db
PAGE = "/admin/memories_app/memory/table/"
PRICES = "item,price\nChallah,₪25\nCheesecake,₪48\n"
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


class TestPreview:
    def test_it_shows_each_sentence_and_stores_nothing(self, admin_client: Client) -> None:
        answer = preview(admin_client, PRICES)
        assert "The price of Challah is ₪25." in words(answer)
        assert statuses(answer) == ["new", "new"]
        assert not Memory.objects.exists()
        assert not AuditEvent.objects.filter(action="memory.table").exists()

    def test_a_file_is_read_and_stays_in_the_form(self, admin_client: Client) -> None:
        file = SimpleUploadedFile("p.csv", "פריט,מחיר\nחלה,25 ₪\n".encode("cp1255", "replace"))
        answer = admin_client.post(PAGE, {"file": file, "visibility": "public", "do": "preview"})
        assert "המחיר של חלה הוא 25" in words(answer)
        assert "חלה" in answer.context["form"].initial["text"]

    def test_a_row_that_can_not_be_used_is_named_and_the_others_are_stored(
        self, admin_client: Client
    ) -> None:
        table = "item,price\nChallah,₪25\nCheesecake,ask\n"
        answer = preview(admin_client, table)
        assert statuses(answer) == ["new", "invalid"]
        assert "row 3" in words(answer)
        assert "“ask” is no price" in words(answer)
        assert figures(store(admin_client, table)) == {
            "added": 1, "replaced": 0, "known": 0, "invalid": 1,
        }  # fmt: skip

    def test_a_price_that_is_there_twice_is_stored_once(self, admin_client: Client) -> None:
        answer = preview(admin_client, f"{PRICES}Challah,₪30\nCheesecake,₪48\n")
        assert statuses(answer) == ["new", "new", "invalid", "invalid"]
        assert "Row 2 says otherwise about the same." in words(answer)
        assert "Row 3 says the same." in words(answer)

    @pytest.mark.parametrize("text", ["", "colour,size\nred,5\n", 'item,price\n"Tea,5\n'])
    def test_a_table_that_is_none_is_explained_and_kept(
        self, admin_client: Client, text: str
    ) -> None:
        answer = preview(admin_client, text)
        assert answer.status_code == 400
        assert 'name="text"' in answer.content.decode()
        assert text.strip() in html.unescape(answer.content.decode())

    def test_no_text_of_a_table_becomes_markup(self, admin_client: Client) -> None:
        shown = preview(admin_client, "item,price\n<b>Tea</b>,5\n").content.decode()
        assert "<b>Tea" not in shown
        assert "&lt;b&gt;Tea&lt;/b&gt;" in shown


class TestStore:
    def test_what_is_ticked_is_remembered_for_everyone(self, admin_client: Client) -> None:
        rows = ROW.findall(preview(admin_client, PRICES).content.decode())
        answer = store(admin_client, PRICES, ticked=rows[:1])
        assert figures(answer) == {"added": 1, "replaced": 0, "known": 0, "left-out": 1}
        memory = Memory.objects.get()
        assert memory.content == "The price of Challah is ₪25."
        assert (memory.visibility, memory.source) == (str(Visibility.PUBLIC), "table")
        assert memory.embeddings.count() == 1
        event = AuditEvent.objects.get(action="memory.table")
        assert (event.actor, event.details["memories"]) == ("admin", 1)

    def test_for_the_owner_only(self, admin_client: Client) -> None:
        store(admin_client, PRICES, visibility="owner")
        assert {memory.visibility for memory in Memory.objects.all()} == {"owner"}
        assert found_by("How much is a challah?") == ""

    def test_the_same_table_again_changes_nothing(self, admin_client: Client) -> None:
        store(admin_client, PRICES)
        before = list(Memory.objects.order_by("pk").values())
        assert statuses(preview(admin_client, PRICES)) == ["same", "same"]
        assert figures(store(admin_client, PRICES))["known"] == 2
        assert list(Memory.objects.order_by("pk").values()) == before

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("item,price\nChallah or rolls,₪25\n", "item,price\nChallah or rolls,₪30\n"),
            ("day,opens,closes\nFri,8,14\n", "day,opens,closes\nFri,9,13\n"),
            ("day,opens,closes\nFri,8,14\n", "day,opens,closes\nFri,closed,\n"),
            ("question,answer\nParking?,No\n", "question,answer\nParking?,Behind the house\n"),
        ],
    )
    def test_what_changed_replaces_what_was_there(
        self, admin_client: Client, first: str, second: str
    ) -> None:
        store(admin_client, first)
        older = Memory.objects.get()
        answer = preview(admin_client, second)
        assert statuses(answer) == ["replaces"]
        assert older.content in words(answer)
        assert figures(store(admin_client, second)) == {"added": 0, "replaced": 1, "known": 0}
        older.refresh_from_db()
        assert (older.status, older.superseded_by) == (
            "superseded",
            Memory.objects.get(status="active"),
        )

    def test_hours_in_both_languages_stand_beside_each_other(self, admin_client: Client) -> None:
        store(admin_client, "day,opens,closes\nFri,8,14\n")
        store(admin_client, "יום,פתיחה,סגירה\nשישי,8,14\n")
        assert len(active()) == 2
        store(admin_client, "יום,פתיחה,סגירה\nשישי,9,13\n")
        assert active() == {
            "On Friday we are open from 8:00 to 14:00.",
            "ביום שישי אנחנו פתוחים מ-9:00 עד 13:00.",
        }

    def test_what_staff_corrected_since_is_replaced_as_well(self, admin_client: Client) -> None:
        table = "question,answer\nParking?,No\n"
        store(admin_client, table)
        memory_update(
            memory_id=Memory.objects.get().pk,
            content="Parking? Ask at the counter.",
            actor=SYSTEM,
            embedder=embedder(),
        )
        store(admin_client, "question,answer\nParking?,Behind the house\n")
        assert active() == {"Parking? Behind the house"}

    def test_about_a_pinned_memory_staff_are_asked(self, admin_client: Client) -> None:
        store(admin_client, "item,price\nTea,₪5\n")
        Memory.objects.update(pinned=True)
        assert statuses(preview(admin_client, "item,price\nTea,₪6\n")) == ["asks"]
        store(admin_client, "item,price\nTea,₪6\n")
        assert active() == {"The price of Tea is ₪5.", "The price of Tea is ₪6."}
        assert MergeProposal.objects.count() == 1

    def test_what_changed_since_the_preview_is_shown_again(self, admin_client: Client) -> None:
        rows = ROW.findall(preview(admin_client, PRICES).content.decode())
        remember("The price of Challah is ₪20.", visibility="public")
        answer = store(admin_client, PRICES, ticked=rows)
        assert answer.status_code == 409
        assert statuses(answer) == ["replaces", "new"]
        assert active() == {"The price of Challah is ₪20."}

    def test_a_date_ends_after_its_day(self, admin_client: Client) -> None:
        day = timezone.localdate() + timedelta(days=3)
        store(admin_client, f"date,opens,closes\n{day.isoformat()},closed,\n")
        ends = Memory.objects.get().expires_at
        assert ends is not None
        assert timezone.localdate(ends) == day + timedelta(days=1)

    def test_what_is_new_can_be_erased_as_a_whole(self, admin_client: Client) -> None:
        answer = store(admin_client, PRICES)
        form = answer.content.decode().split('value="forget_selected"')[1]
        chosen = re.findall(r'name="_selected_action" value="([\w-]+)"', form)
        assert set(chosen) == {str(memory.pk) for memory in Memory.objects.all()}
        posted = {"action": "forget_selected", "_selected_action": chosen}
        draft: Any = admin_client.post("/admin/memories_app/memory/?state=all", posted, follow=True)
        shown = b"".join(draft.streaming_content).decode()
        assert "The price of Challah is ₪25." in shown
        assert "The price of Cheesecake is ₪48." in shown

    def test_as_many_rows_as_a_table_may_have(self, admin_client: Client) -> None:
        table = "fact\n" + "".join(
            f"The code of box {number} is B{number}\n" for number in range(900)
        )
        assert figures(store(admin_client, table))["added"] == 900
        answer = preview(admin_client, f"{table}The code of box 900 is B900\n")
        assert answer.status_code == 400
        assert "more than 900 rows" in words(answer)


class TestRecall:
    @pytest.fixture
    def cafe(self, admin_client: Client) -> None:
        for table in (
            "day,opens,closes,note\nSun-Thu,8:00,18:00,\nFri,8:00,14:00,\nSat,closed,,\n",
            PRICES,
            'question,answer\nDo you deliver?,"Yes, within Haifa, for orders from ₪100."\n',
            "פריט,מחיר\nקפה,12 ₪\nעוגיות,30 ₪\n",
        ):
            store(admin_client, table)

    @pytest.mark.parametrize(
        ("question", "answer"),
        [
            ("When are you open on Friday?", "On Friday we are open from 8:00 to 14:00."),
            ("are you open on saturday", "On Saturday we are closed."),
            ("How much is a challah?", "The price of Challah is ₪25."),
            ("what does the cheesecake cost", "The price of Cheesecake is ₪48."),
            ("Can you deliver to my home?", "Do you deliver? Yes, within Haifa"),
            ("כמה עולה קפה?", "המחיר של קפה הוא 12 ₪."),
        ],
    )
    def test_it_is_found_by_asking(self, cafe: None, question: str, answer: str) -> None:
        assert found_by(question).startswith(answer)


class TestRights:
    @pytest.mark.parametrize("right", ["memories_app.view_memory", "memories_app.add_memory"])
    def test_who_may_not_add_and_see_memories_may_not_import(self, db: None, right: str) -> None:
        client = staff_with(right)
        assert client.get(PAGE).status_code == 403
        assert preview(client, PRICES).status_code == 403
        assert store(client, PRICES).status_code == 403
        assert client.get(f"{PAGE}prices.csv").status_code == 403
        assert not Memory.objects.exists()

    def test_who_may_not_erase_is_not_offered_it(self, db: None) -> None:
        client = staff_with("memories_app.view_memory", "memories_app.add_memory")
        answer = store(client, PRICES)
        assert Memory.objects.count() == 2
        assert "forget_selected" not in answer.content.decode()


def test_an_example_can_be_downloaded_and_imported(admin_client: Client) -> None:
    for kind in ("hours", "prices", "questions", "facts"):
        table = admin_client.get(f"{PAGE}{kind}.csv")
        assert "attachment" in table["Content-Disposition"]
        answer = preview(admin_client, table.content.decode("utf-8-sig"))
        assert set(statuses(answer)) == {"new"}
    assert admin_client.get(f"{PAGE}secrets.csv").status_code == 404


class TestCommand:
    @pytest.fixture
    def run(self, db: None, tmp_path: Path) -> Callable[..., str]:
        def command(table: str, *options: str) -> str:
            file, out = tmp_path / "table.csv", StringIO()
            file.write_text(table)
            call_command("import_knowledge", str(file), *options, stdout=out)
            return out.getvalue()

        return command

    def test_it_imports_what_the_page_imports(self, run: Callable[..., str]) -> None:
        assert "new       row 2: The price of Challah is ₪25." in run(PRICES, "--dry-run")
        assert not Memory.objects.exists()
        assert "2 new, 0 replaced, 0 known already" in run(PRICES)
        assert "0 new, 0 replaced, 2 known already" in run(PRICES)
        assert "now: The price of Challah is ₪25." in run("item,price\nChallah,₪26\n")
        assert AuditEvent.objects.filter(action="memory.table").count() == 2

    def test_it_names_what_it_can_not_use(self, run: Callable[..., str]) -> None:
        with pytest.raises(CommandError, match="1 of the rows can't be used"):
            run("Tea;5\nCake;ask\n", "--kind", "prices", "--currency", "€")
        assert active() == {"The price of Tea is €5."}
        with pytest.raises(CommandError, match="no headers that are known"):
            run("Tea;5\n")


def test_the_menu_leads_to_it(admin_client: Client) -> None:
    assert PAGE in admin_client.get("/admin/memories_app/memory/").content.decode()

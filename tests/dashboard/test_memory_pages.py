"""The list of memories and a memory's page: searched, filtered, changed in place, and safe for
whatever people say."""

from __future__ import annotations

import html
import re
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories_app.models import Memory
from memories_app.review.consolidate import memories_propose_merges
from memories_app.store.change import memory_set_visibility
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.embedders.base import Calibration, EmbedderError
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.embedding.choice import embedder
from sessions_app.models import Chat, Message
from tests.dashboard.staff import staff_with
from tests.remembering import remember
from tests.shown import found_in, said, words_of
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db

LIST = "/admin/memories_app/memory/"
STAFF = Actor("staff", "dana")
TEA, INVOICES = "Dana likes tea", "TestCorp pays its invoices within 30 days"
BILL = "When does TestCorp settle a bill?"


def page(memory: Memory) -> str:
    return f"{LIST}{memory.pk}/change/"


def shown(client: Client, address: str = LIST, **query: str) -> str:
    answer = client.get(address, query)
    assert answer.status_code == 200, answer
    return str(answer.content.decode())


def rows(text: str) -> list[str]:
    """The contents of the list's rows, in order."""
    column = r'field-short_content.*?<span class="said" dir="auto">(.*?)</span>'
    return re.findall(column, text, re.S)


# Searching


def test_the_search_box_finds_by_meaning_and_tells_the_scores(admin_client: Client) -> None:
    remember(INVOICES)
    weak = remember("Dana likes tea of the garden")
    found = shown(admin_client, q=BILL)
    assert rows(found) == [INVOICES, weak.content], "what is too weak stands below"
    assert "By meaning and words" in found
    assert re.search(r'class="score relevant"[^>]*>(0\.\d\d|1\.00)<', found)
    assert "would be recalled" in found
    assert found.count("too weak to be recalled</span>") == 1
    # What is shown only as the nearest is not exported with what was found, but if it is ticked.
    query = urlencode({"q": BILL})
    exported = admin_client.post(f"{LIST}export/?{query}").getvalue().decode()
    assert ("TestCorp" in exported, "Dana" in exported) == (True, False)
    redacted = admin_client.post(f"{LIST}export/?{query}", {"redact": "on"})
    assert b'"redacted": true' in redacted.getvalue()
    data = {"action": "export_selected", "_selected_action": [str(weak.pk)]}
    assert "Dana" in admin_client.post(f"{LIST}?{query}", data).getvalue().decode()


def test_where_no_vector_can_be_made_the_words_decide_and_the_page_says_so(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        model_id = "broken"
        dimensions = 4
        calibration = Calibration(midpoint=0.5, slope=10)

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            raise EmbedderError("It is down.", permanent=False)

        def coverage(self, text: str) -> float:
            return 1.0

    remember("TestCorp pays within 30 days")
    monkeypatch.setattr("sessions_app.memories.memory_pages.embedder", Broken)
    found = shown(admin_client, q="TestCorp pays")
    assert rows(found) == ["TestCorp pays within 30 days"]
    assert "Search by meaning is not available just now" in found


def test_a_search_stays_within_filters_and_states(admin_client: Client) -> None:
    remember(TEA, tags=("people",))
    remember("Yossi likes tea", visibility="public")
    remember("The price is 35")
    remember("The price is 40")
    for query, found in (
        ({"q": "who likes tea", "visibility__exact": "public"}, ["Yossi likes tea"]),
        ({"q": "who likes tea", "tag": "people"}, [TEA]),
        ({"q": "price"}, ["The price is 40"]),
        ({"q": "price", "state": "superseded"}, ["The price is 35"]),
    ):
        assert rows(shown(admin_client, **query))[:1] == found, query
    assert {"The price is 35", "The price is 40"} <= set(rows(shown(admin_client, state="all")))


def test_ids_and_addresses_are_found(admin_client: Client, world: World) -> None:
    """Of an id also its beginning, as `/memories` shows it on WhatsApp."""
    world.remember(CLIENT, TEA)
    other = remember("Yossi likes coffee")
    memory = Memory.objects.exclude(pk=other.pk).get()
    key = str(memory.pk)
    ids = (key, key[:8], key[:13].upper(), memory.chat_id, memory.source_message_id, CLIENT)
    for asked in ids:
        assert rows(shown(admin_client, q=str(asked))) == [TEA], asked
    assert rows(shown(admin_client, q="1@c.us")) == []


def test_a_part_of_a_word_is_found_where_nothing_else_fits(admin_client: Client) -> None:
    remember("The part for the oven is AB-77120419")
    remember(TEA, visibility="public")
    found = shown(admin_client, q="7120419")
    assert rows(found) == ["The part for the oven is AB-77120419"]
    assert "contain it as part of a word" in found
    assert rows(shown(admin_client, q="7120419", visibility__exact="public")) == [TEA]
    assert "as a part of a word" not in shown(admin_client, q="oven")


def test_the_nearest_are_shown_and_marked_where_nothing_fits(admin_client: Client) -> None:
    for place in range(7):
        remember(f"Dana likes tea number {place} of the garden")
    found = shown(admin_client, q="invoice payment deadline")
    assert len(rows(found)) == 5
    assert "No close match." in found
    assert found.count("too weak to be recalled</span>") == 5
    assert "would be recalled</span>" not in found


# Filters


def test_filters_by_each_field_and_what_is_to_decide(admin_client: Client, world: World) -> None:
    world.remember(CLIENT, TEA)
    remember("A date", type="date", category="plans", source="staff", tags=("a",))
    remember("The customer Dana Levi prefers morning meetings in the Haifa office")
    remember("Customer Dana Levi prefers meetings in the morning, Haifa office")
    remember("Perhaps", proposed=True)
    remember("Gone", expires_at=timezone.now() - timedelta(days=1))
    memories_propose_merges(model_id=embedder().model_id)
    Memory.objects.get(type="date").embeddings.all().delete()
    with CaptureQueriesContext(connection) as captured:
        first = shown(admin_client)
    assert len(rows(first)) == 4, "what is recalled"
    # The choices are read from indexes.
    # The menu's badge counts conversations.
    own = [query["sql"] for query in captured if "activity.chat_id" not in query["sql"]]
    assert not [sql for sql in own if "DISTINCT" in sql.upper()]
    for link in ("?type=date", "?category=plans", "?source=staff", "?tag=a", "?vector=none"):
        assert link in first, "offered"
        assert rows(shown(admin_client, f"{LIST}{link}")) == ["A date"]
    assert rows(shown(admin_client, chat=CLIENT)) == [TEA]
    assert rows(shown(admin_client, chat="nobody@c.us")) == []
    assert len(rows(shown(admin_client, pending="yes"))) == 2
    assert rows(shown(admin_client, state="proposed")) == ["Perhaps"]
    assert rows(shown(admin_client, state="expired")) == ["Gone"]
    assert rows(shown(admin_client, state="superseded")) == []
    assert len(rows(shown(admin_client, state="all"))) == 6


# Rows


def row(memory: Memory, wanted: str, was: str = "owner") -> dict[str, str]:
    return {f"vis-{memory.pk}": wanted, f"was-{memory.pk}": was}


def post_rows(client: Client, posted: dict[str, str]) -> Any:
    return client.post(f"{LIST}rows/", posted, follow=True)


def test_who_sees_a_memory_is_changed_in_its_row(admin_client: Client) -> None:
    one, other = remember(TEA), remember("Yossi likes coffee")
    listed = shown(admin_client)
    assert f'name="vis-{one.pk}"' in listed
    assert 'value="chat"' not in listed, "it came from no chat"
    posted = {**row(one, "public"), **row(other, "owner"), "list_query": "type=fact"}
    saved = post_rows(admin_client, posted)
    assert saved.redirect_chain[-1][0] == f"{LIST}?type=fact"
    assert "The visibility of 1 memory was changed." in said(saved)
    assert one.revisions.get().changed_by_name == "admin"
    for wanted in ("chat", "nobody", ""):
        assert "visibility" in said(post_rows(admin_client, row(other, wanted)))
    for forged in ({"pin": "x"}, {"vis-x": "public"}, {"pin": "\x00"}):
        assert admin_client.post(f"{LIST}rows/", forged).status_code == 400
    assert "There is no memory" in said(post_rows(admin_client, {"pin": str(uuid.uuid4())}))
    stored = Memory.objects.order_by("created_at").values_list("visibility", flat=True)
    assert list(stored) == ["public", "owner"]


def test_a_row_that_somebody_changed_meanwhile_is_left_and_told(admin_client: Client) -> None:
    chat = Chat.objects.create(whatsapp_chat=CLIENT, provider="cloud")
    one = remember(TEA, visibility="chat", chat_id=chat.pk)
    other = remember("Yossi likes coffee")
    memory_set_visibility(memory_id=one.pk, visibility="public", actor=STAFF)
    saved = post_rows(admin_client, {**row(one, "owner", "chat"), **row(other, "public")})
    assert "“owner only” wasn&#x27;t saved" in said(saved)
    assert page(one) in said(saved)
    assert "The visibility of 1 memory" in said(saved)
    assert set(Memory.objects.values_list("visibility", flat=True)) == {"public"}


def test_a_memory_is_pinned_in_its_row_and_stands_first(admin_client: Client) -> None:
    one = remember(TEA)
    remember("Yossi likes coffee")
    post_rows(admin_client, {"pin": str(one.pk)})
    assert rows(shown(admin_client))[0] == TEA
    assert "isn't pinned" in said(post_rows(admin_client, {"unpin": str(one.pk)}))
    one.refresh_from_db()
    assert not one.pinned


# Whose it is, and where it comes from


def test_the_list_says_whose_it_is_and_leads_to_theirs(admin_client: Client, world: World) -> None:
    world.remember(CLIENT, TEA)
    world.remember(OTHER_CLIENT, "Rex likes bones")
    remember("We open at nine", visibility="public")
    remember("The safe is behind the mirror")
    Chat.objects.filter(whatsapp_chat=CLIENT).update(client_name="Dana Levi")
    Chat.objects.filter(whatsapp_chat=OTHER_CLIENT).update(client_name="נועה כהן")
    listed = shown(admin_client)
    whose = re.findall(r"field-shown_person[^>]*>(.*?)</td>", listed, re.S)
    names = sorted(words_of(cell) for cell in whose)
    # Without addresses, which the row has no room for.
    assert names == sorted(["everyone", "the owner", "Dana Levi", "נועה כהן"])
    chat = world.chat(OTHER_CLIENT)
    assert f'href="{LIST}?chat={chat.pk}"' in listed
    found = shown(admin_client, chat=str(chat.pk))
    assert rows(found) == ["Rex likes bones"]
    # The filter's field names the person; sent again, it finds the same.
    assert html.escape(str(chat)) in found
    assert rows(shown(admin_client, chat=str(chat))) == ["Rex likes bones"]


def test_a_memory_leads_to_its_message_and_its_answers(admin_client: Client, world: World) -> None:
    world.remember(CLIENT, "TestCorp pays within 30 days")
    memory = Memory.objects.get()
    message = Message.objects.get(pk=memory.source_message_id)
    chat = f"/admin/sessions_app/chat/{message.chat_id}/conversation/"
    world.say(CLIENT, "When does TestCorp pay?")
    turn = world.chat(CLIENT).turns.get(replay__recalled__contains=[{"source": "memory"}])
    found = shown(admin_client, page(memory))
    for place in (shown(admin_client), found):
        assert f"{chat}?at={message.pk}#m-{message.pk}" in place
    section = found.partition("Where it was used")[2].partition("</section>")[0]
    assert f"/admin/sessions_app/turn/{turn.pk}/change/" in section
    assert number_shown(CLIENT) in section
    # Who may not read messages is led to none.
    reader = staff_with("memories_app.view_memory")
    for place in (shown(reader), shown(reader, page(memory))):
        assert "TestCorp pays within 30 days" in place
        assert "/conversation/" not in place


def test_its_events_are_shown_to_those_who_may_read_the_log(admin_client: Client) -> None:
    memory = remember(TEA)
    post_rows(admin_client, {"pin": str(memory.pk)})
    found = shown(admin_client, page(memory))
    section = found.partition('id="events-title"')[2].partition("</section>")[0]
    assert "A memory was stored" in section
    assert re.search(r"A memory was pinned · <bdi>admin</bdi>", section)
    (event,) = AuditEvent.objects.filter(action="memory.pin")
    assert f"/admin/audit/auditevent/{event.pk}/change/" in section
    everything = found_in(r'href="(/admin/audit/auditevent/\?q=[^"]+)"', section)
    assert admin_client.get(everything).context["cl"].result_count == 2
    reader = staff_with("memories_app.view_memory")
    assert 'id="events-title"' not in shown(reader, page(memory))


def test_an_event_names_its_person_to_those_who_may_see_chats(admin_client: Client) -> None:
    chat = Chat.objects.create(whatsapp_chat="15550100123@c.us", client_name="Dana")
    actor = Actor("person", chat_id=chat.pk)
    memory = remember(TEA, chat_id=chat.pk, visibility="chat", actor=actor)
    stored = "A memory was stored · <bdi>"
    assert f"{stored}Dana</bdi>" in shown(admin_client, page(memory))
    auditor = staff_with("memories_app.view_memory", "audit.view_auditevent")
    assert f"{stored}p-" in shown(auditor, page(memory))

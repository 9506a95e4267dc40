"""The list of memories and a memory's page: searched, filtered, changed in place, and safe for
whatever people say."""

from __future__ import annotations

import html
import re
import uuid
from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
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
from tests.memories.bulk import memories_store
from tests.remembering import remember
from tests.shown import said
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db
LIST = "/admin/memories_app/memory/"
STAFF = Actor("staff", "dana")


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


def staff_with(client: Client, *codenames: str) -> Client:
    user = get_user_model().objects.create_user("somebody", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    return client


# Searching


def test_the_search_box_finds_by_meaning_and_tells_the_scores(admin_client: Client) -> None:
    remember("TestCorp pays its invoices within 30 days")
    remember("Dana likes tea")
    found = shown(admin_client, q="When does TestCorp settle a bill?")
    assert rows(found)[0] == "TestCorp pays its invoices within 30 days"
    assert "By meaning and words" in found
    score = re.search(r'class="score relevant"[^>]*>(0\.\d\d|1\.00)<', found)
    assert score is not None
    assert "would be recalled" in found


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


def test_a_search_stays_within_the_filters(admin_client: Client) -> None:
    remember("Dana likes tea", tags=("people",))
    remember("Yossi likes tea", visibility="public")
    assert rows(shown(admin_client, q="who likes tea", visibility__exact="public")) == [
        "Yossi likes tea"
    ]
    assert rows(shown(admin_client, q="who likes tea", tag="people")) == ["Dana likes tea"]


def test_what_is_not_recalled_is_searched_by_its_words(admin_client: Client) -> None:
    remember("The price is 35")
    remember("The price is 40")
    assert rows(shown(admin_client, q="price")) == ["The price is 40"]
    assert rows(shown(admin_client, q="price", state="superseded")) == ["The price is 35"]
    assert set(rows(shown(admin_client, q="price", state="all"))) == {
        "The price is 40",
        "The price is 35",
    }


def test_ids_and_addresses_are_found(admin_client: Client, world: World) -> None:
    world.remember(CLIENT, "Dana likes tea")
    other = remember("Yossi likes coffee")
    memory = Memory.objects.exclude(pk=other.pk).get()
    for asked in (memory.pk, memory.chat_id, memory.source_message_id, CLIENT):
        assert rows(shown(admin_client, q=str(asked))) == ["Dana likes tea"]
    assert rows(shown(admin_client, q="1@c.us")) == []


def test_the_beginning_of_an_id_finds_its_memory(admin_client: Client) -> None:
    """As `/memories` shows it on WhatsApp."""
    memory = remember("Dana likes tea")
    remember("Yossi likes coffee")
    assert rows(shown(admin_client, q=str(memory.pk)[:8])) == ["Dana likes tea"]
    assert rows(shown(admin_client, q=str(memory.pk)[:13].upper())) == ["Dana likes tea"]


def test_a_part_of_a_word_is_found_where_nothing_else_fits(admin_client: Client) -> None:
    remember("The part for the oven is AB-77120419")
    remember("Dana likes tea", visibility="public")
    found = shown(admin_client, q="7120419")
    assert rows(found) == ["The part for the oven is AB-77120419"]
    assert "contain it as part of a word" in found
    assert rows(shown(admin_client, q="7120419", visibility__exact="public")) == ["Dana likes tea"]
    assert "as a part of a word" not in shown(admin_client, q="oven")


def test_the_nearest_are_shown_and_marked_where_nothing_fits(admin_client: Client) -> None:
    for place in range(7):
        remember(f"Dana likes tea number {place} of the garden")
    found = shown(admin_client, q="invoice payment deadline")
    assert len(rows(found)) == 5
    assert "No close match." in found
    assert found.count("too weak to be recalled</span>") == 5
    assert "would be recalled</span>" not in found


def test_the_nearest_stand_below_what_fits(admin_client: Client) -> None:
    remember("Dana likes tea of the garden")
    remember("TestCorp pays its invoices within 30 days")
    found = shown(admin_client, q="When does TestCorp settle a bill?")
    assert rows(found) == [
        "TestCorp pays its invoices within 30 days",
        "Dana likes tea of the garden",
    ]
    assert found.count("too weak to be recalled</span>") == 1
    assert "By meaning and words" in found


def test_what_is_shown_only_as_the_nearest_is_not_exported_with_what_was_found(
    admin_client: Client,
) -> None:
    weak = remember("Dana likes tea of the garden")
    remember("TestCorp pays its invoices within 30 days")
    query = "q=When+does+TestCorp+settle+a+bill%3F"
    answer = admin_client.post(f"{LIST}export/?{query}")
    lines = answer.getvalue().decode()
    assert "TestCorp" in lines
    assert "Dana" not in lines
    # What is ticked is meant.
    data = {"action": "export_selected", "_selected_action": [str(weak.pk)]}
    ticked = admin_client.post(f"{LIST}?{query}", data)
    assert "Dana" in ticked.getvalue().decode()


@pytest.mark.parametrize("asked", ["\x00", "\x00tea", "'; --", "<script>", "א" * 5_000, "%_\\"])
def test_odd_searches_are_answered(admin_client: Client, asked: str) -> None:
    remember("Dana likes tea")
    assert "<script>" not in shown(admin_client, q=asked).split("<main")[1]


# Filters


def test_filters_by_type_category_source_tag_chat_vector_and_what_is_to_decide(
    admin_client: Client, world: World
) -> None:
    world.remember(CLIENT, "Dana likes tea")
    remember("A date", type="date", category="plans", source="staff", tags=("a",))
    remember("The customer Dana Levi prefers morning meetings in the Haifa office")
    remember("Customer Dana Levi prefers meetings in the morning, Haifa office")
    memories_propose_merges(model_id=embedder().model_id)
    Memory.objects.get(type="date").embeddings.all().delete()
    first = shown(admin_client)
    for link in ("?type=date", "?category=plans", "?source=staff", "?tag=a", "?vector=none"):
        assert link in first, "offered"
        assert rows(shown(admin_client, f"{LIST}{link}")) == ["A date"]
    assert rows(shown(admin_client, chat=CLIENT)) == ["Dana likes tea"]
    assert rows(shown(admin_client, chat="nobody@c.us")) == []
    assert len(rows(shown(admin_client, pending="yes"))) == 2
    assert len(rows(first)) == 4


def test_the_choices_of_filters_are_read_from_indexes(admin_client: Client) -> None:
    memories_store([f"Customer {number} likes tea" for number in range(40)], type="taste")
    with CaptureQueriesContext(connection) as captured:
        shown(admin_client)
    assert not [query for query in captured if "DISTINCT" in query["sql"].upper()]


@pytest.mark.parametrize(
    "query", ["created_at__gte=soon", "p=0", "p=99", "o=99", "state=x", "tag=x", "chat=x", "q=%00"]
)
def test_filters_that_make_no_sense_are_no_error(admin_client: Client, query: str) -> None:
    remember("Dana likes tea")
    assert admin_client.get(f"{LIST}?{query}", follow=True).status_code == 200


@pytest.mark.parametrize("query", ["tag=%00", "chat=%00", "visibility__exact=%00", "type=a%00"])
def test_a_nul_in_a_filter_is_refused_where_something_is_done(
    admin_client: Client, query: str
) -> None:
    remember("Dana likes tea", tags=("a",))
    assert admin_client.get(f"{LIST}?{query}").status_code == 200
    assert admin_client.post(f"{LIST}export/?{query}").status_code == 400


# Length


def test_the_list_asks_as_many_questions_for_sixty_as_for_three(
    admin_client: Client, world: World
) -> None:
    def asked(**query: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            shown(admin_client, **query)
        return len(captured)

    world.remember(CLIENT, "Dana likes tea")
    memories_store(["We open at 9", "We close at 5"])
    shown(admin_client), shown(admin_client, q="tea")
    few, few_found = asked(), asked(q="tea")
    memories_store([f"Customer {number} likes tea" for number in range(57)])
    assert asked() <= few
    assert asked(q="tea") <= few_found


def test_a_page_asks_as_many_questions_for_a_long_history(admin_client: Client) -> None:
    memory = remember("The price is 1")
    shown(admin_client, page(memory))

    def asked() -> int:
        with CaptureQueriesContext(connection) as captured:
            shown(admin_client, page(memory))
        return len(captured)

    remember("The price is 1")
    few = asked()
    for number in range(2, 20):
        memory.tellings.create(source="staff", told_at=timezone.now())
        memory.revisions.create(
            number=number,
            content=f"The price is {number}",
            visibility="owner",
            type="fact",
            changed_by_kind="staff",
            changed_by_name="dana",
            reason="updated",
        )
    assert asked() == few


# Rows


def row(memory: Memory, wanted: str, was: str = "owner") -> dict[str, str]:
    return {f"vis-{memory.pk}": wanted, f"was-{memory.pk}": was}


def test_who_sees_a_memory_is_changed_in_its_row(admin_client: Client) -> None:
    one, other = remember("Dana likes tea"), remember("Yossi likes coffee")
    listed = shown(admin_client)
    assert f'name="vis-{one.pk}"' in listed
    assert 'value="chat"' not in listed, "it came from no chat"
    saved = admin_client.post(
        f"{LIST}rows/",
        {**row(one, "public"), **row(other, "owner"), "list_query": "type=fact"},
        follow=True,
    )
    assert saved.redirect_chain[-1][0] == f"{LIST}?type=fact"
    assert "The visibility of 1 memory was changed." in said(saved)
    assert list(Memory.objects.order_by("created_at").values_list("visibility", flat=True)) == [
        "public",
        "owner",
    ]
    assert one.revisions.get().changed_by_name == "admin"


def test_a_row_that_somebody_changed_meanwhile_is_left_and_told(admin_client: Client) -> None:
    chat = Chat.objects.create(whatsapp_chat=CLIENT, provider="cloud")
    one = remember("Dana likes tea", visibility="chat", chat_id=chat.pk)
    other = remember("Yossi likes coffee")
    memory_set_visibility(memory_id=one.pk, visibility="public", actor=STAFF)
    saved = admin_client.post(
        f"{LIST}rows/", {**row(one, "owner", "chat"), **row(other, "public")}, follow=True
    )
    assert "“owner only” wasn&#x27;t saved" in said(saved)
    assert page(one) in said(saved)
    assert "The visibility of 1 memory" in said(saved)
    one.refresh_from_db()
    other.refresh_from_db()
    assert (one.visibility, other.visibility) == ("public", "public")


@pytest.mark.parametrize("wanted", ["chat", "nobody", ""])
def test_a_row_that_can_not_be_is_refused_in_words(admin_client: Client, wanted: str) -> None:
    memory = remember("Dana likes tea")
    saved = admin_client.post(f"{LIST}rows/", row(memory, wanted), follow=True)
    assert "visibility" in said(saved)
    memory.refresh_from_db()
    assert memory.visibility == "owner"


def test_a_memory_is_pinned_in_its_row_and_stands_first(admin_client: Client) -> None:
    one = remember("Dana likes tea")
    remember("Yossi likes coffee")
    admin_client.post(f"{LIST}rows/", {"pin": str(one.pk)})
    assert rows(shown(admin_client))[0] == "Dana likes tea"
    assert "isn't pinned" in said(
        admin_client.post(f"{LIST}rows/", {"unpin": str(one.pk)}, follow=True)
    )
    one.refresh_from_db()
    assert not one.pinned


@pytest.mark.parametrize("posted", [{"pin": "x"}, {"vis-x": "public"}, {"pin": "\x00"}])
def test_forged_rows_are_refused(admin_client: Client, posted: dict[str, str]) -> None:
    assert admin_client.post(f"{LIST}rows/", posted).status_code == 400


# Whose it is


@pytest.fixture
def people(world: World) -> dict[str, Chat]:
    world.remember(CLIENT, "Dana likes tea")
    world.remember(OTHER_CLIENT, "Rex likes bones")
    remember("We open at nine", visibility="public")
    remember("The safe is behind the mirror")
    Chat.objects.filter(whatsapp_chat=CLIENT).update(client_name="Dana Levi")
    Chat.objects.filter(whatsapp_chat=OTHER_CLIENT).update(client_name="נועה כהן")
    return {name: Chat.objects.get(whatsapp_chat=name) for name in (CLIENT, OTHER_CLIENT)}


def test_the_list_says_whose_each_memory_is(admin_client: Client, people: dict[str, Chat]) -> None:
    whose = re.findall(r"field-shown_person.*?</td>", shown(admin_client), re.S)
    names = [" ".join(re.sub(r"<[^>]+>", " ", cell.partition(">")[2]).split()) for cell in whose]
    # Without addresses, which the row has no room for.
    assert sorted(names) == sorted(["everyone", "the owner", "Dana Levi", "נועה כהן"])


@pytest.mark.parametrize("typed", ["dana", "Levi", CLIENT, CLIENT.split("@")[0], "0100123"])
def test_the_memories_of_a_person_are_found_by_name_and_number(
    admin_client: Client, people: dict[str, Chat], typed: str
) -> None:
    assert rows(shown(admin_client, chat=typed)) == ["Dana likes tea"]


def test_the_name_in_a_row_leads_to_all_of_the_persons_memories(
    admin_client: Client, people: dict[str, Chat]
) -> None:
    chat = people[OTHER_CLIENT]
    assert f'href="{LIST}?chat={chat.pk}"' in shown(admin_client)
    found = shown(admin_client, chat=str(chat.pk))
    assert rows(found) == ["Rex likes bones"]
    # The filter's field names the person; sent again, it finds the same.
    assert html.escape(str(chat)) in found
    assert rows(shown(admin_client, chat=str(chat))) == ["Rex likes bones"]


# Where it comes from


def test_the_message_that_told_it_is_one_click_away(admin_client: Client, world: World) -> None:
    world.remember(CLIENT, "Dana likes tea")
    memory = Memory.objects.get()
    message = Message.objects.get(pk=memory.source_message_id)
    place = (
        f"/admin/sessions_app/chat/{message.chat_id}/conversation/?at={message.pk}#m-{message.pk}"
    )
    assert place in shown(admin_client)
    assert place in shown(admin_client, page(memory))


def test_the_answers_for_which_it_was_recalled_are_linked(
    admin_client: Client, world: World
) -> None:
    world.remember(CLIENT, "TestCorp pays within 30 days")
    world.say(CLIENT, "When does TestCorp pay?")
    turn = world.chat(CLIENT).turns.get(replay__recalled__contains=[{"source": "memory"}])
    found = shown(admin_client, page(Memory.objects.get()))
    section = found.partition("Where it was used")[2].partition("</section>")[0]
    assert f"/admin/sessions_app/turn/{turn.pk}/change/" in section
    assert number_shown(CLIENT) in section


def test_one_that_no_answer_used_says_so(admin_client: Client, world: World) -> None:
    assert "None of the newest answers used it." in shown(
        admin_client, page(remember("Dana likes tea"))
    )


# What was done with it


def test_the_page_shows_its_events_to_those_who_may_read_the_audit_log(
    admin_client: Client, client: Client
) -> None:
    memory = remember("Dana likes tea")
    admin_client.post(f"{LIST}rows/", {"pin": str(memory.pk)})
    found = shown(admin_client, page(memory))
    section = found.partition('id="events-title"')[2].partition("</section>")[0]
    assert "A memory was stored" in section
    assert re.search(r"A memory was pinned · <bdi>admin</bdi>", section)
    (event,) = AuditEvent.objects.filter(action="memory.pin")
    assert f"/admin/audit/auditevent/{event.pk}/change/" in section
    everything = re.search(r'href="(/admin/audit/auditevent/\?q=[^"]+)"', section)
    assert everything is not None
    assert admin_client.get(everything[1]).context["cl"].result_count == 2
    viewer = staff_with(client, "view_memory")
    assert 'id="events-title"' not in shown(viewer, page(memory))


@pytest.mark.parametrize("changes", [{}, {"status": "superseded"}])
def test_its_page_leads_to_the_preview_of_its_erasure(
    admin_client: Client, world: World, changes: dict[str, str]
) -> None:
    memory = remember("Dana likes tea")
    Memory.objects.filter(pk=memory.pk).update(**changes)
    assert f'action="{LIST}?state=all"' in shown(admin_client, page(memory))
    posted = {"action": "forget_selected", "_selected_action": str(memory.pk)}
    answer = admin_client.post(f"{LIST}?state=all", posted)
    assert answer["Location"].startswith("/admin/sessions_app/forgetrun/")
    assert Memory.objects.filter(pk=memory.pk).exists()


def test_who_may_not_erase_is_offered_no_erasure(client: Client) -> None:
    viewer = staff_with(client, "view_memory")
    assert "Erase…" not in shown(viewer, page(remember("Dana likes tea")))


# Rights


def test_who_may_only_look_is_shown_no_button_and_no_link_to_messages(
    client: Client, world: World
) -> None:
    world.remember(CLIENT, "Dana likes tea")
    memory = Memory.objects.get()
    viewer = staff_with(client, "view_memory")
    listed, one = shown(viewer), shown(viewer, page(memory))
    for text in (listed, one):
        assert "Dana likes tea" in text
        assert "/conversation/" not in text
        for offered in ('name="vis-', 'name="pin"', "/import/", "/export/", 'name="_save"'):
            assert offered not in text


@pytest.mark.parametrize(
    ("address", "posted"),
    [
        ("rows/", {"pin": "{id}"}),
        ("{id}/change/", {"content": "other", "visibility": "public", "type": "fact"}),
        ("{id}/decide/", {"decision": "merge", "other": "{id}"}),
        ("{id}/answer/", {"decision": "approve"}),
        ("add/", {"content": "new", "visibility": "owner", "type": "fact"}),
        ("import/", {}),
        ("export/", {}),
    ],
)
def test_who_may_only_look_can_not_post(
    client: Client, address: str, posted: dict[str, str]
) -> None:
    memory = remember("Dana likes tea")
    viewer = staff_with(client, "view_memory")
    filled = {name: value.format(id=memory.pk) for name, value in posted.items()}
    assert viewer.post(LIST + address.format(id=memory.pk), filled).status_code == 403
    memory.refresh_from_db()
    assert (memory.content, memory.pinned, Memory.objects.count()) == ("Dana likes tea", False, 1)


@pytest.mark.parametrize("address", ["rows/", "export/", "{id}/decide/", "{id}/answer/"])
def test_nothing_is_done_by_get(admin_client: Client, address: str) -> None:
    memory = remember("Dana likes tea")
    answer = admin_client.get(LIST + address.format(id=memory.pk), follow=True)
    assert answer.redirect_chain
    assert answer.status_code == 200
    assert Memory.objects.get() == memory


# Whatever people say

HOSTILE = (
    "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>",
    "\u202eevil\u202d \u200b\u200c\u200d\ufeff \u2066left",
    "a" * 100_000,
    "{{ settings }} {% now 'Y' %} %s %(name)s",
)


@pytest.mark.parametrize("content", HOSTILE)
def test_whatever_was_said_is_shown_as_text(admin_client: Client, content: str) -> None:
    memory = remember("Dana likes tea")
    Memory.objects.filter(pk=memory.pk).update(content=content, tags=[content[:60]])
    memory.revisions.create(
        number=1,
        content=content + " older",
        visibility="owner",
        type="fact",
        changed_by_kind="staff",
        changed_by_name=content[:60],
        reason="updated",
    )
    for text in (shown(admin_client), shown(admin_client, page(memory))):
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert text.rstrip().endswith("</html>")


def test_the_past_is_told_in_words_and_marks(admin_client: Client) -> None:
    memory = remember("The price is 35", expires_at=timezone.now() + timedelta(days=3))
    memory_set_visibility(memory_id=memory.pk, visibility="public", actor=STAFF)
    one = shown(admin_client, page(memory))
    assert "dana" in one
    assert re.search(r"visible to: <del>.*owner only.*</del> <ins>.*everyone.*</ins>", one)


def test_what_is_not_there_is_told(admin_client: Client) -> None:
    nobody = uuid.uuid4()
    assert "doesn’t exist" in said(admin_client.get(f"{LIST}{nobody}/change/", follow=True))
    assert "There is no memory" in said(
        admin_client.post(f"{LIST}rows/", {"pin": str(nobody)}, follow=True)
    )
    assert admin_client.get(f"{LIST}not-an-id/decide/").status_code in (302, 404)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (LIST, "Nothing is remembered yet."),
        ("/admin/memories_app/mergeproposal/", "Nothing is to be decided."),
        ("/admin/memories_app/sourcedocument/", "No documents yet."),
        ("/admin/cards_app/memorycard/", "No cards yet."),
        (f"{LIST}waiting/", "Nothing to review."),
    ],
)
def test_an_empty_list_says_how_it_fills(admin_client: Client, address: str, text: str) -> None:
    assert text in shown(admin_client, address)

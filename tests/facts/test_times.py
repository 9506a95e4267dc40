"""When a fact holds: told by its words or given, kept in recall, prompts, answers and exports."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client

from memories_app.facts.validity import validity_of
from memories_app.models import Memory
from memoryproject.foundation.integrations.llm.base import OfflineChatModel
from sessions_app.forgetting.facade import ForgetDependencies, object_forget
from tests.api.calling import Api
from tests.world import CLIENT, GODFATHER, World, message_from

ZONE = ZoneInfo("Asia/Jerusalem")
# A Friday.
SAID = datetime(2026, 11, 27, 13, tzinfo=timezone.utc)
# The text, and the first and the last day that it tells.
TOLD = [
    ("From Sunday we close at 20:00", "2026-11-29", None),
    ("From next Sunday we close at 20:00", "2026-11-29", None),
    ("A partir del próximo domingo cerramos a las 20:00", "2026-11-29", None),
    ("С следующего воскресенья мы закрываемся в 20:00", "2026-11-29", None),
    ("Ab nächsten Montag schließen wir um 20:00", "2026-11-30", None),
    ("מיום ראשון הבא נסגור ב-20:00", "2026-11-29", None),
    ("Until 1 March 2025 delivery is free", None, "2025-03-01"),
    ("Tomorrow we are closed", "2026-11-28", "2026-11-28"),
    ("I moved to Tel Aviv last week", "2026-11-20", None),
    ("Until the end of March parking is free", None, "2027-03-31"),
    ("From 5/3 to 7/3 we are on holiday", "2027-03-05", "2027-03-07"),
    ("I live in Haifa since 2015", "2015-01-01", None),
    ("מיום ראשון נסגור ב-20:00", "2026-11-29", None),
    ("עד 1 במרץ המשלוח חינם", None, "2027-03-01"),
    ("מחר אנחנו סגורים", "2026-11-28", "2026-11-28"),
    ("A partir del domingo cerramos a las 20:00", "2026-11-29", None),
    ("Hasta el 5 de mayo el envío es gratis", None, "2027-05-05"),
    ("Mañana estamos cerrados", "2026-11-28", "2026-11-28"),
    ("A partir de janeiro o corte custa 60 reais", "2027-01-01", None),
    ("Até 5 de maio a entrega é grátis", None, "2027-05-05"),
    ("С воскресенья мы закрываемся в 20:00", "2026-11-29", None),
    ("До пятницы скидка 10%", None, "2026-12-04"),
    ("Я переехал в Москву на прошлой неделе", "2026-11-20", None),
    ("ابتداء من يوم الأحد نغلق الساعة 20:00", "2026-11-29", None),
    ("حتى 5 مايو التوصيل مجاني", None, "2027-05-05"),
    ("À partir de dimanche nous fermons à 20h", "2026-11-29", None),
    ("Jusqu’au 5 mai la livraison est gratuite", None, "2027-05-05"),
    ("Ab Montag schließen wir um 20:00", "2026-11-30", None),
    ("Bis zum 5. Mai gilt der Rabatt", None, "2027-05-05"),
    ("Morgen haben wir geschlossen", "2026-11-28", "2026-11-28"),
    ("Da domenica chiudiamo alle 20:00", "2026-11-29", None),
    ("Fino al 5 maggio la consegna è gratis", None, "2027-05-05"),
    ("З неділі ми зачиняємося о 20:00", "2026-11-29", None),
    ("До п'ятниці знижка 10%", None, "2026-12-04"),
    # The day on which it is said.
    ("The coupon is valid until 27/11", None, "2026-11-27"),
    ("From 27 November we close at 13:00", "2026-11-27", None),
    ("From 27 November to 5 December we are closed", "2026-11-27", "2026-12-05"),
    ("From November we close at 13:00", "2026-11-01", None),
    ("Until the end of November parking is free", None, "2026-11-30"),
    ("Until 27/11/2026 parking is free", None, "2026-11-27"),
    ("Until 26/11 parking is free", None, "2027-11-26"),
    ("Closed since 27 November", "2026-11-27", None),
    ("המבצע עד 27.11", None, "2026-11-27"),
    ("המבצע בתוקף עד ה-27 בנובמבר", None, "2026-11-27"),
    ("La oferta es hasta el 27 de noviembre", None, "2026-11-27"),
    ("A promoção vai até 27 de novembro", None, "2026-11-27"),
    ("Скидка до 27 ноября", None, "2026-11-27"),
    ("Знижка до 27 листопада", None, "2026-11-27"),
    ("العرض حتى 27 نوفمبر", None, "2026-11-27"),
    ("L'offre est valable jusqu'au 27 novembre", None, "2026-11-27"),
    ("Das Angebot gilt bis zum 27.11.", None, "2026-11-27"),
    ("L'offerta vale fino al 27 novembre", None, "2026-11-27"),
    # On a Friday, it is the next one.
    ("Until Friday delivery is free", None, "2026-12-04"),
]
TIMELESS = [
    "We are open from Sunday to Thursday from 9 to 17",
    "We are open from 9 to 5",
    "Open until 18:00",
    "The train from Haifa takes an hour",
    "פתוחים מיום ראשון עד יום חמישי 9:00-17:00",
    "משני הצדדים של הרחוב",
    "Abrimos a las 9 de la mañana",
    "Работаем с понедельника по пятницу",
    "Guten Morgen wünscht das Team",
    "Dal lunedì al venerdì siamo aperti",
    "من الأحد إلى الخميس نعمل من 9 إلى 17",
    # The rest would end with the first statement.
    "Until Friday delivery is free. Our address is Herzl 12.",
    "Free until 5 March, then 20 shekels",
]


def day_of(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(ZONE).date().isoformat()


@pytest.mark.parametrize(("text", "begins", "ends"), TOLD)
def test_words_tell_the_days(
    text: str, begins: str | None, ends: str | None, settings: Any
) -> None:
    settings.BUSINESS_TIME_ZONE = str(ZONE)
    told = validity_of(text, SAID)
    assert (day_of(told.begins), day_of(told.ends)) == (begins, ends)
    assert told.begins is None or told.begins.astimezone(ZONE).hour == 0
    assert told.ends is None or told.ends.astimezone(ZONE).hour == 23


@pytest.mark.parametrize("text", TIMELESS)
def test_other_words_tell_none(text: str, settings: Any) -> None:
    settings.BUSINESS_TIME_ZONE = str(ZONE)
    told = validity_of(text, SAID)
    assert (told.begins, told.ends) == (None, None)


def test_the_day_is_that_of_the_business(settings: Any) -> None:
    # It is Saturday there already.
    late = datetime(2026, 11, 27, 23, tzinfo=timezone.utc)
    settings.BUSINESS_TIME_ZONE = str(ZONE)
    assert day_of(validity_of("Tomorrow we are closed", late).begins) == "2026-11-29"


ENDED = "Until 1 March 2025 delivery is free"


@pytest.mark.django_db
class TestRecall:
    def test_what_has_ended_is_told_as_ended_if_alone(self, world: World) -> None:
        world.remember(GODFATHER, ENDED)
        system = world.seen_by_model(GODFATHER, "Is delivery free until 1 March 2025?")
        assert f"until 2025-03-01, said by this person, ended) {ENDED}" in system
        assert "Never tell one that is “ended”" in system
        world.dependencies = replace(world.dependencies, chat_model=OfflineChatModel())
        (reply,) = world.say(GODFATHER, "Was delivery free until 1 March 2025?")
        assert f"{ENDED} (ended on 2025-03-01)" in reply

    def test_what_has_ended_is_left_out_beside_what_holds(self, world: World) -> None:
        for text in (ENDED, "Delivery costs 20 shekels, it is not free"):
            world.remember(GODFATHER, text)
        world.say(GODFATHER, "Is delivery free?")
        system = world.prompt()[0].content
        assert "Delivery costs 20 shekels" in system
        assert ENDED not in system

    def test_what_begins_later_does_not_take_the_place_yet(self, world: World) -> None:
        for text in ("We close at 18:00", "From next month we close at 20:00"):
            world.remember(GODFATHER, text)
        older, newer = Memory.objects.order_by("created_at")
        assert (older.status, newer.valid_until) == ("active", None)
        assert older.valid_until == newer.valid_from - timedelta(seconds=1)
        world.say(GODFATHER, "When do we close?")
        system = world.prompt()[0].content
        assert f"until {older.valid_until.date()}" in system
        assert f"from {newer.valid_from.date()}, said by this person) From next month" in system

    def test_the_older_holds_again_where_the_later_is_forgotten(self, world: World) -> None:
        for text in ("We close at 18:00", "From next month we close at 20:00"):
            world.remember(GODFATHER, text)
        older, newer = Memory.objects.order_by("created_at")
        dependencies = ForgetDependencies(world.rules.chat_memory)
        object_forget(kind="memory", object_id=newer.pk, dependencies=dependencies)
        older.refresh_from_db()
        assert older.valid_until is None

    def test_what_holds_for_a_day_takes_no_place(self, world: World) -> None:
        for text in ("We close at 18:00", "Tomorrow we close at 14:00"):
            world.remember(GODFATHER, text)
        assert set(Memory.objects.values_list("status", flat=True)) == {"active"}

    def test_tomorrow_is_another_day_when_it_is_said_again(self, world: World) -> None:
        world.remember(GODFATHER, "Tomorrow we are closed")
        week_ago = timedelta(days=7)
        memory = Memory.objects.get()
        day = memory.valid_from
        Memory.objects.update(
            said_at=memory.said_at - week_ago,
            valid_from=day - week_ago,
            valid_until=memory.valid_until - week_ago,
        )
        world.remember(GODFATHER, "Tomorrow we are closed")
        memory.refresh_from_db()
        assert (memory.told_count, memory.valid_from) == (2, day)


@pytest.mark.django_db
class TestApi:
    def test_times_are_given_and_shown(self, api: Api) -> None:
        given = {
            "said_at": "2026-01-05T10:00:00Z",
            "valid_from": "2026-02-01T00:00:00Z",
            "valid_until": "2100-01-01T00:00:00Z",
        }
        stored = api.post("memories/", {"content": "Parking is free", **given}).json()
        assert {name: stored[name] for name in given} == given
        shown = api.get(f"memories/{stored['memory_id']}/").json()
        assert {name: shown[name] for name in given} == given
        (hit,) = api.post("memories/recall/", {"query": "Is parking free?"}).json()["results"]
        assert {name: hit[name] for name in given} == given
        assert hit["said_by"] == "api"
        changed = api.call(
            "PATCH", f"memories/{stored['memory_id']}/", {"valid_until": None}
        ).json()
        assert (changed["valid_until"], changed["valid_from"]) == (None, given["valid_from"])

    @pytest.mark.parametrize(
        ("wrong", "name", "words"),
        [
            ({"said_at": "2100-01-01T00:00:00Z"}, "said_at", "future"),
            (
                {"valid_from": "2026-02-01T00:00:00Z", "valid_until": "2026-01-01T00:00:00Z"},
                "valid_until",
                "before valid_from",
            ),
            ({"valid_from": "soon"}, "valid_from", ""),
        ],
    )
    def test_impossible_times_are_refused(
        self, api: Api, wrong: dict[str, str], name: str, words: str
    ) -> None:
        refused = api.post("memories/", {"content": "Parking is free", **wrong})
        assert refused.status_code == 400
        (error,) = refused.json()["errors"]
        assert error["attr"] == name
        assert words in error["detail"]
        known = api.post("memories/", {"content": "Parking is free"}).json()
        assert api.call("PATCH", f"memories/{known['memory_id']}/", wrong).status_code == 400

    def test_another_text_tells_other_days(self, api: Api) -> None:
        told = api.post("memories/", {"content": "Until 1 March 2030 delivery is free"}).json()
        assert told["valid_until"].startswith("2030-03-01")
        path = f"memories/{told['memory_id']}/"
        changed = api.call("PATCH", path, {"content": "Until 5 March 2031 delivery is free"}).json()
        assert changed["valid_until"].startswith("2031-03-05")
        api.call("PATCH", path, {"valid_until": "2035-01-01T00:00:00Z"})
        kept = api.call(
            "PATCH", path, {"content": "Until 6 March 2031 delivery is free of charge"}
        ).json()
        assert kept["valid_until"].startswith("2035-01-01")

    def test_they_go_through_an_export_and_an_import(self, api: Api) -> None:
        api.post("memories/", {"content": ENDED, "said_at": "2024-12-01T10:00:00Z"})
        before = Memory.objects.values("said_at", "valid_from", "valid_until").get()
        lines = api.get("memories/export/").getvalue()
        Memory.objects.all().delete()
        done = api.post("memories/import/", lines, content_type="application/x-ndjson")
        assert done.json()["created"] == 1
        assert Memory.objects.values("said_at", "valid_from", "valid_until").get() == before

    def test_as_of_tells_what_was_believed_on_a_day(self, api: Api) -> None:
        for text, at in (
            ("We close at 18:00", "2026-01-01T00:00:00Z"),
            ("We close at 20:00", "2026-03-01T00:00:00Z"),
        ):
            api.post("memories/", {"content": text, "said_at": at})
        older = Memory.objects.get(content="We close at 18:00")
        assert older.status == "superseded"
        Memory.objects.filter(pk=older.pk).update(
            superseded_at=datetime(2026, 3, 1, tzinfo=timezone.utc)
        )
        body = {"query": "When do we close, at 18:00 or 20:00?", "min_similarity": 0}

        def believed(day: str) -> list[str]:
            found = api.post("memories/recall/", {**body, "as_of": f"{day}T12:00:00Z"})
            return [hit["content"] for hit in found.json()["results"]]

        assert believed("2025-12-31") == []
        assert believed("2026-02-01") == ["We close at 18:00"]
        assert believed("2026-04-01") == ["We close at 20:00"]
        newer = Memory.objects.get(content="We close at 20:00")
        api.call("PATCH", f"memories/{newer.pk}/", {"content": "We close at 20:30"})
        assert believed("2026-04-01") == ["We close at 20:00"]

    def test_as_of_takes_the_messages_of_then(self, api: Api, world: World) -> None:
        world.receive(message_from(CLIENT, "The gate code is 4711"))
        body = {"query": "gate code 4711", "whatsapp_chat": CLIENT, "min_similarity": 0}
        now = api.post("memories/recall/", body).json()["results"]
        assert [hit["content"] for hit in now] == ["The gate code is 4711"]
        then = api.post("memories/recall/", {**body, "as_of": "2020-01-01T00:00:00Z"}).json()
        assert then["results"] == []


@pytest.mark.django_db
class TestPages:
    def test_staff_see_what_was_believed_on_a_day(self, api: Api, admin_client: Client) -> None:
        for text, at in (
            ("We close at 18:00", "2026-01-01T00:00:00Z"),
            ("We close at 20:00", "2026-03-01T00:00:00Z"),
        ):
            api.post("memories/", {"content": text, "said_at": at})
        Memory.objects.filter(status="superseded").update(
            superseded_at=datetime(2026, 3, 1, tzinfo=timezone.utc)
        )
        for query in ("", "&q=close+at+18:00"):
            page = f"/admin/memories_app/memory/?as_of=2026-02-01{query}"
            shown = admin_client.get(page).content.decode()
            assert "We close at 18:00" in shown
            assert "We close at 20:00" not in shown
        today = admin_client.get("/admin/memories_app/memory/").content.decode()
        assert "We close at 18:00" not in today
        wrong = admin_client.get("/admin/memories_app/memory/?as_of=soon")
        assert "We close at 20:00" in wrong.content.decode()

    def test_staff_give_the_times_in_the_form(self, admin_client: Client) -> None:
        values = {"content": "Parking is free", "visibility": "public", "type": "fact", "tags": ""}
        times = {"valid_until_0": "2026-01-31", "valid_until_1": "12:00:00"}
        wrong = {**times, "valid_from_0": "2026-02-01", "valid_from_1": "12:00:00"}
        page = "/admin/memories_app/memory/add/"
        refused = admin_client.post(page, {**values, **wrong}).content.decode()
        assert "is before valid_from" in refused
        assert admin_client.post(page, {**values, **times}).status_code == 302
        memory = Memory.objects.get()
        assert memory.valid_until.isoformat() == "2026-01-31T12:00:00+00:00"
        assert memory.said_at is not None

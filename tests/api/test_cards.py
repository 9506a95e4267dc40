"""The card of a session over HTTP."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
import yaml
from django.contrib.auth.models import User
from django.test import Client

from cards_app.models import MemoryCard
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.rest_kit.models import IdempotentAnswer
from sessions_app.forgetting.dependencies import build_forget_dependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.models import Chat, Message
from tests.api.calling import Api, error_of
from tests.world import CLIENT, OTHER_CLIENT

pytestmark = pytest.mark.django_db


def session_in(api: Api, whatsapp_chat: str = CLIENT) -> str:
    session = str(api.post("sessions/", {"whatsapp_chat": whatsapp_chat}).json()["session_id"])
    say(api, session, "We decided to use PostgreSQL. Call me at 15550100123.", "Noted.")
    return session


def say(api: Api, session: str, asked: str, answered: str) -> None:
    body = [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    assert api.post(f"sessions/{session}/messages/", {"messages": body}).status_code == 201


def test_a_card_is_made_once_and_again_when_the_session_went_on(api: Api) -> None:
    session = session_in(api)
    path = f"sessions/{session}/card/"
    made = api.post(path)
    assert made.status_code == 201
    card = made.json()
    assert card["session_id"] == session
    assert card["extracted_at"].endswith("Z")
    assert any("PostgreSQL" in decision for decision in card["decisions"])
    assert "15550100123" not in str(card)
    again = api.post(path)
    assert (again.status_code, again.json()) == (200, card)
    assert api.get(path).json() == card
    say(api, session, "We decided to hire Dana.", "Good.")
    changed = api.post(path)
    assert changed.status_code == 200
    assert any("Dana" in decision for decision in changed.json()["decisions"])


def test_a_card_is_yaml_when_asked_for(api: Api) -> None:
    session = session_in(api)
    path = f"sessions/{session}/card/"
    made = api.post(f"{path}?format=yaml")
    assert made.status_code == 201
    assert made["Content-Type"].startswith("application/yaml")
    assert made.content == MemoryCard.objects.get().card.to_yaml().encode()
    asked = api.get(path, Accept="application/yaml")
    assert asked.content == made.content
    assert yaml.safe_load(asked.content)["title"] == api.get(path).json()["title"]
    keyed = [api.post(f"{path}?format=yaml", Idempotency_Key="k").content for _ in range(2)]
    assert keyed == [made.content] * 2
    # What is refused is JSON all the same.
    missing = api.get(f"sessions/{uuid.uuid4()}/card/", Accept="application/yaml")
    error_of(missing, 404)
    assert missing["Content-Type"].startswith("application/json")
    error_of(api.get(path, Accept="image/png"), 406)
    error_of(api.get(f"{path}?colour=red"), 400)


def test_there_is_no_card_of_what_is_not_there_or_out_of_reach(
    api: Api, token: Callable[..., str]
) -> None:
    session_in(api)
    other = session_in(api, OTHER_CLIENT)
    api.post(f"sessions/{other}/card/")
    bound = Api(token(chat_ids=[Chat.objects.get(whatsapp_chat=CLIENT).pk]))
    for caller, session in [(bound, other), (api, uuid.uuid4())]:
        error_of(caller.get(f"sessions/{session}/card/"), 404)
        error_of(caller.post(f"sessions/{session}/card/"), 404)
    assert MemoryCard.objects.count() == 1


def test_staff_who_read_a_card_are_in_the_audit_log(
    api: Api, django_user_model: type[User]
) -> None:
    session = session_in(api)
    api.post(f"sessions/{session}/card/")
    django_user_model.objects.create_superuser("boss", password="x")
    client = Client()
    client.login(username="boss", password="x")
    assert Api(None, client).get(f"sessions/{session}/card/").status_code == 200
    event = AuditEvent.objects.get(action="conversation.read")
    assert (event.actor, event.object_type, event.object_id) == ("boss", "card", session)


def test_a_card_that_is_kept_for_a_key_goes_with_what_is_forgotten(api: Api) -> None:
    """Also where single words of it are all that the card has of it."""
    session = session_in(api)
    for n in range(8):
        say(api, session, f"What is number {n}?", f"It is number {n}.")
    said = "So then Yossi and nobody else will see to it, as Yossi told them yesterday"
    say(api, session, said, "Fine.")
    path = f"sessions/{session}/card/"
    for form, key in (("json", "json"), ("yaml", "k")):
        made = api.post(f"{path}?format={form}", Idempotency_Key=key)
        assert "Yossi" in made.content.decode()
    message = Message.objects.get(content=said)
    object_forget(kind="message", object_id=message.pk, dependencies=build_forget_dependencies())
    bodies = IdempotentAnswer.objects.values_list("body", flat=True)
    assert not any("Yossi" in body for body in bodies)
    assert (
        error_of(api.post(f"{path}?format=json", Idempotency_Key="json"), 409)["code"]
        == "answer_not_kept"
    )
    error_of(api.post(f"{path}?format=yaml", Idempotency_Key="k"), 409)
    assert "Yossi" not in api.post(path).content.decode()


def test_reading_makes_the_first_card(api: Api) -> None:
    path = f"sessions/{session_in(api)}/card/"
    read = api.get(path)
    assert read.status_code == 200
    assert MemoryCard.objects.count() == 1
    assert api.get(path).json() == read.json()
    assert api.post(path).status_code == 200

"""The card of a session over HTTP."""

from __future__ import annotations

import uuid

import pytest
import yaml

from cards_app.models import MemoryCard
from memoryproject.foundation.rest_kit.models import IdempotentAnswer
from sessions_app.forgetting.dependencies import build_forget_dependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.models import Message
from tests.api.calling import Api, error_of
from tests.world import CLIENT

pytestmark = pytest.mark.django_db


def session_in(api: Api, whatsapp_chat: str = CLIENT) -> str:
    session = str(api.post("sessions/", {"whatsapp_chat": whatsapp_chat}).json()["session_id"])
    say(api, session, "We decided to use PostgreSQL. Please call me at 15550100123.", "Noted.")
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
    assert card["outcome"] == {
        "settled": "We decided to use PostgreSQL. Please call me at [phone].",
        "open": [],
        "acts": "assistant",
    }
    assert card["language_covered"] is True
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

"""The week of a small café in Brazil, line by line, as `manage.py demo_data --week` tells it."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from sessions_app.models import Chat, Message, Turn, TurnReplay

pytestmark = pytest.mark.django_db


@pytest.fixture
def told() -> list[str]:
    printed = StringIO()
    call_command("demo_data", "--week", stdout=printed)
    return printed.getvalue().splitlines()


def test_it_is_told_once(told: list[str]) -> None:
    with pytest.raises(CommandError, match="use an empty database"):
        call_command("demo_data", "--week", "--force")


def answers_after(told: list[str], text: str) -> list[str]:
    """What the assistant says between this line and the next one that isn't its own."""
    place = next(number for number, line in enumerate(told) if line.endswith(text))
    found = []
    for line in told[place + 1 :]:
        who, _, said = line[11:].partition(": ")
        if who != "assistant":
            break
        found.append(said)
    return found


def prompt_of(text: str) -> str:
    turn = Turn.objects.get(message__content=text)
    return str(TurnReplay.of(turn).prompt[-1]["content"])


def test_the_week(told: list[str]) -> None:
    # Two people, whatever forms of their numbers WhatsApp uses.
    assert set(Chat.objects.values_list("client_name", flat=True)) == {"Beatriz", "Davi"}
    # The ad, and the quoted line, are in the prompt.
    assert prompt_of("Oi! Vocês fazem bolo de cenoura?").startswith("[came from the ad “Bolos da")
    quoted = "[in reply to the assistant’s message “Fazemos, sim! O inteiro custa R$ 60"
    assert prompt_of("Quanto fica com dois destes?").startswith(quoted)
    # A burst has one answer, by the last of its messages.
    assert answers_after(told, "Que bom") == answers_after(told, "queria um") == []
    assert answers_after(told, "para sexta às 16h") == [
        "Anotado: um bolo de cenoura para sexta às 16h."
    ]
    # The owner steps in: nothing is said beside her, and what is still open is answered later.
    assert answers_after(told, "E ainda hoje?") == answers_after(told, "Pode! Às 9h?") == []
    assert answers_after(told, "Quanto fica mesmo?") == ["A entrega em Pinheiros fica R$ 8."]
    # A person is called, in the client's language and with the hours; then the assistant is silent.
    (called,) = answers_after(told, "Quero falar com uma pessoa, por favor")
    assert "Segunda a sábado, das 8h às 18h" in called
    assert not called.startswith("I'm")
    assert answers_after(told, "É sobre a alergia") == []
    # After the window has closed staff send a template; an hour later the assistant goes on, with
    # what came meanwhile.
    assert Message.objects.filter(content__startswith="pedido_pronto (pt_BR)").exists()
    assert answers_after(told, "Já estou indo!") == []
    assert answers_after(told, "Vocês sabem do que sou alérgica?") == [
        "Até já!",
        "Sim: você é alérgica a nozes.",
    ]

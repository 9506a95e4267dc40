"""manage.py generate_card."""

from __future__ import annotations

import io
import json
import re
import uuid
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from cards_app.models import MemoryCard
from sessions_app.models import ChatSession
from tests.docs.sources import read
from tests.programs import python
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db

ASKED = "Which rooms do you have? ‏שלום"


def output_of(*arguments: str) -> str:
    out = io.StringIO()
    call_command("generate_card", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def session(world: World) -> ChatSession:
    world.say(CLIENT, ASKED)
    return world.session(CLIENT)


def test_the_card_is_stored_and_printed_as_yaml(session: ChatSession) -> None:
    printed = output_of(str(session.pk))
    stored = MemoryCard.objects.get(pk=session.pk)
    assert printed == stored.card.to_yaml()
    assert printed.startswith(f"# Memory Card for Session: {session.pk}\n# Generated: ")
    assert yaml.safe_load(printed)["title"] == ASKED


def test_again_it_prints_the_same_bytes(session: ChatSession) -> None:
    assert output_of(str(session.pk)) == output_of(str(session.pk))


def test_as_json(session: ChatSession) -> None:
    printed = json.loads(output_of(str(session.pk), "--format", "json"))
    assert printed == MemoryCard.objects.get().card.to_dict()


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ([str(uuid.UUID(int=7))], 1, "There is no session 00000000-0000-0000-0000-000000000007"),
        (["yesterday"], 2, "SESSION_ID: 'yesterday' is no id"),
    ],
)
def test_what_can_not_be_done_is_said(arguments: list[str], code: int, text: str) -> None:
    with pytest.raises(CommandError, match=text) as refused:
        output_of(*arguments)
    assert refused.value.returncode == code


def test_another_format_is_wrong_usage(session: ChatSession) -> None:
    with pytest.raises(CommandError, match="invalid choice: 'xml'"):
        output_of(str(session.pk), "--format", "xml")


def test_an_empty_session_has_an_untitled_card(session: ChatSession) -> None:
    session.messages.all().delete()
    card: Any = yaml.safe_load(output_of(str(session.pk)))
    assert card["title"] == "Untitled Session"
    assert card["decisions"] == []


# The example of docs/cards.md does what it says.


@pytest.mark.processes
def test_the_example_prints_what_stands_below_it() -> None:
    page = read("docs/cards.md")
    found = re.search(r"```python\n(.*?)```\s+prints\s+```text\n(.*?)```", page, re.DOTALL)
    assert found, "an example and its output"
    printed = python("-c", found[1])
    assert printed.stdout == found[2]


@pytest.mark.processes
def test_the_benchmark_runs() -> None:
    printed = python("benchmarks/measure_cards.py", "--messages", "4", "8")
    assert len(printed.stdout.splitlines()) == 4

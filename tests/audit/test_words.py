"""What was done is told in words; whatever the code records has some."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from memoryproject.foundation.audit.audit_events import (
    ACTIONS,
    OBJECTS,
    SYSTEM,
    Actor,
    audit_record,
)
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import ForgottenKind

LIST = "/admin/audit/auditevent/"
APPS = ("memoryproject", "sessions_app", "memories_app", "cards_app")
CODE = re.compile(r"[a-z_]+\.[a-z_]+|export")


def calls() -> Iterator[ast.Call]:
    """Every call in the code that records an event."""
    for app in APPS:
        for file in sorted((Path(settings.BASE_DIR) / app).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if not isinstance(node, ast.Call):
                    continue
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name == "Event" or name.endswith("_record"):
                    yield node


def texts(node: ast.expr | None) -> set[str]:
    return {
        each.value
        for each in (ast.walk(node) if node else ())
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }


# Where the arguments of the functions stand that are not called by keyword alone.
BY_REQUEST = {"action": 1, "object_type": 2}
PLACES = {
    **dict.fromkeys(["audit_record", "Event"], {"action": 0, "object_type": 2}),
    **dict.fromkeys(["staff_record", "staff_edit_record"], BY_REQUEST),
    "staff_read_record": {"object_type": 1},
}


def argument(call: ast.Call, name: str) -> ast.expr | None:
    named = [each.value for each in call.keywords if each.arg == name]
    usual = {"action": 0}
    place = PLACES.get(getattr(call.func, "id", ""), usual).get(name, len(call.args))
    return named[0] if named else call.args[place] if len(call.args) > place else None


def test_every_action_that_is_recorded_has_words() -> None:
    found = {text for call in calls() for text in texts(argument(call, "action"))}
    recorded = {text for text in found if CODE.fullmatch(text)}
    recorded |= {f"{kind}.forgotten" for kind in ForgottenKind.values}
    assert len(recorded) > 60
    assert recorded - set(ACTIONS) == set()


def test_everything_that_it_is_done_to_has_words() -> None:
    named = {text for call in calls() for text in texts(argument(call, "object_type"))}
    assert len(named) > 20
    assert named - set(OBJECTS) - {""} == set()


def test_the_documentation_names_them_all() -> None:
    page = (Path(settings.BASE_DIR) / "docs" / "audit.md").read_text()
    told = set()
    for line in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE):
        first = ""
        for name in re.findall(r"`([a-z_.]+)`", line):
            first = first if name.startswith(".") else name.partition(".")[0]
            told.add(f"{first}{name}" if name.startswith(".") else name)
    assert set(ACTIONS) - told == set()


@pytest.mark.django_db
class TestPages:
    def test_the_list_tells_it_in_the_readers_language(self, admin_client: Client) -> None:
        audit_record("conversation.read", Actor("staff", "dana"), "turn")
        english = admin_client.get(LIST).content.decode()
        assert "A conversation was read" in english
        hebrew = admin_client.get(LIST, headers={"accept-language": "he"}).content.decode()
        assert str(ACTIONS["conversation.read"]) not in hebrew
        assert "שיחה נקראה" in hebrew

    def test_an_event_shows_words_and_the_code(self, admin_client: Client) -> None:
        audit_record("memory.pin", SYSTEM, "memory")
        event = AuditEvent.objects.get(action="memory.pin")
        page = admin_client.get(
            reverse("admin:audit_auditevent_change", args=[event.pk])
        ).content.decode()
        assert "A memory was pinned" in page
        assert "memory.pin" in page

    def test_a_code_without_words_is_shown_as_it_is(self, admin_client: Client) -> None:
        audit_record("old.action", SYSTEM, "old thing")
        page = admin_client.get(LIST).content.decode()
        assert page.count("old.action") > 1
        assert "old thing" in page

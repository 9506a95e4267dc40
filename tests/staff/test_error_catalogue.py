"""The error catalogue: every error that is raised for staff or stored has a code, and every code
a Hebrew text."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection
from django.utils import translation

from memoryproject.foundation.errors.stored_errors import (
    CATALOGUE,
    ErrorText,
    error_from_column,
    error_text,
    error_to_column,
    named_error_text,
    translate_error,
)
from sessions_app.forgetting.probe import KINDS
from sessions_app.forgetting.receipt_pages import row_kind
from sessions_app.models import Turn
from tests.world import CLIENT, World

ROOT = Path(settings.BASE_DIR)
HEBREW = re.compile("[א-ת]")
SENTENCE = re.compile(r"(?:\b[A-Za-z]?[a-z']+\b[ ,;:]+){3}")
KEY = UUID(int=1)
# The argument in which each error takes its text.
TEXT_OF = {
    "AddressError": 0,
    "PostError": 0,
    "_Failure": 0,
    "DocumentError": 1,
    "EmbedderError": 0,
    "AttemptFailed": 0,
    "ChatModelError": 0,
    "SendError": 0,
    "ChainError": 0,
}
COLUMNS = ("error", "last_error", "disabled_reason")
# They hand on a provider's own words, or speak on the command line alone.
OWN_WORDS = {
    "memoryproject/foundation/audit/chain.py",
    "memoryproject/staff_site/demo/story.py",
    "memoryproject/foundation/integrations/whatsapp/cloud/client.py",
    "memoryproject/foundation/integrations/whatsapp/green/client.py",
    "sessions_app/management/commands/memories_reembed.py",
}
# Nothing writes them any more; rows of earlier releases hold them.
OF_OLDER_ROWS = {"backup_not_removed", "backup_not_swept", "send_no_files"}
PLACES = {code: set(re.findall(r"%\((\w+)\)s", template)) for code, template in CATALOGUE.items()}


@cache
def _read() -> tuple[list[tuple[str, ast.Call]], set[str]]:
    """The calls that make, raise or store a text, and all texts; the trees aren't kept."""
    calls, texts = [], set()
    for folder in ("memoryproject", "sessions_app", "memories_app"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts.add(node.value)
                elif isinstance(node, ast.Call) and "loopback" not in path.parts:
                    is_stored = any(each.arg in COLUMNS for each in node.keywords)
                    if is_stored or _named(node) in ("ErrorText", *TEXT_OF):
                        calls.append((f"{path.relative_to(ROOT)}:{node.lineno}", node))
    return calls, texts


def _named(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


PUT_TOGETHER = ("kind_", "still_", "document_", "openai_key_missing_")


def texts_made() -> Iterator[tuple[str, str, set[str]]]:
    """Of each ErrorText whose code stands there: the place, the code, the parameters' names."""
    for place, call in _read()[0]:
        code = call.args[0] if call.args else None
        if _named(call) == "ErrorText" and isinstance(code, ast.Constant):
            yield place, str(code.value), {str(each.arg) for each in call.keywords}


def test_every_text_is_made_with_a_code_and_the_parameters_of_the_catalogue() -> None:
    made = list(texts_made())
    assert len(made) > 100
    wrong = [place for place, code, names in made if names != PLACES.get(code)]
    assert wrong == []


def test_every_code_is_used() -> None:
    """By itself, or where a code is put together or handed on."""
    unused = CATALOGUE.keys() - _read()[1]
    put_together = {code for code in unused if code.startswith(PUT_TOGETHER)}
    assert unused - put_together == OF_OLDER_ROWS


def test_what_the_probe_finds_has_a_text_for_every_kind() -> None:
    kinds = {*KINDS.values(), "memory", "memory document", "message", "turn", "part", "note"}
    for kind in kinds:
        ErrorText("still_told", what=ErrorText(row_kind(kind)), id=KEY)


def _without_code(call: ast.Call) -> bool:
    """Whether an English sentence stands where the text of an error is raised or stored."""
    position = TEXT_OF.get(_named(call))
    texts = [] if position is None else call.args[position : position + 1]
    texts += [each.value for each in call.keywords if each.arg in COLUMNS]
    return any(map(_is_sentence, texts))


def _is_sentence(text: ast.expr) -> bool:
    if isinstance(text, ast.IfExp):
        return _is_sentence(text.body) or _is_sentence(text.orelse)
    if isinstance(text, ast.Constant):
        return bool(text.value)
    return isinstance(text, (ast.JoinedStr, ast.BinOp))


def test_no_error_is_raised_or_stored_without_a_code() -> None:
    untranslated = {place.partition(":")[0] for place, call in _read()[0] if _without_code(call)}
    assert untranslated == OWN_WORDS


def test_every_text_is_translated() -> None:
    for code in CATALOGUE:
        params = dict.fromkeys(PLACES[code], "7")
        english = ErrorText(code, **params)
        with translation.override("he"):
            hebrew = translate_error(english)
        assert HEBREW.search(hebrew) or code in ("of_kind", "with_detail"), hebrew
        assert hebrew.count("7") >= len(params), code
        assert translate_error(english) == english


def test_an_unknown_code_or_a_missing_parameter_is_a_programming_error() -> None:
    with pytest.raises(KeyError):
        ErrorText("no_such_code")
    with pytest.raises(KeyError):
        ErrorText("webhook_status")


def test_parameters_are_translated_and_stay_in_their_text() -> None:
    given_up = ErrorText("webhook_given_up", days=5, why=ErrorText("webhook_status", status=503))
    assert given_up == "Nothing could be delivered for 5 days. Last: It answered 503."
    with translation.override("he"):
        shown = translate_error(given_up)
        assert "5" in shown
        assert "503" in shown
        assert not SENTENCE.search(shown)
        assert translate_error(named_error_text(OSError(ErrorText("disk_full")))).startswith(
            "OSError: הדיסק"
        )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Re-engagement message: more than 24 hours",
        '{"code": 131047}',
        '{"code": "gone", "p',
        "{",
    ],
)
def test_the_words_of_other_servers_stay_as_they_are(text: str) -> None:
    assert error_from_column(error_to_column(text)) == text
    with translation.override("he"):
        assert translate_error(error_from_column(text)) == text


def test_a_stored_text_comes_back_with_its_code() -> None:
    nested = ErrorText("of_kind", kind="OSError", why=ErrorText("webhook_status", status=503))
    for copied in (
        error_from_column(error_to_column(nested)),
        pickle.loads(pickle.dumps(nested)),
        copy.deepcopy(nested),
    ):
        assert isinstance(copied, ErrorText)
        assert copied == nested
        assert copied.as_dict() == nested.as_dict()
    assert error_text(ValueError(nested)) is nested
    assert error_text(ValueError("other")) == "other"


def test_a_column_keeps_the_code_and_reads_as_english(world: World) -> None:
    world.say(CLIENT, "Good morning")
    turn = Turn.objects.get()
    error = ErrorText("send_unreachable", kind="ConnectError")

    def save() -> None:
        turn.error = error
        turn.save()

    for change in (lambda: Turn.objects.filter(pk=turn.pk).update(error=error), save):
        change()
        with connection.cursor() as cursor:
            cursor.execute("SELECT error FROM sessions_app_turn")
            assert json.loads(cursor.fetchone()[0])["code"] == "send_unreachable"
        for found in (Turn.objects.get().error, Turn.objects.values_list("error", flat=True)[0]):
            assert found == "the provider can't be reached (ConnectError)"
            assert found.code == "send_unreachable"
        Turn.objects.update(error="HTTP 401: Invalid OAuth access token")
        assert Turn.objects.get().error == "HTTP 401: Invalid OAuth access token"

"""The command that reads documents."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memories_app.models import SourceDocument
from tests.documents import files
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_folder(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "data"


def written(tmp_path: Path, name: str, content: bytes) -> str:
    path = tmp_path / name
    path.write_bytes(content)
    return str(path)


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("documents_import", *arguments, stdout=out)
    return out.getvalue()


def test_files_are_read_once(tmp_path: Path) -> None:
    terms = written(tmp_path, "terms.pdf", files.pdf("TestCorp pays in 30 days."))
    prices = written(tmp_path, "prices.md", b"# Prices\n\nA bolt costs 3 euros.")
    assert run(terms, prices).splitlines() == [
        f"{terms}: 1 page, 1 passage",
        f"{prices}: 1 passage",
    ]
    assert run(terms).strip() == f"{terms}: 1 page, 1 passage (was there before)"
    kinds = SourceDocument.objects.values_list("name", "media_type", "visibility", "uploaded_by")
    assert sorted(kinds) == [
        ("prices.md", "text/markdown", "owner", "command"),
        ("terms.pdf", "application/pdf", "owner", "command"),
    ]


def test_one_that_cannot_be_read_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    broken = written(tmp_path, "broken.pdf", b"%PDF-1.7 broken")
    fine = written(tmp_path, "fine.txt", b"TestCorp pays in 30 days.")
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 of 2 files could not be read"):
        call_command("documents_import", broken, fine, "--json", stdout=out)
    told = json.loads(out.getvalue())
    assert [each["state"] for each in told] == ["failed", "ready"]
    assert told[0]["error"].startswith("The file is damaged or cut off.")


def test_a_chats_documents(tmp_path: Path, world: World) -> None:
    world.say(CLIENT, "hello")
    run(written(tmp_path, "terms.txt", b"Their own terms."), "--chat", CLIENT)
    document = SourceDocument.objects.get()
    assert (document.visibility, document.chat_id) == ("chat", world.chat(CLIENT).pk)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--chat", "15550100999@c.us"], "There is no chat"),
        (["--visibility", "chat"], "needs --chat"),
        (["missing.pdf"], "No such file: missing.pdf"),
    ],
)
def test_wrong_usage(arguments: list[str], told: str, tmp_path: Path) -> None:
    fine = written(tmp_path, "fine.txt", b"text")
    with pytest.raises(CommandError, match=told) as caught:
        run(fine, *arguments)
    assert caught.value.returncode == 2
    assert not SourceDocument.objects.exists()

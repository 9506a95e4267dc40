"""Documents and recordings, from the webhook to the answer, with real servers; and kill -9
of the worker that reads one."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

import psutil
import pytest

from memoryproject.foundation.embedded_postgres.places import is_alive
from memoryproject.foundation.integrations.loopback.httpd import Answer
from memoryproject.foundation.process.narrowing import present
from tests.documents import files
from tests.loopback.httpd import Fault
from tests.loopback.openai_behaviours import fails
from tests.processes.installation import family, kill
from tests.processes.posting import cloud_message, green_message, new_phone
from tests.processes.stage import Stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

FACTS = files.pdf("The warranty of TestCorp's pumps is seven years.", "It ships on Mondays.")
READ = "✅ I read terms.pdf: 2 pages, 1 passage. Ask me about it."
CHILD = "memoryproject.foundation.integrations.documents.child"


def send_by_cloud(live: Stage, phone: str, content: bytes, **more: str) -> None:
    document = {
        "id": live.graph.add_file(content),
        "mime_type": "application/pdf",
        "sha256": hashlib.sha256(content).hexdigest(),
        "filename": "terms.pdf",
        **more,
    }
    assert live.post.cloud(cloud_message(phone, "document", document)).status_code == 200


def documents(live: Stage) -> list[dict[str, Any]]:
    return live.database.rows(
        "SELECT document.*, (SELECT count(*) FROM memories_app_memory"
        " WHERE document_id = document.document_id) AS memories"
        " FROM memories_app_sourcedocument document ORDER BY created_at DESC"
    )


def nothing_lies(live: Stage) -> bool:
    return not list((live.installation.data_dir / "documents").glob("*"))


def test_a_document_by_the_cloud_api_is_answered_and_known(live: Stage) -> None:
    phone = new_phone()
    send_by_cloud(live, phone, FACTS)
    assert live.wait_for_answers(phone, 1) == [READ]

    live.post.say(phone, "How long is the warranty of TestCorp's pumps?")
    live.wait_for_answers(phone, 2)
    prompt = live.openai.prompt_for("How long is the warranty of TestCorp's pumps?")
    assert "seven years" in str(prompt)
    assert nothing_lies(live)


def test_a_document_by_green_api_is_answered(live: Stage) -> None:
    phone = new_phone()
    url = live.green.file_url(live.green.add_file(FACTS))
    data = {
        "typeMessage": "documentMessage",
        "fileMessageData": {
            "downloadUrl": url,
            "caption": "",
            "fileName": "terms.pdf",
            "mimeType": "application/pdf",
        },
    }
    assert live.post.green(green_message(phone, data)).status_code == 200
    chat = f"{phone}@c.us"
    sent = wait_until(
        lambda: [each["message"] for each in live.green.sent if each["chatId"] == chat],
        "an answer by Green API",
    )
    assert sent == [READ]


def test_a_provider_that_fails_for_a_while(live: Stage) -> None:
    """Its first answers are an error, another file, and one that is cut off."""
    phone = new_phone()
    other = Answer(200, {}, content=b"%PDF-1.7 another")
    short = Answer(200, {}, {"Content-Length": "99999"}, content=b"%PDF")
    live.graph.fail_next_get(
        Fault(answer=Answer(500, {})), Fault(), Fault(answer=other), Fault(), Fault(answer=short)
    )
    send_by_cloud(live, phone, FACTS)
    assert live.wait_for_answers(phone, 1) == [READ]


def test_a_recording_is_heard_and_answered(live: Stage) -> None:
    phone = new_phone()
    live.openai.transcript = "Do you deliver on Mondays?"
    live.openai.script_transcriptions(fails(500))
    audio = {
        "id": live.graph.add_file(b"OggS recording", "audio/ogg"),
        "mime_type": "audio/ogg; codecs=opus",
        "voice": True,
    }
    assert live.post.cloud(cloud_message(phone, "audio", audio)).status_code == 200
    assert live.wait_for_answers(phone, 1) == ["answer to: [voice] Do you deliver on Mondays?"]
    message = live.database.messages(f"{phone}@c.us")[0]
    assert (message["kind"], message["content"]) == ("voice", "Do you deliver on Mondays?")
    assert nothing_lies(live)


def test_killed_while_the_document_is_being_read(live: Stage) -> None:
    """The next worker reads the file that lies there; it is stored and answered once, and
    the reader that is left alone ends by itself."""
    phone = new_phone()
    pages = [
        "\n".join(f"Clause {page}.{line} of the terms of TestCorp." for line in range(80))
        for page in range(150)
    ]
    send_by_cloud(live, phone, files.pdf(*pages))
    # Halted, or it may be over before its worker is killed.
    worker, reader = present(
        wait_until(lambda: halted_worker(live), "a document is being read", longest_pause=0.01)
    )

    kill([worker])
    reader.resume()

    (answer,) = live.wait_for_answers(phone, 1)
    assert answer.startswith("✅ I read terms.pdf: 150 pages")
    document = documents(live)[0]
    assert (document["state"], document["attempts"]) == ("ready", 2)
    assert f"{document['memories']} passages" in answer
    (turn,) = live.database.turns(f"{phone}@c.us")
    assert (turn["state"], turn["attempts"]) == ("sent", 2)
    assert len(live.database.messages(f"{phone}@c.us")) == 2
    assert nothing_lies(live)
    wait_until(lambda: not is_alive(reader), "the reader has ended")


def test_killed_while_its_vectors_are_made(live: Stage) -> None:
    phone = new_phone()
    hold = live.openai.hold_embedding("held back by the embedder")
    send_by_cloud(live, phone, files.pdf("A fact that is held back by the embedder."))
    wait_until(lambda: hold.reached, "the passages' vectors are asked for")
    owner = documents(live)[0]["lease_owner"]

    live.installation.kill_owner(owner)
    hold.release()

    (answer,) = live.wait_for_answers(phone, 1)
    assert answer == "✅ I read terms.pdf: 1 page, 1 passage. Ask me about it."
    document = documents(live)[0]
    assert (document["state"], document["attempts"], document["memories"]) == ("ready", 2, 1)
    assert nothing_lies(live)


def halted_worker(live: Stage) -> tuple[psutil.Process, psutil.Process] | None:
    """The process that reads a document now, and its child that does, halted.

    One look at the system's processes: with one for each worker the child may be over before.
    """
    programs = live.installation.programs.values()
    for child in (each for program in programs for each in family(program)):
        with suppress(psutil.NoSuchProcess):
            if CHILD in child.cmdline():
                child.suspend()
                return present(child.parent()), child
    return None

"""Hold the three reading paths of CONTRIBUTING.md to the code that runs.

A newcomer follows a message, a recall or a forgetting from file to file. The number of files is
the price of that, so it has a limit.
"""

from __future__ import annotations

import re
import time
import uuid
from copy import deepcopy
from typing import Any

import pytest
from django.test import Client

from memories_app.models import Memory
from memoryproject.foundation.integrations.loopback.providers import body_bytes, sign
from memoryproject.foundation.retrieval.fragments import MARK
from memoryproject.foundation.text.terms import index_terms
from sessions_app.forgetting.dependencies import build_forget_dependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.models import Turn, TurnReplay
from sessions_app.recall.facade import Viewer, recall
from tests.architecture.trace import Trace
from tests.docs.sources import PROJECT, read
from tests.sessions.test_answering import answerer_of
from tests.webhooks.conftest import cloud_text, configured  # noqa: F401
from tests.webhooks.posting import SECRET, post_cloud
from tests.world import CLIENT, World

QUESTION = "When does TestCorp pay?"
# Of a path itself: a message and a forgetting run through a recall, whose files count there.
MAX_FILES = {"message": 70, "recall": 16, "forgetting": 29}
# A section of CONTRIBUTING.md holds a path as a numbered list of files.
SECTION = {
    "message": "### A WhatsApp message, from webhook to reply",
    "recall": "### A recall",
    "forgetting": "### A forgetting of one memory",
}
ROW = re.compile(r"^\d+\. `([\w/]+\.py)`: \S", re.MULTILINE)


def documented(name: str) -> list[str]:
    """The files of a path as CONTRIBUTING.md lists them, in its order."""
    _, found, rest = read("CONTRIBUTING.md").partition(f"{SECTION[name]}\n")
    assert found, f"CONTRIBUTING.md has no section {SECTION[name]!r}"
    return list(dict.fromkeys(ROW.findall(re.split(r"^##", rest, flags=re.MULTILINE)[0])))


def payload(recorded: dict[str, Any], text: str) -> dict[str, Any]:
    """The recorded webhook as a new message that comes now."""
    body = deepcopy(recorded)
    (message,) = body["entry"][0]["changes"][0]["value"]["messages"]
    message["id"] = f"wamid.{uuid.uuid4().hex}"
    message["timestamp"] = str(int(time.time()))
    message["text"]["body"] = text
    return body


@pytest.fixture
def warm(world: World) -> World:
    """A chat with a memory and an answer, so that nothing is done for the first time."""
    world.remember(CLIENT, "TestCorp pays in 30 days")
    world.say(CLIENT, "TestCorp pays when the goods are there")
    world.say(CLIENT, QUESTION)
    # The statements that read the hits are compiled at the first recall of a process.
    viewer = Viewer("client", world.chat(CLIENT).pk)
    recall(query=QUESTION, viewer=viewer, embedder=world.dependencies.embedder)
    return world


def check(name: str, trace: Trace) -> None:
    """The path runs through the documented files in that order, and through few enough.

    The other paths refer to the recall's section for the files that it lists.
    """
    print(f"\n{name}: {len(trace.files)} files")  # noqa: T201
    for place, file in enumerate(trace.files, 1):
        print(f"{place:3} {file}: {', '.join(trace.functions[file])}")  # noqa: T201
    elsewhere = set() if name == "recall" else set(documented("recall"))
    own = [file for file in trace.files if file not in elsewhere]
    assert documented(name) == own
    assert len(own) <= MAX_FILES[name]


@pytest.mark.parametrize("name", sorted(SECTION))
def test_every_file_on_a_documented_path_exists(name: str) -> None:
    files = documented(name)
    assert files
    assert [file for file in files if not (PROJECT / file).is_file()] == []


@pytest.mark.django_db
def test_a_message_from_webhook_to_reply(
    client: Client,
    warm: World,
    cloud_text: dict[str, Any],  # noqa: F811
) -> None:
    assert post_cloud(client, payload(cloud_text, "hello there")).status_code == 200
    warm.work()
    body = body_bytes(payload(cloud_text, QUESTION))
    signature = sign(SECRET, body)
    answerer = answerer_of(warm)
    with Trace() as trace:
        assert post_cloud(client, body, signature).status_code == 200
        turn = Turn.objects.get(state="pending")
        assert answerer.answer_next()
    turn.refresh_from_db()
    assert turn.state == "sent"
    check("message", trace)


@pytest.mark.django_db
def test_a_recall(warm: World) -> None:
    viewer = Viewer("client", warm.chat(CLIENT).pk)
    with Trace() as trace:
        found = recall(query=QUESTION, viewer=viewer, embedder=warm.dependencies.embedder)
    assert "TestCorp pays in 30 days" in [hit.content for hit in found.hits]
    check("recall", trace)


@pytest.mark.django_db
def test_a_forgetting_of_one_memory(warm: World) -> None:
    memory = Memory.objects.get()
    dependencies = build_forget_dependencies()
    for replay in TurnReplay.objects.all():
        # The words of a prompt are stemmed once in a process.
        list(map(index_terms, [MARK, *(line["content"] for line in replay.prompt)]))
    with Trace() as trace:
        object_forget(kind="memory", object_id=memory.pk, dependencies=dependencies)
    assert not Memory.objects.exists()
    check("forgetting", trace)

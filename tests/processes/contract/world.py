"""What is there before the calls begin, so that they get beyond 404."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from tests.processes import plain_http
from tests.processes.installation import Installation
from tests.processes.waiting import wait_until

SETTINGS = {
    "ENABLE_MEMORY_SYSTEM": "true",
    "CHAT_MODEL": "offline",
    "EMBEDDER": "wordllama",
    # Any number of calls.
    "WEBHOOKS_ALLOW_HTTP": "true",
    "WEBHOOKS_PRIVATE_NETWORKS": "127.0.0.0/8",
    **{f"API_RATE_{kind}": "0" for kind in ("READ", "WRITE", "FORGET", "CHAT", "BULK")},
}
PEOPLE = 6
# Where nobody listens.
NOWHERE = "http://127.0.0.1:9/"
DOCUMENTS = {
    "decisions": {"decision": "Use PostgreSQL", "status": "accepted"},
    "context": {"feature": "auth", "status": "in progress"},
}
ALL, BOUND, NONE = "all", "bound", "none"
# So many messages are there for calls that erase one.
PASSING = 200
# Here Django isn't set up: the calls come from outside.
SCOPES = ["read", "write", "forget", "audit"]
CALLERS = [ALL, *SCOPES, BOUND, NONE]
# What no call makes: tokens, and a summary without a model. One process for all of them.
MAKE_THE_REST = """
import json
from memoryproject.foundation.rest_kit.models import SCOPES
from memoryproject.foundation.rest_kit.tokens import token_create
from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from sessions_app.jobs.run_jobs import job_run
from sessions_app.models import Chat, Job, Message, SummarizationMetadata
for job in Job.objects.filter(kind="export"):
    job_run(job.pk)
chat = Chat.objects.get(whatsapp_chat="{chat}")
made = {{name: token_create(name=name, scopes=[name], actor=COMMAND_LINE) for name in SCOPES}}
made["bound"] = token_create(name="bound", chat_ids=[chat.pk], actor=COMMAND_LINE)
session = chat.sessions.get()
first, last, text = session.messages.order_by("order_num")
summary = SummarizationMetadata.objects.create(
    session=session, number=1, summary_message=text, summarized_message_ids=[first.pk, last.pk],
    first_order=first.order_num, last_order=last.order_num, range_start=first.timestamp,
    range_end=last.timestamp, digest=text.content, skill_id="general", created_at=last.timestamp,
)
tokens = {{name: each.secret for name, each in made.items()}}
print(json.dumps([tokens, {{"summaries": [str(summary.pk)], "summed": [str(session.pk)]}}]))
"""


@dataclass(frozen=True)
class World:
    """A running server, its schema in a file, tokens by name, and what can be named there, by
    dictionary."""

    installation: Installation
    schema: Path
    tokens: dict[str, str]
    known: dict[str, list[str]]


@contextmanager
def running(parent: Path | None = None) -> Iterator[World]:
    """A web server in a folder of its own, with somebody's conversations on it. No workers: what
    they do later is in no answer."""
    with TemporaryDirectory(prefix="run-", dir=parent) as folder:
        installation = Installation(Path(folder), **SETTINGS)
        try:
            installation.prepare()
            installation.start_program("web")
            wait_until(lambda: installation.answer("/healthz") == 200, "the API is served")
            # Read by each caller: the server takes a second to write it, and JSON is read quickly.
            schema = installation.folder / "schema.json"
            url = f"{installation.url}/api/schema/?format=json"
            schema.write_bytes(plain_http.get(url, timeout=60).content)
            secret = installation.manage("create_api_token", ALL).strip()
            known = Seeder(installation.url, secret).seed()
            script = MAKE_THE_REST.format(chat=known["chats"][0])
            tokens, rest = json.loads(installation.manage("shell", "-v", "0", "-c", script))
            yield World(installation, schema, {**tokens, ALL: secret}, {**known, **rest})
        finally:
            installation.stop()


class Seeder:
    """Makes by the API itself what the calls will name."""

    def __init__(self, url: str, secret: str) -> None:
        self._client = httpx.Client(
            base_url=f"{url}/api/v1/",
            headers={"Authorization": f"Token {secret}"},
            timeout=60,
            trust_env=False,
        )

    def seed(self) -> dict[str, list[str]]:
        """What is named by the one dictionary isn't deleted; the doomed may be."""
        with self._client:
            people = [self._person(number) for number in range(2 * PEOPLE)]
            for category, content in DOCUMENTS.items():
                for number in range(PEOPLE):
                    self._call("PUT", f"documents/{category}/kept-{number}/", content)
                    doomed = f"documents/{category}/doomed-{number}/"
                    self._call("PUT", doomed, content)
                    self._call("POST", f"{doomed}archive/")
                    self._call("PUT", doomed, content)
            kept, passing = people[:PEOPLE], people[PEOPLE:]
            text = {"messages": [{"role": "summary", "content": "They said hello."}]}
            self._call("POST", f"sessions/{kept[0]['sessions']}/messages/", text)
            passing_by = {"messages": [{"role": "user", "content": "Never mind."}] * PASSING}
            added = f"sessions/{kept[1]['sessions']}/messages/"
            stored = self._call("POST", added, passing_by)["messages"]
            known = {name: [each[name] for each in kept] for name in kept[0]}
            known |= {f"doomed_{name}": [each[name] for each in passing] for name in passing[0]}
            for which, name in (("identifiers", "kept"), ("doomed_identifiers", "doomed")):
                known[which] = [f"{name}-{number}" for number in range(PEOPLE)]
            keys = [f"doomed-{number}" for number in range(PEOPLE)]
            for query in ("", *(f"?whatsapp_chat={chat}" for chat in known["chats"])):
                for key in ("kept", *keys):
                    self._call("PUT", f"memories/keyed/notes/{key}/{query}", {"value": {"n": key}})
            known |= {"namespaces": ["notes"], "keys": ["kept"], "doomed_keys": keys}
            known["categories"] = list(DOCUMENTS)
            known |= {"passing": [each["message_id"] for each in stored]}
            known |= {"passed_in": [kept[1]["sessions"]]}
            return {**known, **self._long_work(), **self._webhooks()}

    def _long_work(self) -> dict[str, list[str]]:
        """Exports of a chat without memories, which no forgetting deletes; and what can end."""
        empty = {"whatsapp_chat": "1555017@external"}
        self._call("POST", "sessions/", empty)
        calls = {"jobs": ("jobs/export/", empty), "doomed_jobs": ("jobs/reembed/", {})}
        return {
            name: [self._call("POST", *call)["job_id"] for _ in range(PEOPLE)]
            for name, call in calls.items()
        }

    def _webhooks(self) -> dict[str, list[str]]:
        kept, doomed = (
            [
                self._call("POST", "webhooks/endpoints/", {"name": f"{name} {n}", "url": NOWHERE})
                for n in range(PEOPLE)
            ]
            for name in ("kept", "doomed")
        )
        first = kept[0]["endpoint_id"]
        tested = self._call("POST", f"webhooks/endpoints/{first}/test/")
        return {
            "endpoints": [each["endpoint_id"] for each in kept],
            "doomed_endpoints": [each["endpoint_id"] for each in doomed],
            **{"tested": [first], "deliveries": [tested["delivery_id"]], "urls": [NOWHERE]},
        }

    def _person(self, number: int) -> dict[str, str]:
        chat = f"1555016{number:04}@c.us"
        said = self._call("POST", "chat/", {"whatsapp_chat": chat, "content": f"hello {number}"})
        fact = {"content": f"Client {number} pays in {number + 10} days", "whatsapp_chat": chat}
        memory = self._call("POST", "memories/", fact)
        passing = self._call("POST", "memories/", {**fact, "content": f"Passing: {number}"})
        form = {"file": (f"terms-{number}.txt", f"Client {number} orders in {number + 3} days")}
        file = self._call("POST", "files/", files=form, data={"whatsapp_chat": chat})
        receipt = self._call("DELETE", f"memories/{passing['memory_id']}/")
        self._call("POST", f"sessions/{said['session_id']}/card/")
        return {
            "chats": chat,
            "sessions": said["session_id"],
            "turns": said["turn_id"],
            "memories": memory["memory_id"],
            "receipts": receipt["receipt_id"],
            "files": file["document_id"],
        }

    def _call(self, method: str, path: str, body: Any = None, **form: Any) -> Any:
        answer = self._client.request(method, path, json=body, **form)
        assert answer.is_success, (method, path, answer.text)
        return answer.json()

"""A week of a small café in Brazil, as a script that anybody can read: ``cafe_week.json``.

It shows what people do on WhatsApp: a number in two forms, an ad, a burst, a quote, a voice note,
an owner who steps in, the wish for a person, a template after 24 hours. Each line is a webhook's
body as the Cloud API sends it, told in the week's own time.
"""

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from memories_app.facts.validation import NewMemory
from memories_app.models import Visibility
from memories_app.store.remember import memory_remember
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.integrations.whatsapp.base import Template
from memoryproject.foundation.process.narrowing import instance
from memoryproject.staff_site.demo.story import NUMBER_IDS, Story
from memoryproject.staff_site.demo.story_texts import FOLDER, demo_file, events_of
from sessions_app.conversations.chat_addresses import chat_find
from sessions_app.models import AssistantProfile, Chat, Message
from sessions_app.takeover.facade import OwnNumber, StaffReply, Writer, chat_reply, chat_template
from sessions_app.turns.facade import chat_answer, pauses_end

DAY = timedelta(days=1)
BURST = timedelta(seconds=30)


class CafeWeek(Story):
    """Tells the week that ends before ``now``."""

    def __init__(self, now: datetime, embedder: Embedder) -> None:
        super().__init__(now=now, embedder=embedder)
        self.script: dict[str, Any] = json.loads((FOLDER / "cafe_week.json").read_text("utf-8"))
        rules = replace(self.dependencies.rules, burst_gap=BURST)
        self.dependencies = replace(self.dependencies, rules=rules)
        for provider in self.providers.values():
            provider.files = {"voice.wav": demo_file("voice.wav")}

    def has_begun(self) -> bool:
        """Return whether one of its people has a chat."""
        numbers = [each["numbers"][0] for each in self.script["people"].values()]
        return any(chat_find(f"{number}@c.us") for number in numbers)

    def lines(self) -> Iterator[str]:
        """Play the week and yield it, a line for each thing that is said."""
        AssistantProfile.objects.update_or_create(
            pk=1, defaults={"opening_hours": self.script["opening_hours"], "languages": "pt, en"}
        )
        for fact in self.script["facts"]:
            new = NewMemory(content=fact, visibility=str(Visibility.PUBLIC), source="manual")
            memory_remember(new, embedder=self.embedder, actor=SYSTEM)
        for line in self.script["lines"]:
            with self.at(7 - line["day"], line["time"]):
                pauses_end(now=timezone.now(), enqueue=lambda _chat: None, max_age=DAY)
                yield from self._played(line)

    def _played(self, line: dict[str, Any]) -> Iterator[str]:
        """Say one line, and yield it with what the client gets."""
        when, sent = f"{timezone.localtime():%a %H:%M}", len(self.providers["cloud"].sent)
        yield f"{when}  {line['who']}: {line.get('text') or self._shown(line)}"
        if line["who"] == "staff":
            self._staff(line)
        else:
            self._webhook(line)
        chat = self._chat(line.get("to") or line["who"])
        if not line.get("more"):
            self.clock.pass_by(1)
            chat_answer(chat_id=chat.pk, dependencies=self.dependencies)
        answers = self.providers["cloud"].sent[sent:]
        if line["who"] != "staff":
            for each in answers:
                yield f"{when}  assistant: {' / '.join(each.splitlines())}"

    def _shown(self, line: dict[str, Any]) -> str:
        return f"({line.get('kind') or 'template ' + line['template']})"

    def _chat(self, who: str) -> Chat:
        number = self.script["people"][who]["numbers"][0]
        return instance(chat_find(f"{number}@c.us"), Chat)

    def _webhook(self, line: dict[str, Any]) -> None:
        """Deliver the line as the Cloud API does; the answer is what the model is to say."""
        if line.get("answer"):
            self.answers[line["text"]] = line["answer"]
        for event in events_of("cloud", self._body(line)):
            self._receive(event)

    def _body(self, line: dict[str, Any]) -> dict[str, Any]:
        is_owner = line["who"] == "owner"
        person = self.script["people"][line["to"] if is_owner else line["who"]]
        number = line.get("from") or person["numbers"][0]
        kind = line.get("kind", "text")
        content = {"body": line["text"]} if kind == "text" else {"id": line["file"], "voice": True}
        kind = "audio" if kind == "voice" else kind
        message = {
            "id": f"wamid.{uuid.UUID(int=self.chance.getrandbits(128)).hex}",
            "from": self.script["business_number"] if is_owner else number,
            "timestamp": str(int(timezone.now().timestamp())),
            "type": kind,
            kind: content,
            **({"to": number} if is_owner else {}),
            **({"referral": line["ad"]} if "ad" in line else {}),
            **({"context": {"id": self._id_of(line)}} if "quotes" in line else {}),
        }
        value = {
            "messaging_product": "whatsapp",
            "metadata": {
                "display_phone_number": self.script["business_number"],
                "phone_number_id": NUMBER_IDS["cloud"],
            },
            "contacts": [{"profile": {"name": person["name"]}, "wa_id": person["numbers"][0]}],
            "message_echoes" if is_owner else "messages": [message],
        }
        field = "smb_message_echoes" if is_owner else "messages"
        return {"entry": [{"id": "1", "changes": [{"field": field, "value": value}]}]}

    def _id_of(self, line: dict[str, Any]) -> str | None:
        found = Message.objects.filter(content__startswith=line["quotes"]).latest("timestamp")
        return found.provider_message_id

    def _staff(self, line: dict[str, Any]) -> None:
        user, _ = User.objects.get_or_create(username="rosa", defaults={"is_staff": True})
        writer = Writer(
            author_id=user.pk,
            actor=Actor("staff", user.username),
            rules=self.rules,
            enqueue=lambda _chat: None,
            now=timezone.now(),
        )
        chat, number = self._chat(line["to"]), OwnNumber("cloud", NUMBER_IDS["cloud"])
        about: dict[str, Any] = {"chat_id": chat.pk, "writer": writer, "otherwise": number}
        if "template" in line:
            template = Template(line["template"], line["language"], tuple(line["values"]))
            chat_template(template=template, key=uuid.uuid4(), **about)
        else:
            reply = StaffReply(text=line["text"], key=uuid.uuid4())
            chat_reply(reply=reply, providers=self.providers, **about)

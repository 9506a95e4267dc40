"""Texts made of templates, and questions about them, for the comparison with other products."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection
from django.utils import timezone

from memories_app.models import Memory, MemoryEmbedding
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.text.terms import index_text
from sessions_app.models import Chat, ChatSession, Message, MessageEmbedding

TEMPLATES = (
    "{name} owes me {amount} from invoice INV-{number}, the payment is due in {month}",
    "{name} is a {trade} company based in {city}, the contact person is {person}",
    "The meeting with {person} of {name} about the {trade} order is on {day} at {hour}:00",
    "{person} prefers deliveries on {day}, and likes the {trade} papers in an envelope",
    "We talked with {name} about the warranty, {person} will send the contract in {month}",
    "{name} חייבת לי {amount} מחשבונית {number}, התשלום הוא בסוף החודש",
    "הפגישה עם {person} מחברת {name} נקבעה ליום שני בשעה {hour}:00",
)
QUESTIONS = {
    "a name": "What's the status with {name}?",
    "a common word": "Which invoice payment is due in March?",
    "Hebrew": "מה המצב עם {name}?",
    "small talk": "hello, how are you?",
    "two questions": "When is the meeting with {name}, and what does {person} prefer?",
    "a paragraph": "Good morning! I hope that all is well with you and the family, we had a long "
    "week here and the weather was good. I wanted to ask about an old matter that we spoke of. "
    "How much does {name} owe me, and from which invoice? Many thanks and have a great day!",
}
SYLLABLES = (
    "ba",
    "ko",
    "ri",
    "mu",
    "te",
    "lo",
    "sha",
    "vi",
    "ne",
    "da",
    "pra",
    "sto",
    "gil",
    "fen",
)


def made_up(count: int, chance: random.Random) -> Iterator[str]:
    """``count`` texts of the templates."""
    for number in range(count):
        yield TEMPLATES[number % len(TEMPLATES)].format(
            name=name_of(number // 2),
            person=name_of(number % 500, salt=3) + " " + name_of(number % 700, salt=5),
            amount=chance.randrange(100, 20_000),
            number=number,
            trade=chance.choice(("software", "food", "paper", "building", "garden", "travel")),
            city=chance.choice(("Haifa", "Eilat", "Jaffa", "Acre", "Lod")),
            month=chance.choice(("January", "March", "May", "July")),
            day=chance.choice(("Monday", "Tuesday", "Thursday")),
            hour=chance.randrange(8, 18),
        )


def name_of(number: int, salt: int = 0) -> str:
    chance = random.Random(number * 31 + salt)
    return "".join(chance.choice(SYLLABLES) for _ in range(3)).capitalize()


def fill(texts: Sequence[str]) -> Chat:
    """A database with the texts as memories, and as messages of one chat; the chat."""
    embedder = WordLlamaEmbedder()
    indexed = [index_text(text) for text in texts]
    covered = [number for number, text in enumerate(texts) if embedder.coverage(text) >= 0.5]
    vectors = embedder.embed([texts[number] for number in covered])
    memories = [
        Memory(
            content=text,
            visibility="owner",
            # Made-up texts may be equal, and all of them are wanted.
            fact_key=f"benchmark {place:09}",
            terms=entry.terms,
            term_count=entry.length,
        )
        for place, (text, entry) in enumerate(zip(texts, indexed, strict=True))
    ]
    Memory.objects.bulk_create(memories, batch_size=1000)
    chat = Chat.objects.create(whatsapp_chat="15550100123@c.us", provider="console")
    now = timezone.now()
    session = ChatSession.objects.create(chat=chat, created_at=now, last_active=now)
    messages = [
        Message(
            session=session,
            chat=chat,
            order_num=place,
            role="user" if place % 2 else "assistant",
            content=text,
            timestamp=now,
            tokens=20,
            terms=entry.terms,
            term_count=entry.length,
        )
        for place, (text, entry) in enumerate(zip(texts, indexed, strict=True), start=1)
    ]
    Message.objects.bulk_create(messages, batch_size=1000)
    of_memories, of_messages = [], []
    for number, vector in zip(covered, vectors, strict=True):
        named: dict[str, Any] = {"model": embedder.model_id, "vector": vector}
        of_memories.append(MemoryEmbedding(memory=memories[number], **named))
        of_messages.append(MessageEmbedding(message=messages[number], **named))
    MemoryEmbedding.objects.bulk_create(of_memories, batch_size=1000)
    MessageEmbedding.objects.bulk_create(of_messages, batch_size=1000)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return chat

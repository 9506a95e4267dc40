"""Measures how long recall takes on a full database: run from the project's root.

    python benchmarks/measure_recall.py [--texts 10000] [--rounds 10] [--keep DIR]
    python benchmarks/measure_recall.py --beside 1000000

Fills a database of its own, in a temporary folder, with made-up memories and with the messages
of one chat, then asks for them as a turn does. ``--beside`` then adds so many messages of other
chats, with their vectors, and asks again. Prints milliseconds, those of this process's CPU
beside them (a machine with other work changes them less), and what they were measured on. The texts
are made of templates: the figures are of time, and say nothing about relevance.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

from own_database import KEEPING, machine, own_database

# isort: split

from bulk_rows import rows_add, without_checks
from django.db import connection
from django.utils import timezone

from memories_app.models import Memory, MemoryEmbedding
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.text.terms import index_text
from sessions_app.models import Chat, ChatSession, Message, MessageEmbedding
from sessions_app.recall.facade import MEMORIES, MESSAGES, Viewer, recall

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


Taken = tuple[float, float]

# Of each chat beside the one that is asked.
CHAT_SIZE = 1_000
BESIDE_TABLES = ("sessions_app_message", "sessions_app_messageembedding")
# One row for each message of the first ones of a chat, and each other chat.
COPIED = """
(SELECT m.*, c.id AS other_chat, s.session_id AS other_session,
        md5(c.id::text || m.message_id::text)::uuid AS other_id
 FROM sessions_app_chat c
 JOIN sessions_app_chatsession s ON s.chat_id = c.id
 JOIN sessions_app_message m ON m.chat_id = %s AND m.order_num <= %s
 WHERE c.id <> m.chat_id) AS copied
"""


def measure(question: str, chat: Chat, sources: Sequence[str], rounds: int) -> list[Taken]:
    """Milliseconds of each of ``rounds`` recalls, with another name in each, and those of CPU."""
    embedder = WordLlamaEmbedder()
    viewer = Viewer(user_role="godfather", chat_id=chat.pk)
    taken = []
    for number in range(-1, rounds):
        asked = question.format(name=name_of(number + 7), person=name_of(number + 7, salt=3))
        started, worked = time.perf_counter(), time.process_time()
        recall(query=asked, viewer=viewer, embedder=embedder, sources=sources)
        if number >= 0:
            seconds = time.perf_counter() - started, time.process_time() - worked
            taken.append((seconds[0] * 1000, seconds[1] * 1000))
    return taken


def add_beside(chat: Chat, messages: int) -> None:
    """Other chats with the messages of this one, ``CHAT_SIZE`` in each, and with their vectors."""
    now = timezone.now()
    chats = Chat.objects.bulk_create(
        Chat(whatsapp_chat=f"1555{number:08}@c.us", provider="console")
        for number in range(-(-messages // CHAT_SIZE))
    )
    ChatSession.objects.bulk_create(
        ChatSession(chat=other, created_at=now, last_active=now) for other in chats
    )
    of_message = {"order_num", "role", "content", "timestamp", "tokens", "terms", "term_count"}
    copied = [chat.pk, min(CHAT_SIZE, messages)]
    with without_checks(BESIDE_TABLES):
        ids = {"message_id": "other_id", "chat_id": "other_chat", "session_id": "other_session"}
        rows_add("Message", COPIED, {**ids, **{name: name for name in of_message}}, copied)
        vectors = f"{COPIED} JOIN sessions_app_messageembedding e USING (message_id)"
        rows_add(
            "MessageEmbedding",
            vectors,
            {"message_id": "other_id", "model": "model", "vector": "vector"},
            copied,
        )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def measure_all(chat: Chat, rounds: int) -> dict[str, float]:
    """Print the times of each kind of question; return the medians by what is searched."""
    medians = {}
    for sources in ((MEMORIES,), (MESSAGES,), (MEMORIES, MESSAGES)):
        searched = " and ".join(sources)
        print(f"recall of {searched}, least, median, p95 in ms; the same of CPU:")
        everything: list[Taken] = []
        for name, question in QUESTIONS.items():
            taken = measure(question, chat, sources, rounds)
            everything += taken
            print(f"  {name:16} {_summary(taken)}")
        print(f"  {'all':16} {_summary(everything)}")
        medians[searched] = statistics.median(taken for taken, _ in everything)
    return medians


def _summary(taken: Sequence[Taken]) -> str:
    return "   ".join(_figures([each[kind] for each in taken]) for kind in range(2))


def _figures(values: Sequence[float]) -> str:
    p95 = sorted(values)[max(0, -(-len(values) * 95 // 100) - 1)]
    return f"{min(values):7.1f} {statistics.median(values):7.1f} {p95:7.1f}"


def main() -> None:
    """Fills, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, parents=[KEEPING])
    parser.add_argument("--texts", type=int, default=10_000, help="memories, and messages")
    parser.add_argument("--rounds", type=int, default=10, help="recalls of each question")
    parser.add_argument("--beside", type=int, help="messages of other chats, added after that")
    options = parser.parse_args()
    with own_database():
        texts = made_up(options.texts, random.Random(1))
        chat = Chat.objects.order_by("created_at").first() or fill(list(texts))
        print(f"{options.texts} memories and a chat of as many messages; {machine()}")
        alone = measure_all(chat, options.rounds)
        if options.beside:
            add_beside(chat, options.beside)
            print(f"\nThe same beside {options.beside} messages of other chats; {machine()}")
            beside = measure_all(chat, options.rounds)
            for searched, median in beside.items():
                print(f"{searched}: {median / alone[searched]:.2f} times the median of before")


if __name__ == "__main__":
    main()

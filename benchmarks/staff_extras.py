"""What stands beside the conversations: memories, proofs, the log, and what staff and programs
keep for themselves."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator

import numpy
from bulk_rows import rows_add
from django.contrib.auth.models import User
from django.db import connection

from memories_app.models import EmbeddingModel, EmbeddingState, Memory
from memories_app.vector_search import index_drop, index_ensure
from memoryproject.foundation.audit.audit_events import audit_key, log_path
from memoryproject.foundation.audit.chain import audit_seal

Work = tuple[str, Callable[[], object]]

STAFF = 12
# Who asks for the pages; has looked at nearly all conversations, as all of them were reviewed.
READER = "benchmark"
VECTORS_AT_ONCE = 10_000
MESSAGE_VECTORS = 2_000
ACTIONS = (
    "array['message.store','memory.remember','memory.reinforce','session.create','session.expire',"
    "'conversation.read','conversation.read','memory.recall','login.fail','memory.update']"
)
LOGS_SQL = """
INSERT INTO django_q_task (id, name, func, args, kwargs, result, "group", cluster, started,
    stopped, success, attempt_count)
SELECT md5('task' || n), 'task-' || n, 'sessions_app.tasks.answer_chat', NULL, NULL, NULL, '',
    'memory', now() - n * interval '1 minute', now() - n * interval '1 minute' + interval '2 s',
    mod(n, 40) > 0, 1 FROM generate_series(1, 500) AS n
"""


def extras_add(memories: int, events: int, texts: int) -> Iterator[Work]:
    """What is filled while nothing is checked."""
    yield "memories", lambda: memories_add(memories, texts)
    yield "vectors", vectors_add
    yield "cards", lambda: cards_add(texts)
    yield "receipts and documents", proofs_add
    yield "audit events", lambda: events_add(events)
    yield "staff's own", staff_add


def world_finish() -> Iterator[Work]:
    """What the product itself makes of it."""
    yield "vector index", vectors_index
    yield "sealing", lambda: audit_seal(key=audit_key(), log_path=log_path(), batch=5_000)
    yield "events that wait", lambda: events_add(300)
    yield "rollups", rollups_count
    yield "vacuum and statistics", _vacuum


def memories_add(count: int, texts: int) -> None:
    """Most of them a client's. Some wait for staff, some gave way to others."""
    visibility = "CASE WHEN n >= %s OR mod(n, 10) > 2 THEN 'chat' WHEN mod(n, 10) = 0 THEN 'public'"
    status = "CASE WHEN mod(n, 33) = 5 THEN 'superseded' WHEN mod(n, 251) = 7 THEN 'proposed'"
    source = """generate_series(0, %s - 1) AS n JOIN bench_text t ON t.number = mod(n, %s)
        JOIN bench_session s ON s.number = mod(n * 7919::bigint,
            (SELECT count(*) FROM bench_session))"""
    told = "s.began + interval '1 minute'"
    values = {
        "memory_id": "md5('memory ' || n)::uuid",
        "content": "content",
        "content_hash": "encode(sha256(content::bytea), 'hex')",
        "type": "(array['fact','fact','fact','preference','event'])[mod(n, 5) + 1]",
        "category": "(array['','orders','billing','people'])[mod(n / 3, 4) + 1]",
        "tags": "CASE WHEN mod(n, 4) = 0 THEN array['vip','weekly'] ELSE '{}' END",
        "visibility": f"{visibility} ELSE 'owner' END",
        "chat_id": "s.chat_id",
        "source": "(array['extraction','api','import'])[mod(n, 3) + 1]",
        "source_message_id": "md5(s.session_id::text || ' 1')::uuid",
        "confidence": "CASE WHEN mod(n, 3) = 0 THEN 0.9 END",
        "status": f"{status} ELSE 'active' END",
        "superseded_at": "CASE WHEN mod(n, 33) = 5 THEN now() END",
        "pinned": "mod(n, 500) = 9",
        "expires_at": "CASE WHEN mod(n, 77) = 3 THEN now() - interval '1 day' END",
        "last_told_at": told,
        "created_at": told,
        "updated_at": told,
        "fact_key": "t.fact_key",
        "likeness": "t.likeness",
        "terms": "t.terms",
        "term_count": "t.term_count",
    }
    rows_add("Memory", source, values, [texts, count, texts], conflicts=True)
    _histories_add()


def _histories_add() -> None:
    """Tellings, what memories said before, and what staff are asked about."""
    table = Memory._meta.db_table
    rows_add(
        "MemorySource",
        f"{table} m",
        {
            "memory_id": "memory_id",
            "source": "source",
            "source_message_id": "source_message_id",
            "told_at": "created_at",
        },
        conflicts=True,
    )
    rows_add(
        "MemoryRevision",
        f"{table} m CROSS JOIN generate_series(1, 3) AS n WHERE abs(hashtext(fact_key)) < 2e8",
        {
            "memory_id": "memory_id",
            "number": "n",
            "content": "content || ' ' || n",
            "visibility": "visibility",
            "type": "type",
            "changed_at": "created_at + n * interval '1 day'",
            "changed_by_kind": "'staff'",
            "changed_by_name": "'staff' || n",
            "reason": "'updated'",
        },
    )
    rows_add(
        "MergeProposal",
        f"(SELECT *, row_number() OVER (ORDER BY memory_id) AS n FROM {table}"
        " WHERE status = 'active' LIMIT 2000) AS m",
        {
            "kind": "CASE WHEN mod(n, 4) = 0 THEN 'replace' ELSE 'merge' END",
            "content": "content",
            "similarity": "0.9",
            "alike_key": "'bench ' || n",
            "state": "(array['open','accepted','dismissed'])[mod(n, 3) + 1]",
            "created_at": "created_at",
        },
    )
    rows_add(
        "ProposalMemory",
        "(SELECT id, row_number() OVER (ORDER BY id) AS n FROM memories_app_mergeproposal) AS p"
        f" JOIN (SELECT memory_id, row_number() OVER (ORDER BY memory_id) AS n FROM {table}"
        " WHERE status = 'active' LIMIT 4001) AS m ON m.n IN (p.n, p.n + 1)",
        {"proposal_id": "p.id", "memory_id": "m.memory_id", "number": "m.n - p.n + 1"},
    )


def vectors_add() -> None:
    """Of every memory, and of the messages of the largest chat: random directions."""
    model = EmbeddingModel.objects.get(state=EmbeddingState.ACTIVE)
    index_drop(model_id=model.model_id)
    keys = list(Memory.objects.order_by("pk").values_list("pk", flat=True))
    chance = numpy.random.default_rng(5)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE bench_vector (number serial, vector vector)")
        cursor.execute("DELETE FROM memories_app_memoryembedding")
        columns = "memories_app_memoryembedding (memory_id, model, vector)"
        with cursor.copy(f"COPY {columns} FROM STDIN") as copy:
            for start in range(0, len(keys), VECTORS_AT_ONCE):
                some = keys[start : start + VECTORS_AT_ONCE]
                made = chance.standard_normal((len(some), model.dimensions), dtype="float32")
                made /= numpy.linalg.norm(made, axis=1, keepdims=True)
                for key, row in zip(some, made.round(6).tolist(), strict=True):
                    copy.write_row((key, model.model_id, str(row)))
        cursor.execute(
            "INSERT INTO bench_vector (vector) SELECT vector FROM memories_app_memoryembedding"
            f" LIMIT {MESSAGE_VECTORS}"
        )
    rows_add(
        "MessageEmbedding",
        "(SELECT message_id, row_number() OVER () AS n FROM sessions_app_message WHERE chat_id ="
        " (SELECT chat_id FROM bench_chat WHERE number = 0) AND content <> '') AS m"
        f" JOIN bench_vector v ON v.number = mod(m.n, {MESSAGE_VECTORS}) + 1",
        {
            "message_id": "m.message_id",
            "model": "(SELECT model_id FROM memories_app_embeddingmodel WHERE state = 'active')",
            "vector": "v.vector",
        },
    )


def vectors_index() -> None:
    index_ensure(model=EmbeddingModel.objects.get(state=EmbeddingState.ACTIVE))


def cards_add(texts: int) -> None:
    """Of every session that is over and long enough."""
    short = "left(t.content, 60)"
    rows_add(
        "MemoryCard",
        "bench_session s JOIN bench_text t ON t.number = mod(s.number, %s) WHERE s.count > 9",
        {
            "session_id": "s.session_id",
            "chat_id": "s.chat_id",
            "session_started_at": "s.began",
            "title": short,
            "summary_bullets": f"array['[user] ' || {short}, '[assistant] ' || {short}]",
            "decisions": f"array[{short}]",
            "keywords": "array['invoice','delivery','payment']",
            "algorithm_version": "'1'",
            "extracted_at": "s.began",
            "source_digest": "t.fact_key",
            "last_order": "s.count",
            "terms": "t.terms",
            "term_count": "t.term_count",
        },
        [texts],
    )


def proofs_add() -> None:
    """Receipts, documents that were read, and documents that programs keep."""
    at = "now() - n * interval '3 hours'"
    rows_add(
        "ForgetReceipt",
        "generate_series(2000, 1, -1) AS n",
        {
            "kind": "(array['memory','memory','message','session','chat'])[mod(n, 5) + 1]",
            "object_id": "gen_random_uuid()",
            "forgotten_at": at,
            "actor_kind": "'staff'",
            "actor": "'staff' || mod(n, 12)",
            "content_hash": "encode(sha256(n::text::bytea), 'hex')",
            "swept": '\'{"memories_app_memory": 1, "sessions_app_turn": 2}\'',
            "probe": "'absent'",
        },
    )
    rows_add(
        "SourceDocument",
        "generate_series(1, 300) AS n",
        {
            "name": "'document ' || n || '.pdf'",
            "title": "'Price list ' || n",
            "size": "100000 + n",
            "sha256": "encode(sha256(n::text::bytea), 'hex')",
            "visibility": "'owner'",
            "state": "(array['ready','ready','failed','ready'])[mod(n, 4) + 1]",
            "created_at": at,
        },
    )
    rows_add(
        "MemoryDocument",
        "generate_series(1, 600) AS n",
        {
            "category": "(array['context','decisions','interfaces','handoffs'])[mod(n, 4) + 1]",
            "name": "'2026-01-01-auth-' || n",
            "identifier": "'auth-' || n",
            "summary": "'What was decided about ' || n",
            "created": at,
            "changed": at,
        },
    )
    rows_add(
        "MemoryDocumentVersion",
        "memories_app_memorydocument d",
        {"document_id": "d.id", "number": "1", "body": "'{}'", "sha256": "md5(d.name)"},
    )


def events_add(count: int) -> None:
    """In the order of time, up to now."""
    kind = "(array['system','person','staff','token'])[mod(n, 4) + 1]"
    rows_add(
        "AuditEvent",
        "generate_series(%s, 1, -1) AS n",
        {
            "at": "now() - n * interval '30 seconds'",
            "action": f"({ACTIONS})[mod(n, 10) + 1]",
            "actor_kind": kind,
            "actor": f"CASE {kind} WHEN 'staff' THEN 'staff' || mod(n, 12) ELSE {kind} END",
            "chat": "CASE WHEN mod(n, 3) > 0 THEN md5('chat ' || mod(n * 31, 10000)) ELSE '' END",
            "object_type": "(array['memory','message','session','chat'])[mod(n, 4) + 1]",
            "object_id": "md5('memory ' || mod(n, 50000))::uuid::text",
            "content_hash": "encode(sha256(n::text::bytea), 'hex')",
        },
        [count],
    )


def staff_add() -> None:
    """Accounts, tokens, webhooks and jobs; and marks, labels and notes, where there are such."""
    User.objects.bulk_create(
        User(username=f"staff{number}", is_staff=True) for number in range(STAFF)
    )
    User.objects.create_superuser(READER)
    chats = "(SELECT chat_id, number AS n, last_at FROM bench_chat) AS c"
    user = "(SELECT id FROM auth_user WHERE username = 'staff' || mod(n, 12))"
    upto = {"began_at": "s.began", "session_key": "s.session_id", "order_num": "s.count"}
    by_chat = {"chat_id": "chat_id"}
    label = {"name": "'label ' || n", "colour": "'green'"}
    rows_add("Label", "generate_series(1, 8) AS n", label)
    rows_add(
        "ChatLabel",
        f"{chats} JOIN sessions_app_label l ON mod(c.n + l.id, 20) = 0",
        {**by_chat, "label_id": "l.id"},
    )
    some = f"{chats} WHERE mod(n, 5) = 1"
    rows_add("Assignment", some, {**by_chat, "assignee_id": user, "assigned_at": "now()"})
    # Up to the end of the newest session, as everybody marks.
    seen = f"{chats} JOIN bench_session AS s USING (chat_id) WHERE s.newest"
    most = f"{seen} AND mod(n, 20) <> 1"
    reader = f"(SELECT id FROM auth_user WHERE username = '{READER}')"
    rows_add("ReviewedMark", most, {**by_chat, **upto, "reviewed_at": "now()"})
    rows_add("ReadMark", most, {**by_chat, **upto, "user_id": reader})
    rows_add("Bookmark", some, {**by_chat, "user_id": user})
    rows_add("ReadMark", f"{seen} AND mod(n, 5) = 1", {**by_chat, **upto, "user_id": user})
    note = {"author_name": "'staff'", "text": "'Call back about ' || n", "created_at": "last_at"}
    rows_add("Note", some, {**by_chat, **note})
    rows_add("ChatPause", f"{chats} WHERE mod(n, 400) = 3", by_chat)
    programs_add()


def programs_add() -> None:
    """What programs use, and their jobs."""
    rows_add(
        "ApiToken",
        "generate_series(1, 40) AS n",
        {
            "name": "'program ' || n",
            "prefix": "'mem_' || n",
            "digest": "encode(sha256(n::text::bytea), 'hex')",
            "scopes": "array['read','write']",
        },
    )
    rows_add(
        "WebhookEndpoint",
        "generate_series(1, 6) AS n",
        {
            "name": "'endpoint ' || n",
            "url": "'https://example.com/hook/' || n",
            "secret": "'whsec_' || md5(n::text)",
        },
    )
    rows_add(
        "WebhookDelivery",
        "generate_series(1, 20000) AS n JOIN (SELECT id, row_number() OVER (ORDER BY id) AS place"
        " FROM hooks_webhookendpoint) AS e ON e.place = mod(n, 6) + 1",
        {
            "endpoint_id": "e.id",
            "event_type": "'memory.created'",
            "state": "CASE WHEN mod(n, 50) = 0 THEN 'failed' ELSE 'delivered' END",
            "occurred_at": "now() - n * interval '1 minute'",
            "finished_at": "now() - n * interval '1 minute'",
            "attempts": "1",
        },
    )
    with connection.cursor() as cursor:
        cursor.execute(LOGS_SQL)


def rollups_count() -> None:
    """What a schedule does each minute, until nothing is left; where there is such a thing."""
    name = "memoryproject.staff_site.tasks"
    if importlib.util.find_spec(name):
        while importlib.import_module(name).recount():
            pass


def _vacuum() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")

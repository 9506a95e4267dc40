"""List every column that can hold a text, with the way forgetting treats it.

A test reads the columns from the database and fails on one that is missing here. A new place that
stores texts must state what becomes of them. Each table names its columns, separated by blanks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from django.db import connection
from psycopg import sql

from memoryproject.foundation.retrieval.fragments import Fragments

# Deleted with its row, or redacted by ``sweep``.
SWEPT = "swept"
# It never holds a person's words.
SAFE = "safe"
# A record that is kept for its own sake: forgetting something else doesn't change it. It goes with
# its row, history included, when the row itself is removed.
OWN = "own"

_SWEPT_COLUMNS = {
    "memories_app_memory": (
        "content content_hash type category tags source metadata fact_key likeness terms scope"
    ),
    "memories_app_memoryembedding": "vector",
    "memories_app_memoryrevision": "content type category tags",
    "memories_app_mergeproposal": "content alike_key",
    "memories_app_sourcedocument": "name copy_names title error warnings sha256",
    "cards_app_memorycard": (
        "title summary_bullets decisions todos entities keywords notable_quotes outcome terms "
        "source_digest"
    ),
    "sessions_app_message": "content metadata media history image_path terms sender recipient",
    "sessions_app_messageembedding": "vector",
    "sessions_app_turn": "context error unstored_text unstored_reply",
    "sessions_app_turnreplay": "prompt recalled shown left_out",
    "sessions_app_answertrial": "system_text text recalled error",
    "sessions_app_outboundpart": "content",
    "sessions_app_inbounddelivery": "raw change",
    "sessions_app_summarizationmetadata": "digest chapter",
    "sessions_app_extractionwork": "error",
    "sessions_app_chat": "whatsapp_chat client_name staff_name client_phone",
    "sessions_app_chataddress": "address",
    "sessions_app_contactmerge": "gone kept",
    "sessions_app_note": "text",
    "django_q_task": "args kwargs result",
    "django_q_ormq": "payload",
    "django_admin_log": "object_repr change_message",
    "django_session": "session_data",
    "api_idempotentanswer": "body",
}
# By what they hold.
_SAFE_COLUMNS: dict[str, dict[str, str]] = {
    (
        "words of ours, such as kinds and states, ids, and names of providers, processes and limits"
    ): {
        "memories_app_memory": "visibility status",
        "memories_app_memorytelling": "source",
        "cards_app_memorycard": "algorithm_version",
        "sessions_app_chatpause": "cause",
        "sessions_app_message": "role kind delivery_status provider number_id provider_message_id",
        "sessions_app_turn": (
            "provider number_id provider_message_id user_role state outcome lease_owner"
        ),
        "sessions_app_inbounddelivery": "provider delivery_key event subject_id outcome",
        "sessions_app_extractionwork": "lease_owner outcome",
        "sessions_app_chat": "provider number_id language fixed_language",
        "sessions_app_chataccess": "standing reason",
        "sessions_app_usageday": "reached",
        "sessions_app_chataddress": "provider",
        "sessions_app_ownaddress": "provider number_id address",
        "sessions_app_chatsession": "status",
        "sessions_app_forgetepoch": "scope",
        "django_q_task": "id name func hook group cluster",
        "django_q_ormq": "key",
        "django_q_schedule": (
            "name func hook args kwargs schedule_type cron task cluster intended_date_kwarg"
        ),
        "django_admin_log": "object_id",
        "api_callcount": "caller kind",
        "dashboard_alert": "key text",
        "shared_cache": "cache_key value",
    },
    "words of ours, ids, who of the staff, and what they decided": {
        "memories_app_memoryrevision": "visibility reason changed_by_kind changed_by_name",
        "memories_app_mergeproposal": "kind state decided_by reason",
        "memories_app_sourcedocument": (
            "media_type visibility state error_code uploaded_by lease_owner"
        ),
        "sessions_app_contactmerge": "merged_by rows",
        "sessions_app_note": "author_name",
        "sessions_app_answerrating": "reason user_name",
    },
    "names of models and skills, times and counts": {
        "memories_app_memoryembedding": "model",
        "memories_app_embeddingmodel": "model_id kind name distance state",
        "sessions_app_messageembedding": "model",
        "sessions_app_turnreplay": "model timings",
        "sessions_app_summarizationmetadata": "skill_id model",
        "dashboard_quarter": (
            "answer_bins answer_counts model_names prompt_tokens completion_tokens"
        ),
        "dashboard_day": "figures",
    },
    "words of ours, names of models, ids of memories, who of the staff, and a process": {
        "sessions_app_answertrial": (
            "state model memories instructions chosen answered_by user_name lease_owner"
        )
    },
    (
        "a keyed hash, or that of a file that goes with its row, states, and names of processes "
        "and folders, whose files are swept"
    ): {
        "memories_app_tombstone": "scope key",
        "sessions_app_mediafile": "state content_type sha256 error_code lease_owner",
        "sessions_app_transcriptbatch": "digest backup",
    },
    "ids, states, and what the provider or the model's service said when it refused": {
        "sessions_app_outboundpart": (
            "state provider number_id provider_message_id delivery_status error"
        ),
        "sessions_app_summarywork": "lease_owner error",
    },
    (
        "what staff write to anybody, about the business, or as names of kinds and filters, "
        "without search words; they change it themselves"
    ): {
        "sessions_app_label": "name colour",
        "sessions_app_savedfilter": "name query",
        "sessions_app_cannedreply": "name shortcut text",
        "sessions_app_assistantprofile": (
            "name business_name persona business_facts opening_hours languages privacy_notice_en "
            "privacy_notice_he"
        ),
    },
    (
        "keyed hashes, counts, ids, who of the staff, and the number of a request, without "
        "blanks: no content"
    ): {
        "sessions_app_forgetreceipt": (
            "kind actor_kind actor content_hash swept probe probe_details left person_keys "
            "call_key requester request_number"
        ),
        "sessions_app_forgetrun": "asked_by requester request_number state lease_owner",
    },
    "words of ours, and where something was found; never what": {
        "sessions_app_forgetitem": "kind state error"
    },
    "settings of those who operate the server, and who changed them": {
        "sessions_app_storedsetting": "name value changed_by"
    },
    "staff's own accounts, groups and permissions": {
        "auth_user": "password username first_name last_name email",
        "auth_group": "name",
        "auth_permission": "name codename",
        "dashboard_defaultgrant": "group permission",
    },
    "names of tables and migrations": {
        "django_content_type": "app_label model",
        "django_migrations": "app name",
    },
    "random keys, and keyed hashes, ids and names of the programs that use them": {
        "django_session": "session_key",
        "api_apitoken": "name prefix digest scopes created_by",
        "api_idempotentanswer": "caller key_hash request_hash lease_owner content_type headers",
    },
    "an integrator's address as staff gave it, its random secrets, and statuses": {
        "hooks_webhookendpoint": (
            "name url event_types secret old_secret disabled_reason created_by last_error "
            "lease_owner"
        )
    },
    "ids, times and words of ours; whose chat it was is cut loose when that is erased": {
        "hooks_webhookdelivery": "event_type data state error"
    },
    "a model's name and host, and a status without the server's words": {
        "outside_services_outsideservice": "name target state error learned"
    },
    "hashes, pseudonyms and counts: the audit log holds no content": {
        "audit_auditevent": (
            "action actor_kind actor chat object_type object_id content_hash details seal"
        ),
        "audit_auditperson": "salt",
        "audit_audithead": "seal mac",
        "audit_auditcheckpoint": "seal mac",
        "audit_auditverification": "asked_by state report",
        "audit_auditsetting": "name fingerprint",
    },
    "logins of staff: keyed marks of names, addresses, browsers and pages": {
        "axes_accessattempt": "user_agent username http_accept path_info get_data post_data",
        "axes_accesslog": "user_agent username http_accept path_info session_hash",
        "axes_accessfailurelog": "user_agent username http_accept path_info",
    },
    "staff's second factors: our word for it, a random secret, keyed hashes of codes": {
        "otp_totp_totpdevice": "name key",
        "otp_static_staticdevice": "name",
        "otp_static_statictoken": "token",
    },
}
# By the reason why they aren't redacted.
_OWN_COLUMNS = {
    (
        "what programs keep here as files of their own; staff remove it, cleanup does, and with a "
        "document all its versions go"
    ): {
        "memories_app_memorydocument": "name identifier summary session_id status category",
        "memories_app_memorydocumentversion": "body sha256 saved_by_kind saved_by_name",
    }
}


def _columns() -> dict[str, dict[str, tuple[str, str]]]:
    """Return of each table its columns, each with its treatment and the reason for it."""
    found: defaultdict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    treatments: tuple[tuple[str, Mapping[str, Mapping[str, str]]], ...] = (
        (SWEPT, {"": _SWEPT_COLUMNS}),
        (SAFE, _SAFE_COLUMNS),
        (OWN, _OWN_COLUMNS),
    )
    for how, reasons in treatments:
        for why, tables in reasons.items():
            for table, columns in tables.items():
                found[table].update(dict.fromkeys(columns.split(), (how, why)))
    return dict(found)


COLUMNS = _columns()


def statistics_columns() -> set[tuple[str, str]]:
    """Return table and name of each column whose statistics may keep a forgotten text."""
    return swept_columns() | _treated(OWN)


def swept_columns() -> set[tuple[str, str]]:
    """Return table and name of each swept column, except vectors, which aren't text."""
    return {(table, column) for table, column in _treated(SWEPT) if column != "vector"}


def _treated(treatment: str) -> set[tuple[str, str]]:
    return {
        (table, column)
        for table, columns in COLUMNS.items()
        for column, (how, _) in columns.items()
        if how == treatment
    }


# The statistics that PostgreSQL keeps of the columns: they hold values of rows.

_VALUES = """
SELECT stats.tablename, stats.attname, kept.value
FROM pg_stats AS stats, LATERAL (
    SELECT unnest(stats.most_common_vals::text::text[])
    UNION ALL SELECT unnest(stats.histogram_bounds::text::text[])
) AS kept (value)
WHERE stats.schemaname = current_schema() AND stats.tablename = ANY(%s)
"""

# Before PostgreSQL 18, the statistics of an empty table can't be removed.
# A partitioned table has statistics of all its partitions.
_CLEAR = """
SELECT pg_clear_attribute_stats(current_schema()::text, %s, %s, inherited)
FROM (VALUES (false), (true)) AS both_kinds (inherited)
"""

# By the name of each partition, that of its table.
_PARTITIONS = """
SELECT leaf.relname, parent.relname FROM pg_inherits
JOIN pg_class leaf ON leaf.oid = inhrelid JOIN pg_class parent ON parent.oid = inhparent
WHERE leaf.relkind = 'r' AND leaf.relnamespace = current_schema()::regnamespace
"""

CLEARABLE = (18,)


def statistics_values() -> list[tuple[str, str, str]]:
    """Return the sampled values of erasable columns: table, column, and value as text."""
    swept = statistics_columns()
    with connection.cursor() as cursor:
        cursor.execute(_PARTITIONS)
        table_of = dict(cursor.fetchall())
        cursor.execute(_VALUES, [sorted({*table_of, *(table for table, _ in swept)})])
        kept = [row for row in cursor if (table_of.get(row[0], row[0]), row[1]) in swept]
    if connection.get_database_version() >= CLEARABLE:
        return kept
    empty = {table for table in {table for table, _, _ in kept} if not _has_row(table)}
    return [row for row in kept if row[0] not in empty]


def statistics_stale(values: list[tuple[str, str, str]], texts: Fragments) -> set[tuple[str, str]]:
    """Return the columns whose statistics keep a forgotten text that no row holds any more.

    A value that a remaining row holds belongs to that row.
    """
    return {
        (table, column)
        for table, column, value in values
        if texts.are_in(value) and not _has_row(table, column, value)
    }


def statistics_renew(texts: Fragments) -> None:
    """Gather the statistics of the affected tables again from the remaining rows."""
    stale = statistics_stale(statistics_values(), texts)
    if not stale:
        return
    with connection.cursor() as cursor:
        for table in sorted({table for table, _ in stale}):
            cursor.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table)))
        # ANALYZE doesn't change the statistics of empty tables.
        for table, column in sorted(statistics_stale(statistics_values(), texts)):
            cursor.execute(_CLEAR, [table, column])


def _has_row(table: str, column: str = "", value: str = "") -> bool:
    """Return whether the table has a row, or one with this value in the column."""
    query = sql.SQL("SELECT EXISTS (SELECT 1 FROM {})").format(sql.Identifier(table))
    if column:
        query = sql.SQL("SELECT EXISTS (SELECT 1 FROM {} WHERE {}::text = %s)").format(
            sql.Identifier(table), sql.Identifier(column)
        )
    with connection.cursor() as cursor:
        cursor.execute(query, [value] if column else None)
        return bool(cursor.fetchone()[0])

"""List every column that can hold a text, with the way forgetting treats it.

A test reads the columns from the database and fails on one that is missing here. A new place that
stores texts must state what becomes of them.
"""

from __future__ import annotations

# Deleted with its row, or redacted by ``sweep``.
SWEPT = "swept"
# It never holds a person's words.
SAFE = "safe"
# A record that is kept for its own sake: forgetting something else doesn't change it. It goes with
# its row, history included, when the row itself is removed.
OWN = "own"


COLUMNS: dict[str, dict[str, tuple[str, str]]] = {}


def _table(name: str, *, swept: str = "", safe: str = "", own: str = "", why: str = "") -> None:
    """Register the columns of a table.

    ``swept``, ``safe`` and ``own`` name columns; ``why`` says what the safe ones hold, and why the
    others aren't redacted.
    """
    COLUMNS[name] = {
        **dict.fromkeys(swept.split(), (SWEPT, "")),
        **dict.fromkeys(safe.split(), (SAFE, why)),
        **dict.fromkeys(own.split(), (OWN, why)),
    }


def statistics_columns() -> set[tuple[str, str]]:
    """Return table and name of each column whose statistics may keep a forgotten text."""
    own = {
        (table, column)
        for table, columns in COLUMNS.items()
        for column, (how, _) in columns.items()
        if how == OWN
    }
    return swept_columns() | own


def swept_columns() -> set[tuple[str, str]]:
    """Return table and name of each swept column, except vectors, which aren't text."""
    return {
        (table, column)
        for table, columns in COLUMNS.items()
        for column, (how, _) in columns.items()
        if how == SWEPT and column != "vector"
    }


_table(
    "memories_app_memory",
    swept="content content_hash type category tags source metadata fact_key likeness terms scope",
    safe="visibility status",
    why="one of a few words of ours",
)
_table("memories_app_memoryembedding", swept="vector", safe="model", why="a model's name")
_table(
    "memories_app_memoryrevision",
    swept="content type category tags",
    safe="visibility reason changed_by_kind changed_by_name",
    why="words of ours, and who of the staff",
)
_table("memories_app_memorytelling", safe="source", why="how it came in")
_table(
    "memories_app_mergeproposal",
    swept="content alike_key",
    safe="kind state decided_by reason",
    why="ours",
)
_table(
    "memories_app_sourcedocument",
    swept="name copy_names title error warnings sha256",
    safe="media_type visibility state error_code uploaded_by lease_owner",
    why="types, states and who uploaded it",
)
_MEMORY_DOCUMENT = (
    "what programs keep here as files of their own; staff remove it, cleanup does, and with a "
    "document all its versions go"
)
_table(
    "memories_app_memorydocument",
    own="name identifier summary session_id status category",
    why=_MEMORY_DOCUMENT,
)
_table(
    "memories_app_memorydocumentversion",
    own="body sha256 saved_by_kind saved_by_name",
    why=_MEMORY_DOCUMENT,
)
_table(
    "memories_app_embeddingmodel", safe="model_id kind name distance state", why="names of models"
)
_table("memories_app_tombstone", safe="scope key", why="a keyed hash, which tells nothing")
_table(
    "cards_app_memorycard",
    swept="title summary_bullets decisions todos entities keywords notable_quotes terms "
    "source_digest",
    safe="algorithm_version",
    why="the version of the rules",
)
_table(
    "sessions_app_message",
    swept="content metadata media history image_path terms sender recipient",
    safe="role kind delivery_status provider number_id provider_message_id",
    why="words of ours and the provider's ids",
)
_table(
    "sessions_app_mediafile",
    safe="state content_type sha256 error_code lease_owner",
    why="words of ours, a hash of a file that goes with the row, and a process",
)
_table("sessions_app_messageembedding", swept="vector", safe="model", why="a model's name")
_table(
    "sessions_app_turn",
    swept="context error unstored_text unstored_reply",
    safe="provider number_id provider_message_id user_role state outcome lease_owner",
    why="ids and states",
)
_table(
    "sessions_app_turnreplay",
    swept="prompt recalled shown left_out",
    safe="model timings",
    why="a model's name, and times",
)
_table(
    "sessions_app_answertrial",
    swept="system_text text recalled error",
    safe="state model memories instructions chosen answered_by user_name lease_owner",
    why="words of ours, names of models, ids of memories, who of the staff, and a process",
)
_table(
    "sessions_app_outboundpart",
    swept="content",
    safe="state provider number_id provider_message_id delivery_status error",
    why="ids, states, and what the provider said when it refused",
)
_table(
    "sessions_app_inbounddelivery",
    swept="raw change",
    safe="provider delivery_key event subject_id outcome",
    why="ids, and what was done with it",
)
_table(
    "sessions_app_summarizationmetadata",
    swept="digest chapter",
    safe="skill_id model",
    why="names of a skill and a model",
)
_table(
    "sessions_app_extractionwork",
    swept="error",
    safe="lease_owner outcome",
    why="a process, and counts",
)
_table("sessions_app_summarywork", safe="lease_owner error", why="a process, and a model's error")
_table(
    "sessions_app_chat",
    swept="whatsapp_chat client_name staff_name client_phone",
    safe="provider number_id language",
    why="which provider, and the language",
)
_table(
    "sessions_app_chataccess",
    safe="standing reason",
    why="words of ours: what staff decided",
)
_table("sessions_app_usageday", safe="reached", why="the name of a limit")
_table("sessions_app_chataddress", swept="address", safe="provider", why="which provider")
_table(
    "sessions_app_contactmerge",
    swept="gone kept",
    safe="merged_by rows",
    why="who of the staff, ids, and what staff decided",
)
_table("sessions_app_chatsession", safe="status", why="a state")
_table("sessions_app_note", swept="text", safe="author_name", why="who of the staff")
_table(
    "sessions_app_answerrating",
    safe="reason user_name",
    why="one of a few words of ours, and who of the staff",
)
_table(
    "sessions_app_label",
    safe="name colour",
    why="what staff call kinds of conversations; they change it themselves",
)
_table(
    "sessions_app_savedfilter",
    safe="name query",
    why="what staff call a choice of filters, and these, without search words",
)
_table(
    "sessions_app_cannedreply",
    safe="name shortcut text",
    why="what staff write to anybody; they change it themselves",
)
_table(
    "sessions_app_transcriptbatch",
    safe="digest backup",
    why="a keyed hash, and the name of a folder, whose files are swept",
)
_table(
    "sessions_app_assistantprofile",
    safe="name business_name persona business_facts opening_hours languages privacy_notice_en "
    "privacy_notice_he",
    why="what staff wrote about the business; they change it themselves",
)
_table(
    "sessions_app_forgetreceipt",
    safe="kind actor_kind actor content_hash swept probe probe_details left person_keys "
    "call_key requester request_number",
    why="keyed hashes, counts, ids, and the number of a request, without blanks: no content",
)
_table(
    "sessions_app_forgetepoch", safe="scope", why="an id of a chat, or which memories: a counter's"
)
_table(
    "sessions_app_forgetrun",
    safe="asked_by requester request_number state lease_owner",
    why="who of the staff, the number of a request, without blanks, a state and a process",
)
_table(
    "sessions_app_forgetitem",
    safe="kind state error",
    why="words of ours, and where something was found; never what",
)
_table(
    "django_q_task",
    swept="args kwargs result",
    safe="id name func hook group cluster",
    why="names of tasks and ids",
)
_table("django_q_ormq", swept="payload", safe="key", why="the queue's name")
_table(
    "django_q_schedule",
    safe="name func hook args kwargs schedule_type cron task cluster intended_date_kwarg",
    why="what is done by the clock",
)
_table("django_admin_log", swept="object_repr change_message", safe="object_id", why="an id")
_table("django_session", swept="session_data", safe="session_key", why="a random key")
_table("shared_cache", safe="cache_key value", why="signs of life of processes, and limits")
_table(
    "auth_user",
    safe="password username first_name last_name email",
    why="staff's own accounts",
)
_table("auth_group", safe="name", why="names of groups of staff")
_table("auth_permission", safe="name codename", why="names of permissions")
_table("django_content_type", safe="app_label model", why="names of tables")
_table("django_migrations", safe="app name", why="names of migrations")
_table(
    "api_apitoken",
    safe="name prefix digest scopes created_by",
    why="what staff call it, its beginning, and a hash of it",
)
_table(
    "api_idempotentanswer",
    swept="body",
    safe="caller key_hash request_hash lease_owner content_type headers",
    why="ids, keyed hashes, a process, and ETags",
)
_table("api_callcount", safe="caller kind", why="ids, and kinds of calls")
_table(
    "hooks_webhookendpoint",
    safe="name url event_types secret old_secret disabled_reason created_by last_error lease_owner",
    why="an integrator's address as staff gave it, its random secrets, and statuses",
)
_table(
    "hooks_webhookdelivery",
    safe="event_type data state error",
    why="ids, times and words of ours; whose chat it was is cut loose when that is erased",
)
_table("dashboard_alert", safe="key text", why="names of services, lanes and schedules")
_table(
    "outside_services_outsideservice",
    safe="name target state error",
    why="a model's name and host, and a status without the server's words",
)
_table(
    "dashboard_quarter",
    safe="answer_bins answer_counts model_names prompt_tokens completion_tokens",
    why="counts, and names of models",
)
_table("dashboard_day", safe="figures", why="counts, and names of models")
_AUDIT = "hashes, pseudonyms and counts: the audit log holds no content"
_table(
    "audit_auditevent",
    safe="action actor_kind actor chat object_type object_id content_hash details seal",
    why=_AUDIT,
)
_table("audit_auditperson", safe="salt", why=_AUDIT)
_table("audit_audithead", safe="seal mac", why=_AUDIT)
_table("audit_auditcheckpoint", safe="seal mac", why=_AUDIT)
_table("audit_auditverification", safe="asked_by state report", why=_AUDIT)
_table("audit_auditsetting", safe="name fingerprint", why="names of settings, and keyed hashes")
_table("dashboard_defaultgrant", safe="group permission", why="names of groups and permissions")
_LOGIN = "logins of staff: keyed marks of names, addresses, browsers and pages"
_table(
    "axes_accessattempt",
    safe="user_agent username http_accept path_info get_data post_data",
    why=_LOGIN,
)
_table(
    "axes_accesslog",
    safe="user_agent username http_accept path_info session_hash",
    why=_LOGIN,
)
_table(
    "axes_accessfailurelog",
    safe="user_agent username http_accept path_info",
    why=_LOGIN,
)
_SECOND = "staff's second factors: our word for it, a random secret, keyed hashes of codes"
_table("otp_totp_totpdevice", safe="name key", why=_SECOND)
_table("otp_static_staticdevice", safe="name", why=_SECOND)
_table("otp_static_statictoken", safe="token", why=_SECOND)

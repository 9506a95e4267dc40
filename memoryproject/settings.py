"""Django's settings and the product's own, all from the environment (see .env.example)."""

import os
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.utils.translation import gettext_lazy as _

from memoryproject.environment import (
    OF_ENV_FILE,
    Environment,
    Note,
    config_wins_over_env_file,
    read_config_file,
    read_env_file,
    secret_from_file,
)
from memoryproject.folders import FILES, HOME
from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.rest_kit.config import (
    DRF_STANDARDIZED_ERRORS as DRF_STANDARDIZED_ERRORS,
    REST_FRAMEWORK as REST_FRAMEWORK,
    SPECTACULAR_SETTINGS as SPECTACULAR_SETTINGS,
)
from memoryproject.settings_table import OWN_SETTINGS, stray_names

BASE_DIR = FILES

# --- the product's own: a setting for each row of settings_table.yaml ---------------------
# The programs of a run inherit what it read in .env, so that all have the same.
_environment = frozenset(os.environ).difference(os.environ.get(OF_ENV_FILE, "").split(","))
env = Environment(values=os.environ)
_of_env_file = read_env_file(HOME / ".env", env.errors)
MEMORY_CONFIG = env.read("MEMORY_CONFIG", OWN_SETTINGS["MEMORY_CONFIG"])
if MEMORY_CONFIG:
    env.config = read_config_file(Path(MEMORY_CONFIG), env.notes)
    if "MEMORY_CONFIG" in _environment:
        config_wins_over_env_file(os.environ, env.config, kept=_environment)
if not env.is_set("ENABLE_MEMORY_SYSTEM"):
    env.notes.append(
        Note("WARNING", "ENABLE_MEMORY_SYSTEM is not set: the memory system is disabled.")
    )
_own = {name: env.read(name, setting) for name, setting in OWN_SETTINGS.items()}
for _name in ("DATA_DIR", "LOG_DIR"):
    # A relative path starts where .env is.
    _own[_name] = HOME / Path(_own[_name]).expanduser()
for _name, _setting in OWN_SETTINGS.items():
    if _setting.file:
        _own[_name] = _own[_name] or secret_from_file(_own["DATA_DIR"] / _setting.file)
_base = urlsplit(_own["BASE_URL"])
if _own["HTTPS_ONLY"] is None:
    # A proxy in front of the server terminates TLS.
    _own["HTTPS_ONLY"] = _base.scheme == "https" if _base.scheme else _own["TRUSTED_PROXIES"] > 0
vars().update(_own)

# The errors of the environment for the system checks, and the notes to log at start.
CONFIG_ERRORS = env.errors
CONFIG_NOTES = env.notes
# The names that were surely meant as settings, with the nearest setting.
CONFIG_UNKNOWN = stray_names(_environment, _of_env_file)
# The origin of each setting, shown to staff.
CONFIG_ORIGINS = {name: env.origin(name, _environment) for name in OWN_SETTINGS}
# How often a process looks for settings that were changed in the browser. None: never by itself.
STORED_SETTINGS_SECONDS = 1.0

# --- what follows from them ---------------------------------------------------------------
CSRF_TRUSTED_ORIGINS = [
    f"https://{host.lstrip('.')}" for host in _own["ALLOWED_HOSTS"] if host not in ("*", "[::1]")
]
if _base.netloc:
    CSRF_TRUSTED_ORIGINS.append(f"{_base.scheme}://{_base.netloc}")
    SPECTACULAR_SETTINGS["SERVERS"] = [{"url": _own["BASE_URL"]}]
# Health checks come from the machine itself, whatever its name is for others.
_hosts = [re.sub(r":[0-9]+$", "", _base.netloc), *_own["ALLOWED_HOSTS"]]
_hosts += OWN_SETTINGS["ALLOWED_HOSTS"].default
ALLOWED_HOSTS = list(dict.fromkeys(filter(None, _hosts)))
if _own["EMAIL_URL"]:
    vars().update(environ.Env.email_url_config(_own["EMAIL_URL"]))
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = SERVER_EMAIL = _own["ALERT_FROM"]
TRACES_ENDPOINT = "" if _own["OTEL_SDK_DISABLED"] else _own["OTEL_EXPORTER_OTLP_ENDPOINT"]

# --- the database -------------------------------------------------------------------------
_database: dict[str, Any]
if _own["DATABASE_URL"]:
    _database = environ.Env.db_url_config(_own["DATABASE_URL"])
else:
    _database = {
        "ENGINE": "memoryproject.foundation.embedded_postgres.backend",
        **EmbeddedPostgres(_own["DATA_DIR"]).connection_settings(),
        "OPTIONS": {"embedded_data_dir": str(_own["DATA_DIR"])},
    }
DATABASES = {"default": {**_database, "CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True}}
if _own["DATABASE_REPLICA_URL"]:
    _replica = environ.Env.db_url_config(_own["DATABASE_REPLICA_URL"])
    # A page waits no longer for a machine that is gone.
    _given_up = {"keepalives_idle": 1, "keepalives_interval": 1, "keepalives_count": 2}
    _replica["OPTIONS"] = {"connect_timeout": 2, **_given_up, **_replica.get("OPTIONS", {})}
    DATABASES["replica"] = {**_replica, "CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True}
    DATABASE_ROUTERS = ["memoryproject.foundation.replica.ReplicaRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Shared by web and workers: django-q2 keeps the heartbeat of its cluster in it.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "shared_cache",
    }
}

# --- background work ----------------------------------------------------------------------
Q_CLUSTER: dict[str, Any] = {
    "name": "memory",
    "label": _("Background work"),
    # Schedules, and all work that nobody waits for. Answers are made by `manage.py answer`.
    "workers": 3,
    # Never a new worker for one that is well: without one of its processes a cluster ends.
    "recycle": None,
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
            "redis": _own["Q_BROKER"],
        }
        if _own["Q_BROKER"]
        else {
            "broker_class": "memoryproject.foundation.process.jobs.DatabaseBroker",
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
    "memoryproject.staff_site.middleware.OwnAddress",
    "memoryproject.staff_site.middleware.RequestIds",
    "django.middleware.security.SecurityMiddleware",
    "memoryproject.staff_site.middleware.Compression",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    # Before what refuses: a page must see the refusal.
    "memoryproject.foundation.rest_kit.middleware.AllowedOrigins",
    "memoryproject.staff_site.middleware.KnownHosts",
    "memoryproject.staff_site.middleware.StoredSettings",
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
    "memoryproject.staff_site.middleware.ReplicaReads",
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
                "deferred": "memoryproject.staff_site.static_files",
                "list_rows": "memoryproject.foundation.admin_kit.list_rows",
                "translate_error": "memoryproject.foundation.errors.stored_errors",
            },
        },
    }
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
# The second corrects Django's own Hebrew.
LOCALE_PATHS = [Path(__file__).parent / name for name in ("locale", "locale/corrected")]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = "memoryproject.formats"
# Under a path, requests are served with and without it: proxies may cut it off.
FORCE_SCRIPT_NAME = _base.path or None
STATIC_URL = f"{_base.path}/static/"
# Static files are served from the packages that contain them: there is no collectstatic step.
WHITENOISE_USE_FINDERS = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "memoryproject.staff_site.static_files.VersionedStorage"},
}
# Meta posts bodies of up to 3 MB; Django's default limit is 2.5 MB.
DATA_UPLOAD_MAX_MEMORY_SIZE = 3 * 1024 * 1024
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "memoryproject.foundation.process.storage.NamelessFileUploadHandler",
]
SESSION_COOKIE_HTTPONLY = True
# StaffSessions enforces the idle limit, because it can explain it to the user. The session's row
# may be deleted a day later. The cookie itself ends with the browser session.
SESSION_EXPIRE_AT_BROWSER_CLOSE = True
SESSION_COOKIE_AGE = _own["STAFF_SESSION_MINUTES"] * 60 + 24 * 60 * 60
# The rest of the host belongs to others.
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = LANGUAGE_COOKIE_PATH = _base.path or "/"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = _own["HTTPS_ONLY"]
if _own["TRUSTED_PROXIES"]:
    # The proxy must set the header itself: see docs/deploy.md.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

CSRF_FAILURE_VIEW = "memoryproject.staff_site.middleware.csrf_failure"
# Redirects to https and HSTS are the proxy's, which knows what else is on the host. For secure
# cookies, checks.py names our own setting.
SILENCED_SYSTEM_CHECKS = ["security.W004", "security.W008", "security.W012", "security.W016"]

# --- lockout (django-axes) ----------------------------------------------------------------
AUTHENTICATION_BACKENDS = [
    "memoryproject.staff_site.accounts.lockout.LockoutBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AXES_FAILURE_LIMIT = _own["LOGIN_FAILURES"]
AXES_COOLOFF_TIME = timedelta(minutes=_own["LOGIN_LOCK_MINUTES"])
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_USERNAME_CALLABLE = "memoryproject.staff_site.accounts.lockout.typed_name"
AXES_CLIENT_IP_CALLABLE = "memoryproject.staff_site.accounts.lockout.client_address"
AXES_LOCKOUT_CALLABLE = "memoryproject.staff_site.accounts.lockout.locked_page"
AXES_RESET_ON_SUCCESS = True
# An attempt during a lock doesn't extend the lock.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
# The audit log records the logins. No typed text is stored: see lockout.py.
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
# Unfold's shades, from light to dark, for backgrounds and texts, and for links and buttons.
_SHADES = ("50", "100", "200", "300", "400", "500", "600", "700", "800", "900", "950")
_COLORS = {
    "base": "#f4f7f5 #eaf0ed #d8e0dc #c2cdc7 #a3b3ac #55635d "
    "#3a4741 #2f3d38 #243029 #121917 #0d1311",
    "primary": "#eef7f3 #e6f4ee #b9dccf #8ccdb4 #62d0a6 #62d0a6 "
    "#0b6b4f #084c39 #0a3c2e #063b2b #04271d",
}
UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "WhatsApp memory",
    "SITE_HEADER": "WhatsApp memory",
    "SITE_URL": f"{_base.path}/",
    "COLORS": {name: dict(zip(_SHADES, row.split(), strict=True)) for name, row in _COLORS.items()},
}

# answer, qcluster or another command of manage.py; else a web server.
_is_command = sys.argv[0].endswith(("manage.py", "whatsapp-memory", "memoryproject/__main__.py"))
_program = sys.argv[1] if _is_command and sys.argv[1:] else "web"

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
            "static_fields": {"program": _program},
        },
    },
    "filters": {
        # The ids of the request, chat, turn and job.
        "context": {"()": "memoryproject.foundation.process.logfile.ContextFilter"},
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
            "formatter": _own["LOG_FORMAT"],
            "level": "WARNING",
        },
        "file": {
            "class": "memoryproject.foundation.process.logfile.PrivateFileHandler",
            "filename": str(_own["LOG_DIR"] / "memory.log"),
            "filters": ["context", "refusals"],
            "delay": True,
            "encoding": "utf-8",
            "formatter": _own["LOG_FORMAT"],
        },
    },
    "root": {"handlers": ["console", "file"], "level": "INFO"},
    "loggers": {
        "django.request": {"filters": ["not_readiness"]},
        # They log URLs at INFO, which hold Green API's token, or a password of OPENAI_BASE_URL.
        # The openai package brings an httpx of its own.
        **dict.fromkeys(("httpx", "httpcore", "httpx2", "httpcore2"), {"level": "WARNING"}),
        "django-q": {"level": "WARNING"},
        # Its own handler writes lines in a form of its own.
        "gunicorn.error": {"handlers": [], "propagate": True},
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

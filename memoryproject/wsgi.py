"""The web server's entry point. A wrong configuration stops it here, with the checks' texts.

gunicorn loads it once and then forks its processes (preload_app), which share this memory. Nothing
here may start a thread.
"""

import gc
import os
import sys
from importlib import import_module
from io import StringIO

from django.core.management import call_command
from django.core.wsgi import get_wsgi_application

SWITCH_SECONDS = 0.0005

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
application = get_wsgi_application()
# manage.py runs the checks for its commands; a web server has to run them itself.
call_command("check", stdout=StringIO())

from django.conf import settings  # noqa: E402 the apps are there by now
from django.db import connections  # noqa: E402

from sessions_app.stored_settings import stored_settings_look  # noqa: E402

stored_settings_look()

# A request waits for the database many times. After each statement its thread waits until another
# one gives up the interpreter, by default for 5 ms: ten statements are slow then.
sys.setswitchinterval(SWITCH_SECONDS)
if settings.ROOT_URLCONF == "memoryproject.urls":
    from sessions_app.embedding.facade import load_early

    import_module("sessions_app.recall.recall_steps")
    load_early()
# Forked processes must not share a connection. What is loaded by now stays: the garbage collector
# would scan it again and again, which delayed one request in six by 0.2 s, and copy it.
connections.close_all()
gc.collect()
gc.freeze()

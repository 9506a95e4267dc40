"""The web server's entry. A wrong configuration stops it here, with the checks' texts."""

import gc
import os
from io import StringIO

from django.core.management import call_command
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
application = get_wsgi_application()
# manage.py runs the checks for its commands; a web server has to ask for them.
call_command("check", stdout=StringIO())

from sessions_app.embedding.facade import load_early  # noqa: E402 the apps are there by now

load_early()

# All that is loaded by now stays: the collector needn't look through it again and again, which
# held up one request in six by 0.2 s.
gc.collect()
gc.freeze()

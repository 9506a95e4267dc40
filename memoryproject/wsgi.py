"""The web server's entry point. A wrong configuration stops it here, with the checks' texts.

gunicorn loads it once and then forks its processes (--preload), which share this memory. Nothing
here may start a thread.
"""

import gc
import os
from io import StringIO

from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.db import connections

from memoryproject.front_door import PeerAddress

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
application = PeerAddress(get_wsgi_application())
# manage.py runs the checks for its commands; a web server has to run them itself.
call_command("check", stdout=StringIO())

from sessions_app.embedding.facade import load_early  # noqa: E402 the apps are there by now

load_early()

# The processes that are forked must not share a connection.
connections.close_all()

# Everything loaded by now stays in memory. Freezing it keeps the garbage collector from scanning it
# again and again, which delayed one request in six by 0.2 s, and from copying it in each process.
gc.collect()
gc.freeze()

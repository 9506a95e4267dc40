"""The web server's entry point. A wrong configuration stops it here, with the checks' texts.

gunicorn loads it once and then forks its processes (--preload), which share this memory. Nothing
here may start a thread.
"""

import os
import sys
from io import StringIO

from django.core.management import call_command
from django.core.wsgi import get_wsgi_application

from memoryproject.programs import PeerAddress

SWITCH_SECONDS = 0.0005

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
application = PeerAddress(get_wsgi_application())
# manage.py runs the checks for its commands; a web server has to run them itself.
call_command("check", stdout=StringIO())

from memoryproject.preloading import preload_web, prepare_fork  # noqa: E402 the apps are there by now

# A request waits for the database many times. After each statement its thread waits until another
# one gives up the interpreter, by default for 5 ms: ten statements are slow then.
sys.setswitchinterval(SWITCH_SECONDS)
preload_web()
prepare_fork()

"""Settings of gunicorn in a deployment, and of `make run`.

WEB_PROCESSES and WEB_THREADS in the environment: see docs/deploy.md.
"""

import os

wsgi_app = "memoryproject.wsgi"
bind = os.environ.get("WEB_BIND", "0.0.0.0:8000")
workers = int(os.environ.get("WEB_PROCESSES", "2"))
worker_class = "gthread"
# More than the calls that may wait for a model: memoryproject/foundation/rest_kit/throttles.py.
threads = int(os.environ.get("WEB_THREADS", "18"))
timeout = 120
# Requests that have begun have so long when the server stops, as answers and jobs have.
graceful_timeout = 3
# Longer than the proxy keeps an idle connection, which deploy/Caddyfile limits to 30 seconds.
keepalive = 75
limit_request_line = 8190
# The processes share what was loaded once.
preload_app = True
# The heartbeats of the processes, in memory where the system has such a folder.
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None
control_socket_disable = True
# Headers never change the scheme or the path here: that follows BASE_URL and TRUSTED_PROXIES.
secure_scheme_headers: dict[str, str] = {}
forwarder_headers = ""

"""Exit with 0 if the web server of this container answers, else with 1."""

import os
import sys
import urllib.request

port = os.environ.get("WEB_BIND", "0.0.0.0:8000").rpartition(":")[2]
# ALLOWED_HOSTS need not contain the container's own address.
host = os.environ.get("ALLOWED_HOSTS", "").split(",")[0].strip().lstrip(".")
if host in ("", "*"):
    host = "localhost"
request = urllib.request.Request(f"http://127.0.0.1:{port}/healthz", headers={"Host": host})
try:
    with urllib.request.urlopen(request, timeout=4) as response:
        sys.exit(0 if response.status == 200 else 1)
except OSError as error:
    sys.exit(f"The web server doesn't answer: {error}")

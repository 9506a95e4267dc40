"""Exit with 0 if the web server of this container answers, else with 1."""

import os
import sys
import urllib.request

port = os.environ.get("WEB_BIND", "0.0.0.0:8000").rpartition(":")[2]
url = f"http://127.0.0.1:{port}/healthz"
try:
    with urllib.request.urlopen(url, timeout=4) as response:
        sys.exit(0 if response.status == 200 else 1)
except OSError as error:
    sys.exit(f"The web server doesn't answer: {error}")

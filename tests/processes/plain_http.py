"""HTTP to servers on this machine. Without TLS: preparing it takes httpx longer than a request,
and a start is waited for with many of them. httpx gives up after five seconds, which a first page
takes on a busy machine."""

from __future__ import annotations

from functools import partial

import httpx

get = partial(httpx.get, trust_env=False, verify=False, timeout=60)
post = partial(httpx.post, trust_env=False, verify=False, timeout=60)
stream = partial(httpx.stream, trust_env=False, verify=False, timeout=60)
request = partial(httpx.request, trust_env=False, verify=False, timeout=60)

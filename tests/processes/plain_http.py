"""HTTP to servers on this machine. Without TLS: preparing it takes httpx longer than a request,
and a start is waited for with many of them."""

from __future__ import annotations

from functools import partial

import httpx

get = partial(httpx.get, trust_env=False, verify=False)
post = partial(httpx.post, trust_env=False, verify=False)
stream = partial(httpx.stream, trust_env=False, verify=False)
request = partial(httpx.request, trust_env=False, verify=False)

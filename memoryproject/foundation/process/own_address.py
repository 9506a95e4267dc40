"""The addresses by which others reach this server."""

from urllib.parse import urljoin, urlsplit

from django.conf import settings
from django.http import HttpRequest


def absolute_url(path: str, request: HttpRequest | None = None) -> str:
    """Return the whole address of a path, as ``reverse`` or a request names it.

    It follows BASE_URL. Without that it follows the request; outside of one it is empty, because
    nobody has said under which name the server is reached.
    """
    if not settings.BASE_URL:
        return request.build_absolute_uri(path) if request else ""
    # ``reverse`` knows the address's own path, but not in each thread.
    prefix = urlsplit(settings.BASE_URL).path
    own = path if f"{path}/".startswith(f"{prefix}/") else prefix + path
    return urljoin(settings.BASE_URL, own)

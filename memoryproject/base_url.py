"""BASE_URL: the one address under which people and other programs reach the server."""

import re
from ipaddress import AddressValueError, IPv6Address

import idna

from memoryproject.environment import InvalidSetting, Setting

DEFAULT_PORTS = {"http": 80, "https": 443}
ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[^\[\]/]*\]|[^\[\]/:]+)(:(?P<port>[0-9]{1,5}))?(?P<path>/.*)?",
    re.IGNORECASE,
)
# As HTTP's Host may be; Django refuses requests that name another, such as one with "_".
HOST = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")
PATH = re.compile(r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._~-]+)*")
# A proxy may cut the path off or leave it there. Under these names the two would look the same.
OUR_PATHS = {"admin", "api", "healthz", "mcp", "metrics", "oauth", "readyz", "static", "v1"}
OUR_PATHS |= {"webhooks", ".well-known"}


class BaseUrl(Setting):
    """An address such as https://memory.example.com:8443/bot, in the form that browsers send."""

    def parse(self, text: str) -> str:
        _, at, address = text.rpartition("@")
        if at:
            # The error is printed and logged: without name and password.
            raise InvalidSetting("setting_base_url_login", f"…@{address}")
        if "?" in text or "#" in text:
            raise InvalidSetting("setting_base_url_query", text)
        found = ADDRESS.fullmatch(text)
        if found is None:
            raise InvalidSetting("setting_base_url", text)
        scheme, host = found["scheme"].lower(), host_of(found["host"])
        port = int(found["port"] or DEFAULT_PORTS[scheme])
        if not host or not 1 <= port <= 65_535:
            raise InvalidSetting("setting_base_url_host", text)
        path = (found["path"] or "").rstrip("/")
        if not PATH.fullmatch(path) or path.split("/")[1:2] in [[each] for each in OUR_PATHS]:
            names = ", ".join(sorted(OUR_PATHS))
            raise InvalidSetting("setting_base_url_path", text, names=names)
        shown_port = "" if port == DEFAULT_PORTS[scheme] else f":{port}"
        return f"{scheme}://{host}{shown_port}{path}"


def host_of(word: str) -> str:
    """Return a host as browsers send it, an IPv6 address in brackets; empty if it can't be one."""
    try:
        if word.startswith("["):
            address = word[1:-1]
            return "" if "%" in address else f"[{IPv6Address(address).compressed}]"
        # As browsers do. Python's own codec follows an older standard: straße becomes strasse.
        labels = idna.uts46_remap(word.removesuffix("."), std3_rules=False).split(".")
    except (AddressValueError, UnicodeError):
        return ""
    host = ".".join(
        each if each.isascii() else f"xn--{each.encode('punycode').decode()}" for each in labels
    )
    return host if len(host) <= 253 and HOST.fullmatch(host) else ""

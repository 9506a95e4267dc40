"""No webhook reaches what is behind our own walls, in whatever form its address is written."""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import ssl
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, strategies as st

from memoryproject.foundation.integrations.network.addresses import (
    AddressError,
    AddressRules,
    PostError,
    address_checked,
    addresses_checked,
    resolved,
    url_checked,
    url_parsed,
)
from memoryproject.foundation.integrations.network.checked_transport import HttpPoster
from tests.hooks.receiver import Receiver
from tests.tables import table

STRICT = AddressRules()
PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e"]
REFUSED = """
0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 127.0.0.1 127.8.8.8 168.63.129.16
169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1
198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1
::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:8.8.8.8 ::ffff:0:127.0.0.1 64:ff9b::7f00:1
64:ff9b::808:808 64:ff9b:1::a00:1 100::1 2001::1 2001:0:7f00:1::1 2001:20::1 2001:db8::1
2002:7f00:1::1 2002:a00:1::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0
2606:4700:4700::1111%eth0 fec0::1 ff02::1 ff0e::1
"""


def leading_to(*addresses: str, allowed: Sequence[str] = (), http: bool = True) -> AddressRules:
    """Rules under which each name leads to these addresses."""
    return AddressRules(
        allowed=tuple(ipaddress.ip_network(network) for network in allowed),
        allow_http=http,
        resolve=lambda _host, _port: addresses,
    )


@table("address", PUBLIC)
def test_public_addresses_are_let_through(address: str) -> None:
    address_checked(address, STRICT)


@table("address", [*REFUSED.split(), "no address", ""])
def test_private_addresses_are_refused_and_so_are_names_that_lead_there(address: str) -> None:
    with pytest.raises(AddressError):
        address_checked(address, STRICT)
    with pytest.raises(AddressError):
        url_checked("https://example.com/", leading_to(address))


HOSTS = """
127.0.0.1 127.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 0 [::1] [::] [::ffff:127.0.0.1]
[::ffff:7f00:1] [64:ff9b::7f00:1] [2002:7f00:1::] localhost LOCALHOST
"""


@table("host", HOSTS.split())
def test_other_ways_of_writing_this_machine_are_refused(host: str) -> None:
    with pytest.raises(AddressError):
        url_checked(f"https://{host}/hooks", STRICT)
    with pytest.raises(PostError):
        HttpPoster(STRICT, longest=2).post(f"https://{host}/hooks", headers={}, body=b"{}")


@table(
    "url",
    [
        "",
        "example.com/hooks",
        "//example.com",
        "ftp://example.com",
        "file:///etc/passwd",
        "gopher://example.com",
        "https://",
        "https:///hooks",
        "https://user@example.com/",
        "https://user:pass@example.com/",
        "https://8.8.8.8@127.0.0.1/",
        "https://example.com/#part",
        "https://example.com/a b",
        "https://example.com/\n",
        "https://example.com\\@127.0.0.1/",
        "https://ex\u00e4mple.com/",
        "https://example.com:99999/",
        "https://example.com:0/",
        "https://example.com/" + "x" * 2_000,
        "http://example.com/",
        "https://xn--ls8h.la/",
        "https://xn--/",
    ],
)
def test_urls_that_make_no_sense_or_hide_something_are_refused(url: str) -> None:
    with pytest.raises(AddressError):
        url_parsed(url, STRICT)


def test_without_tls_only_where_it_is_allowed() -> None:
    assert url_parsed("http://example.com/", AddressRules(allow_http=True)).scheme == "http"


def test_a_name_that_leads_inside_with_one_of_its_addresses_is_refused() -> None:
    with pytest.raises(AddressError):
        addresses_checked("example.com", 443, leading_to("8.8.8.8", "10.0.0.1"))
    with pytest.raises(AddressError, match="resolved"):
        addresses_checked("example.com", 443, leading_to())


def test_a_name_that_nobody_knows_is_refused() -> None:
    def nobody(_host: str, _port: int) -> list[str]:
        raise socket.gaierror

    with pytest.raises(AddressError, match="resolved"):
        url_checked("https://example.com", AddressRules(resolve=nobody))
    with pytest.raises(AddressError, match="resolved"):
        url_checked(f"https://{'a' * 70}.example", AddressRules(resolve=resolved))


def test_networks_of_ones_own_are_allowed_by_name_and_no_others() -> None:
    rules = AddressRules.of(["10.1.0.0/16", "fd00::/8"], allow_http=False)
    for address in ("10.1.2.3", "fd00::1"):
        address_checked(address, rules)
    for address in ("10.2.0.1", "127.0.0.1", "::ffff:10.1.2.3", "fe80::1"):
        with pytest.raises(AddressError, match="WEBHOOKS_PRIVATE_NETWORKS"):
            address_checked(address, rules)


@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_what_python_takes_for_private_is_always_refused(number: int) -> None:
    address = IPv4Address(number)
    if not address.is_global or address.is_multicast or address.is_reserved:
        with pytest.raises(AddressError):
            address_checked(str(address), STRICT)
    for form in (
        IPv6Address((0xFFFF << 32) | number),
        IPv6Address((0x64FF9B << 96) | number),
        IPv6Address((0x2002 << 112) | (number << 80)),
    ):
        with pytest.raises(AddressError):
            address_checked(str(form), STRICT)


@given(st.integers(min_value=0, max_value=2**128 - 1))
def test_the_same_of_ipv6(number: int) -> None:
    address = IPv6Address(number)
    if not address.is_global or address.is_multicast or address.is_reserved:
        with pytest.raises(AddressError):
            address_checked(str(address), STRICT)


def test_what_was_checked_is_what_is_connected_to(receiver: Receiver) -> None:
    """DNS rebinding: the name leads elsewhere when it is asked again. It isn't."""
    asked: list[str] = []

    def rebinding(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    rules = AddressRules.of(["127.0.0.1/32"], allow_http=True)
    poster = HttpPoster(AddressRules(rules.allowed, True, rebinding))
    url = f"http://hooks.example.com:{receiver.port}/path"
    assert poster.post(url, headers={}, body=b"{}").status == 204
    assert asked == ["hooks.example.com"], "resolved once, and that is where it went"
    assert receiver.requests[0].headers["host"] == f"hooks.example.com:{receiver.port}"
    with pytest.raises(PostError, match=r"127\.0\.0\.2"):
        poster.post(url, headers={}, body=b"{}")
    assert len(receiver.requests) == 1


def test_a_name_that_led_outside_at_first_and_inside_later_is_refused(receiver: Receiver) -> None:
    url = f"http://hooks.example.com:{receiver.port}/"
    url_checked(url, leading_to("8.8.8.8"))
    with pytest.raises(PostError, match="private or special"):
        HttpPoster(leading_to("127.0.0.1")).post(url, headers={}, body=b"{}")
    assert receiver.requests == []


def test_the_next_address_is_tried_where_one_doesn_t_answer(receiver: Receiver) -> None:
    rules = leading_to("127.0.0.9", "127.0.0.1", allowed=["127.0.0.0/8"])
    url = f"http://hooks.example.com:{receiver.port}/"
    assert HttpPoster(rules).post(url, headers={}, body=b"{}").status == 204


def test_no_proxy_of_the_environment_is_used(receiver: Receiver) -> None:
    names = ("HTTP_PROXY", "http_proxy", "ALL_PROXY")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "http://127.0.0.1:9"))
    try:
        rules = leading_to("127.0.0.1", allowed=["127.0.0.0/8"])
        url = f"http://hooks.example.com:{receiver.port}/"
        assert HttpPoster(rules).post(url, headers={}, body=b"{}").status == 204
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def test_no_error_holds_the_url_which_may_hold_a_token() -> None:
    for rules in (STRICT, leading_to("127.0.0.1", allowed=["127.0.0.0/8"])):
        with pytest.raises(PostError) as failed:
            HttpPoster(rules, longest=1).post(
                "http://hooks.example.com:1/?token=abc", headers={}, body=b"{}"
            )
        assert "token" not in str(failed.value)
        assert failed.value.__cause__ is None


# --- TLS ----------------------------------------------------------------------------------


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate for this name, and a client's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = made.public_bytes(serialization.Encoding.PEM)
    pem.write_bytes(private + public)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    return server, ssl.create_default_context(cadata=public.decode())


def test_the_certificate_must_be_the_name_s_though_the_address_is_pinned(tmp_path: Path) -> None:
    server, trusting = certificate(tmp_path, "hooks.example.com")
    rules = leading_to("127.0.0.1", allowed=["127.0.0.0/8"], http=False)
    names: list[str | None] = []
    server.sni_callback = lambda _socket, name, _context: names.append(name)
    with Receiver(tls=server) as receiver:
        url = f"https://hooks.example.com:{receiver.port}/"
        poster = HttpPoster(rules, trusted=trusting)
        assert poster.post(url, headers={}, body=b"{}").status == 204
        assert names == ["hooks.example.com"]
        assert receiver.requests[0].headers["host"] == f"hooks.example.com:{receiver.port}"
        other = f"https://other.example.com:{receiver.port}/"
        with pytest.raises(PostError, match="certificate"):
            poster.post(other, headers={}, body=b"{}")
        with pytest.raises(PostError, match="certificate"):
            HttpPoster(rules).post(url, headers={}, body=b"{}")
        assert len(receiver.requests) == 1

"""BASE_URL: its spellings, what follows from it, and what the checks say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memoryproject import checks
from memoryproject.base_url import BaseUrl
from memoryproject.environment import Environment
from tests.programs import python
from tests.tables import table


def read(word: str) -> tuple[str, list[str]]:
    env = Environment(values={"BASE_URL": word})
    return env.read("BASE_URL", BaseUrl("")), env.errors


@table(
    ("word", "address"),
    [
        ("https://memory.example.com", "https://memory.example.com"),
        ("https://memory.example.com:8443/bot", "https://memory.example.com:8443/bot"),
        ("HTTPS://Memory.Example.COM/Bot/", "https://memory.example.com/Bot"),
        (" https://memory.example.com/// ", "https://memory.example.com"),
        ("https://memory.example.com:443", "https://memory.example.com"),
        ("http://memory.example.com:80/a/b-c", "http://memory.example.com/a/b-c"),
        ("http://memory.example.com:443", "http://memory.example.com:443"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://memory.example.com.", "http://memory.example.com"),
        ("http://192.168.1.20:8000/", "http://192.168.1.20:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://[2001:DB8:0:0::1]", "http://[2001:db8::1]"),
        ("https://זיכרון.example", "https://xn--9dbbjiv6c.example"),
        ("https://Bücher.example", "https://xn--bcher-kva.example"),
        ("https://Straße.example", "https://xn--strae-oqa.example"),
        ("https://shop。例え.example", "https://shop.xn--r8jz45g.example"),
        ("https://memory.example.com/bot/admin", "https://memory.example.com/bot/admin"),
    ],
)
def test_an_address_is_kept_as_browsers_send_it(word: str, address: str) -> None:
    assert read(word) == (address, [])


@table(
    ("word", "why"),
    [
        ("memory.example.com", "must begin with https:// or http://"),
        ("localhost:8000", "must begin with https:// or http://"),
        ("//memory.example.com", "must begin with https:// or http://"),
        ("ftp://memory.example.com", "must begin with https:// or http://"),
        ("https:/memory.example.com", "must begin with https:// or http://"),
        ("https://", "must begin with https:// or http://"),
        ("https://me:s3cret@memory.example.com", "must not hold a user name or a password"),
        ("me:s3cret@memory.example.com", "must not hold a user name or a password"),
        ("https://memory.example.com/?next=1", "must not hold a query (?) or a fragment (#)"),
        ("https://memory.example.com/#top", "must not hold a query (?) or a fragment (#)"),
        ("https://memory.example.com:0", "a port from 1 to 65535"),
        ("https://memory.example.com:70000", "a port from 1 to 65535"),
        ("https://memory_1.example.com", "must name a host"),
        ("https://*.example.com", "must name a host"),
        ("https://-memory.example.com", "must name a host"),
        ("https://a..b", "must name a host"),
        ("https://[::1%lo]", "must name a host"),
        ("https://[memory]", "must name a host"),
        ("https://two names.example.com", "must name a host"),
        (f"https://{'a' * 64}.example", "must name a host"),
        ("https://memory.example.com/a//b", "may have a path"),
        ("https://memory.example.com/../bot", "may have a path"),
        ("https://memory.example.com/a b", "may have a path"),
        ("https://memory.example.com/בוט", "may have a path"),
        ("https://memory.example.com/api", "may have a path"),
        ("https://memory.example.com/webhooks/bot", "may have a path"),
    ],
)
def test_another_address_is_refused_in_a_sentence(word: str, why: str) -> None:
    value, errors = read(word)
    assert value == ""
    assert len(errors) == 1
    assert errors[0].startswith("BASE_URL ")
    assert why in errors[0]
    assert "s3cret" not in errors[0]


LOOPBACK = ["localhost", "127.0.0.1", "[::1]"]
NAMES = ("ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", "FORCE_SCRIPT_NAME", "STATIC_URL", "HTTPS_ONLY")
COOKIES = [
    f"{kind}_COOKIE_{what}"
    for kind in ("SESSION", "CSRF", "LANGUAGE")
    for what in ("SECURE", "PATH")
]


@pytest.mark.parametrize(
    ("environment", "followed", "cookies"),
    [
        ({}, [LOOPBACK, ["https://localhost", "https://127.0.0.1"], None, "/static/", False], "/"),
        (
            {
                "BASE_URL": "https://memory.example.com:8443/bot",
                "ALLOWED_HOSTS": "one.example, two",
            },
            [
                ["memory.example.com", "one.example", "two", *LOOPBACK],
                ["https://one.example", "https://two", "https://memory.example.com:8443"],
                "/bot",
                "/bot/static/",
                True,
            ],
            "/bot",
        ),
        (
            {"BASE_URL": "http://[::1]:8000", "TRUSTED_PROXIES": "1"},
            [
                ["[::1]", "localhost", "127.0.0.1"],
                ["https://localhost", "https://127.0.0.1", "http://[::1]:8000"],
                None,
                "/static/",
                False,
            ],
            "/",
        ),
        (
            # As an .env of before BASE_URL has it.
            {"ALLOWED_HOSTS": "memory.example.com", "TRUSTED_PROXIES": "1"},
            [
                ["memory.example.com", *LOOPBACK],
                ["https://memory.example.com"],
                None,
                "/static/",
                True,
            ],
            "/",
        ),
    ],
)
def test_what_follows(
    environment: dict[str, str], followed: list[Any], cookies: str, tmp_path: Path
) -> None:
    code = (
        "import json; from django.conf import settings;"
        f"print(json.dumps([getattr(settings, name) for name in {[*NAMES, *COOKIES]}]))"
    )
    found = json.loads(python("-c", code, folder=tmp_path, check=True, **environment).stdout)
    assert found == [*followed, *[followed[-1], cookies] * 3]


@pytest.mark.parametrize(
    ("address", "https_only", "said"),
    [
        ("https://memory.example.com", True, ""),
        ("http://localhost:8000", False, ""),
        ("http://memory.example.com", False, "memory.example.com, but HTTPS_ONLY is off"),
        ("http://memory.example.com", True, "begins with http://, but HTTPS_ONLY is on"),
        ("https://memory.example.com", False, "begins with https://, but HTTPS_ONLY is off"),
    ],
)
def test_an_address_and_https_only_that_differ_are_told_in_one_sentence(
    address: str, https_only: bool, said: str, settings: Any
) -> None:
    settings.BASE_URL, settings.HTTPS_ONLY = address, https_only
    settings.ALLOWED_HOSTS = ["localhost", "memory.example.com"] if "memory" in address else []
    found = checks.address_fits_https()
    assert len(found) == bool(said)
    assert all(said in each.msg for each in found)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("https://memory.example.com:8443/bot", "no issues"),
        ("http://localhost:8000", "BASE_URL begins with http://: logins"),
        ("", "BASE_URL is not set"),
    ],
)
def test_the_check_of_a_deployment_says_what_is_missing(
    address: str, said: str, tmp_path: Path
) -> None:
    deploy = ("manage.py", "check", "--deploy")
    shown = python(*deploy, folder=tmp_path, check=False, BASE_URL=address)
    assert said in shown.stdout + shown.stderr
    assert "security." not in shown.stderr, "Django's own words don't name our settings"

"""Who may post webhooks: Meta's signature, Green API's token and instance."""

import hashlib
import hmac
import json

from memoryproject.foundation.integrations.whatsapp.cloud.parse import verify_signature
from memoryproject.foundation.integrations.whatsapp.green.parse import verify_token
from tests.tables import table

SECRET = "app-secret"
BODY = b'{"text":"caf\\u00e9"}'


def signed(secret: str = SECRET, body: bytes = BODY) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def test_the_raw_body_is_what_is_signed() -> None:
    assert verify_signature(secret=SECRET, body=BODY, header=signed())
    written_again = json.dumps(json.loads(BODY), ensure_ascii=False).encode()
    assert not verify_signature(secret=SECRET, body=written_again, header=signed())


@table(
    "header",
    [
        None,
        "",
        "sha256=",
        "sha256=00",
        signed()[7:],
        "sha1=" + signed()[7:],
        signed("other"),
        signed(body=BODY + b" "),
        "sha256=" + "é" * 64,
        "sha256=\ud800",
    ],
)
def test_wrong_signatures(header: str | None) -> None:
    assert not verify_signature(secret=SECRET, body=BODY, header=header)


def test_without_a_secret_nothing_is_right() -> None:
    assert not verify_signature(secret="", body=BODY, header=signed(""))


@table("header", ["Bearer t0ken", "Basic t0ken", "t0ken", "  Bearer   t0ken "])
def test_right_tokens(header: str) -> None:
    assert verify_token(expected="t0ken", header=header)


@table(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer t0ke",
        "Bearer t0ken2",
        "Bearer t0ken more",
        "Bearer טוקן",
        "\ud800",
    ],
)
def test_wrong_tokens(header: str | None) -> None:
    assert not verify_token(expected="t0ken", header=header)


def test_a_token_may_be_in_any_alphabet() -> None:
    assert verify_token(expected="סוד", header="Bearer סוד")
    assert not verify_token(expected="סוד", header="Bearer sod")


@table("header", [None, "", "Bearer", "Bearer x"])
def test_without_a_token_nobody_may(header: str | None) -> None:
    assert not verify_token(expected="", header=header)

"""A server on 127.0.0.1 that speaks as much of S3 as files of messages need.

It checks signatures (AWS4-HMAC-SHA256), and keeps earlier versions where ``versioned`` is set.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import format_datetime
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from uuid import uuid4

from memoryproject.foundation.integrations.loopback.httpd import Answer, Request
from tests.loopback.httpd import Fault, FaultyServer

AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<id>[^/]+)/(?P<scope>[^,]+), ?"
    r"SignedHeaders=(?P<headers>[^,]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)
RANGE = re.compile(r"bytes=(\d+)-(\d*)")
MAX_KEYS = 1000


@dataclass
class Version:
    """What was put under a key; None: the mark of its deletion."""

    content: bytes | None
    modified: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    version_id: str = field(default_factory=lambda: uuid4().hex)


class S3Server(FaultyServer):
    """One bucket, named ``bucket``. ``page``: how many keys a listing has at most."""

    bucket = "files"
    key_id = "AKIDEXAMPLE"
    secret = "wJalrXUtnFEMI/not-a-real-key"
    region = "eu-test-1"

    def __init__(self, *, versioned: bool = False, page: int = MAX_KEYS) -> None:
        super().__init__()
        self.versioned = versioned
        self.page = page
        self._keys: dict[str, list[Version]] = {}

    @property
    def objects(self) -> dict[str, bytes]:
        """What can be read."""
        newest = {key: versions[-1].content for key, versions in self._keys.items() if versions}
        return {key: content for key, content in newest.items() if content is not None}

    @property
    def everything(self) -> list[bytes]:
        """What is kept, also of earlier versions."""
        versions = [each for versions in self._keys.values() for each in versions]
        return [each.content for each in versions if each.content is not None]

    def add(self, key: str, content: bytes, *, modified: datetime | None = None) -> None:
        version = Version(content)
        version.modified = modified or version.modified
        self._put(key, version)

    def clear(self) -> None:
        self._keys.clear()

    def age(self, key: str, modified: datetime) -> None:
        """Have an object seem to be put at another time."""
        self._keys[key][-1].modified = modified

    def refuse_next(self, status: int, code: str, *, times: int = 1) -> None:
        """Answer the next requests with an error of S3."""
        for _ in range(times):
            self.fail_next(Fault(answer=error(status, code)))

    def refuse_next_get(self, status: int, code: str, *, times: int = 1) -> None:
        for _ in range(times):
            self.fail_next_get(Fault(answer=error(status, code)))

    def handle(self, request: Request) -> Answer:
        path, query = self._split(request)
        if not self._is_signed(request, path, query):
            return error(403, "SignatureDoesNotMatch")
        bucket, _, key = unquote(path).lstrip("/").partition("/")
        if bucket != self.bucket:
            return error(404, "NoSuchBucket")
        if not key:
            return self._versions_of(query) if "versions" in query else self._list(query)
        if request.method == "PUT":
            self._put(key, Version(request.raw))
            return Answer(200, {}, {"ETag": '"etag"'}, content=b"")
        if request.method == "DELETE":
            return self._delete(key, query.get("versionId", ""))
        return self._read(key, request)

    def _put(self, key: str, version: Version) -> None:
        kept = self._keys.get(key, []) if self.versioned else []
        self._keys[key] = [*kept, version]

    def _delete(self, key: str, version_id: str) -> Answer:
        if version_id:
            kept = [each for each in self._keys.get(key, []) if each.version_id != version_id]
            self._keys[key] = kept
            return Answer(204, {}, {"x-amz-version-id": version_id}, content=b"")
        if not self.versioned:
            self._keys.pop(key, None)
            return Answer(204, {}, content=b"")
        mark = Version(None)
        self._put(key, mark)
        headers = {"x-amz-delete-marker": "true", "x-amz-version-id": mark.version_id}
        return Answer(204, {}, headers, content=b"")

    def _read(self, key: str, request: Request) -> Answer:
        content = self.objects.get(key)
        if content is None:
            return error(404, "NoSuchKey")
        headers = {
            "Content-Type": "application/octet-stream",
            "Last-Modified": format_datetime(self._keys[key][-1].modified, usegmt=True),
            "ETag": '"etag"',
        }
        span = RANGE.fullmatch(request.headers.get("range", ""))
        if span is None:
            headers["Content-Length"] = str(len(content))
            return Answer(200, {}, headers, content=content)
        first, last = int(span[1]), min(int(span[2] or len(content)), len(content) - 1)
        if first > last:
            return error(416, "InvalidRange")
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        return Answer(206, {}, headers, content=content[first : last + 1])

    def _list(self, query: dict[str, str]) -> Answer:
        prefix, after = query.get("prefix", ""), query.get("continuation-token", "")
        found = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
        direct = [key for key in found if "/" not in key.removeprefix(prefix)]
        page = direct[: self.page]
        more = len(direct) > len(page)
        entries = "".join(
            f"<Contents><Key>{key}</Key><LastModified>"
            f"{self._keys[key][-1].modified.isoformat()}</LastModified></Contents>"
            for key in page
        )
        following = f"<NextContinuationToken>{page[-1]}</NextContinuationToken>" if more else ""
        return xml(
            f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>"
            f"{following}{entries}</ListBucketResult>"
        )

    def _versions_of(self, query: dict[str, str]) -> Answer:
        entries = "".join(
            f"<{kind}><Key>{key}</Key><VersionId>{each.version_id}</VersionId></{kind}>"
            for key, versions in sorted(self._keys.items())
            if key.startswith(query.get("prefix", ""))
            for each in versions
            for kind in ["DeleteMarker" if each.content is None else "Version"]
        )
        return xml(
            f"<ListVersionsResult><IsTruncated>false</IsTruncated>{entries}</ListVersionsResult>"
        )

    @staticmethod
    def _split(request: Request) -> tuple[str, dict[str, str]]:
        parts = urlsplit(request.path)
        return parts.path, dict(parse_qsl(parts.query, keep_blank_values=True))

    def _is_signed(self, request: Request, path: str, query: dict[str, str]) -> bool:
        found = AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
        if found is None or found["id"] != self.key_id:
            return False
        stated = request.headers.get("x-amz-content-sha256", "")
        if stated != hashlib.sha256(request.raw).hexdigest():
            return False
        pairs = [f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in query.items()]
        names = found["headers"].split(";")
        heads = "".join(f"{name}:{request.headers.get(name, '').strip()}\n" for name in names)
        canonical = "\n".join(
            [request.method, path, "&".join(sorted(pairs)), heads, found["headers"], stated]
        )
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        when = request.headers.get("x-amz-date", "")
        text = "\n".join(["AWS4-HMAC-SHA256", when, found["scope"], digest])
        key = f"AWS4{self.secret}".encode()
        for part in (when[:8], self.region, "s3", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        return hmac.compare_digest(signature, found["signature"])


def xml(text: str, status: int = 200) -> Answer:
    return Answer(
        status,
        {},
        {"Content-Type": "application/xml"},
        content=f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode(),
    )


def error(status: int, code: str) -> Answer:
    return xml(f"<Error><Code>{code}</Code><Message>refused</Message></Error>", status)

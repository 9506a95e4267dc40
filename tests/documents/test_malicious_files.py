"""A malicious file gets a clear refusal and harms nothing: the sandbox's limits are real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from memoryproject.foundation.integrations.documents import sandbox
from memoryproject.foundation.integrations.documents.sandbox import SandboxExtractor
from memoryproject.foundation.integrations.documents.sniffing import DocumentError, DocumentLimits
from tests.documents import files

# Each file is read by a process of its own.
pytestmark = pytest.mark.slow

LIMITS = DocumentLimits(seconds=20, memory=512 * 1024 * 1024)
DTD = b'<!DOCTYPE w [<!ENTITY secret SYSTEM "file:///etc/hostname">]>'
LAUGHS = (
    b"<!DOCTYPE w [<!ENTITY a0 'ha'>"
    + b"".join(b"<!ENTITY a%d '%s'>" % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 12))
    + b"]>"
)
ZEROS = bytes(10 * 1024 * 1024)


def refusal(content: bytes, tmp_path: Path, limits: DocumentLimits = LIMITS) -> DocumentError:
    path = tmp_path / "uploaded"
    path.write_bytes(content)
    # Other tests of the same run may keep servers for as long as it lasts.
    before = set(psutil.Process().children())
    with pytest.raises(DocumentError) as caught:
        SandboxExtractor(limits).extract(path)
    assert set(psutil.Process().children()) <= before, "no child is left"
    return caught.value


# Each is made when its test runs.
MALICIOUS: dict[str, tuple[Callable[[], bytes], str]] = {
    "bomb": (lambda: files.bomb_pdf(300), "too_much_memory damaged too_long"),
    "looping pages": (files.looping_pdf, "no_text damaged"),
    "looping form": (files.self_referencing_pdf, "no_text damaged"),
    "many pages": (lambda: files.many_pages_pdf(100_000), "too_many_pages"),
    "word bomb": (lambda: files.docx_with(b" " * 120_000_000), "too_much_memory"),
    "word bomb that lies": (
        lambda: files.understated(files.docx_with(b" " * 120_000_000), claimed=1000),
        "damaged too_much_memory",
    ),
    "many large parts": (
        lambda: files.docx_with(
            files.paragraph("x"), more={f"word/media/{n}.bin": ZEROS for n in range(40)}
        ),
        "too_much_memory",
    ),
    "xxe": (lambda: files.docx_with(files.paragraph("&secret;"), head=DTD), "damaged"),
    "laughs": (lambda: files.docx_with(files.paragraph("&a11;"), head=LAUGHS), "damaged"),
    "deep xml": (lambda: files.docx_with(b"<w:sdt>" * 50_000 + b"</w:sdt>" * 50_000), "damaged"),
}


@pytest.mark.parametrize("kind", MALICIOUS)
def test_a_malicious_file_is_refused(kind: str, tmp_path: Path) -> None:
    make, codes = MALICIOUS[kind]
    assert refusal(make(), tmp_path).code in codes.split()


def test_limits_of_size_pages_and_text(tmp_path: Path) -> None:
    assert refusal(b"x" * 101, tmp_path, replace(LIMITS, size=100)).code == "too_large"
    two = files.pdf("one", "two")
    assert refusal(two, tmp_path, replace(LIMITS, pages=1)).code == "too_many_pages"
    assert refusal(b"x " * 60, tmp_path, replace(LIMITS, characters=100)).code == "too_long"
    three = files.pdf("one two three")
    assert refusal(three, tmp_path, replace(LIMITS, characters=5)).code == "too_long"


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    error = refusal(files.pdf("TestCorp"), tmp_path, replace(LIMITS, seconds=0.01))
    assert error.code == "too_slow"


def test_too_little_memory_is_told(tmp_path: Path) -> None:
    error = refusal(files.pdf("TestCorp"), tmp_path, replace(LIMITS, memory=30 * 1024 * 1024))
    assert error.code in {"too_much_memory", "damaged", "unavailable"}


INSIDE = """
import json, os, sys
from memoryproject.foundation.integrations.documents import child
child.confine(seconds=5, memory=512 * 1024 * 1024)
told = {"environment": sorted(os.environ)}
try:
    with open("harm.txt", "w") as file:
        file.write("harm")
    told["wrote"] = True
except OSError as error:
    told["wrote"] = False
try:
    bytearray(1024**3)
    told["took"] = True
except MemoryError:
    told["took"] = False
print(json.dumps(told))
"""


def test_the_child_writes_no_files_and_gets_no_more_memory(tmp_path: Path) -> None:
    project = Path(sandbox.__file__).resolve().parents[4]
    done = subprocess.run(
        [sys.executable, "-c", INSIDE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    assert told["wrote"] is False
    if sys.platform == "linux":
        assert told["took"] is False

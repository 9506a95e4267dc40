"""Read documents in a separate process with little memory and time.

The process writes no files and has no secrets, so a malicious file can harm only that process.
"""

import json
import logging
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import memoryproject
from memoryproject.foundation.errors.stored_errors import error_from_column
from memoryproject.foundation.integrations.documents import sniffing
from memoryproject.foundation.process.narrowing import present

logger = logging.getLogger(__name__)

_PROJECT = Path(memoryproject.__file__).resolve().parent.parent
_CHILD = "memoryproject.foundation.integrations.documents.child"
# Variables that a Python with a custom build needs to start. None of them is a secret.
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")
_BLOCK = 65_536
# A character takes at most twelve bytes of JSON (two escapes). The rest is small.
_BYTES_A_CHARACTER = 12
_SPARE_BYTES = 1_000_000


class SandboxExtractor:
    """A TextExtractor for files from any source."""

    def __init__(self, limits: sniffing.DocumentLimits | None = None) -> None:
        self.limits = limits or sniffing.DocumentLimits()

    def extract(self, path: Path) -> sniffing.ExtractedText:
        """See TextExtractor.extract. The child is killed by its own id when its time is over."""
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > self.limits.size:
                raise sniffing.DocumentError("too_large")
            child = subprocess.Popen(  # noqa: S603 our own module, no input in it
                self._command(),
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=_PROJECT,
                env={name: os.environ[name] for name in _KEPT if name in os.environ},
                start_new_session=True,
            )
        with child:
            try:
                answer = self._answer_of(child)
            except subprocess.TimeoutExpired:
                raise sniffing.DocumentError("too_slow") from None
            finally:
                child.kill()
        return _result(answer, child)

    def _command(self) -> list[str]:
        limits = self.limits
        numbers = (limits.size, limits.pages, limits.seconds, limits.memory, limits.characters)
        return [*(sys.executable, "-E", "-s", "-B", "-X", "utf8", "-m", _CHILD), *map(str, numbers)]

    def _answer_of(self, child: subprocess.Popen[bytes]) -> bytes:
        """Return the child's output.

        Raises DocumentError when the child takes too long or writes too much.
        """
        output = present(child.stdout)
        most = self.limits.characters * _BYTES_A_CHARACTER + _SPARE_BYTES
        deadline = time.monotonic() + self.limits.seconds
        blocks: list[bytes] = []
        size = 0
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while selector.select(max(0.0, deadline - time.monotonic())):
                block = os.read(output.fileno(), _BLOCK)
                if not block:
                    child.wait(timeout=self.limits.seconds)
                    return b"".join(blocks)
                blocks.append(block)
                size += len(block)
                if size > most:
                    raise sniffing.DocumentError("too_long")
        raise sniffing.DocumentError("too_slow")


def _result(answer: bytes, child: subprocess.Popen[bytes]) -> sniffing.ExtractedText:
    """Return the text from the child's output. Raises DocumentError."""
    if child.returncode in (-signal.SIGXCPU, -signal.SIGALRM):
        raise sniffing.DocumentError("too_slow")
    try:
        result: dict[str, Any] = json.loads(answer)
    except ValueError:
        # Killed by the system, or by the effect of the file on a library.
        logger.warning("Reading a document ended with code %s.", child.returncode)
        code = "too_much_memory" if child.returncode == -signal.SIGKILL else "damaged"
        raise sniffing.DocumentError(code) from None
    if "found" in result:
        found = result["found"]
        found["sections"] = [sniffing.Section(**section) for section in found["sections"]]
        found["warnings"] = [error_from_column(warning) for warning in found["warnings"]]
        return sniffing.ExtractedText(**found)
    raise _refusal(result)


def _refusal(result: dict[str, Any]) -> sniffing.DocumentError:
    code = str(result.get("code"))
    code = code if code in sniffing.REASONS else "damaged"
    if code == "unavailable":
        logger.error("Documents can't be read here: %s", result.get("detail"))
    detail = error_from_column(str(result.get("detail", "")))
    return sniffing.DocumentError(code, detail, permanent=code != "unavailable")

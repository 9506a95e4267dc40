"""The child process: `python -m memoryproject.foundation.integrations.documents.child`.

It sets its limits before it loads any library, reads the document from standard input and writes
one JSON object to standard output. Its arguments are the fields of DocumentLimits, in their order.
"""

import json
import math
import resource
import signal
import sys
from contextlib import suppress
from dataclasses import asdict

# A worker that is killed can't end its child. The child ends itself a little after its time limit.
GRACE_SECONDS = 5


def main(arguments: list[str]) -> None:
    size, pages, seconds, memory, characters = arguments
    confine(seconds=float(seconds), memory=int(memory))
    answer = _read(int(size), int(pages), int(characters))
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()


def confine(*, seconds: float, memory: int) -> None:
    """Limit the memory, time, files and processes of this process.

    If a system doesn't support one of the limits (macOS: address space), the others still apply.
    """
    whole = math.ceil(seconds)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(whole + GRACE_SECONDS)
    wanted = {
        "RLIMIT_AS": memory,
        "RLIMIT_CPU": whole,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": 64,
        "RLIMIT_NPROC": 0,
    }
    for name, value in wanted.items():
        kind = getattr(resource, name, None)
        if kind is not None:
            with suppress(ValueError, OSError):
                resource.setrlimit(kind, (value, value))


def _read(size: int, pages: int, characters: int) -> dict[str, object]:
    """Return the text, or the reason why there is none.

    Any exception of a library means a broken file.
    """
    try:
        # Imported after the limits are set.
        from memoryproject.foundation.errors.stored_errors import error_to_column  # noqa: PLC0415
        from memoryproject.foundation.integrations.documents.read_document import read_document  # noqa: PLC0415
        from memoryproject.foundation.integrations.documents.sniffing import (  # noqa: PLC0415
            DocumentError,
            DocumentLimits,
        )

        limits = DocumentLimits(size=size, pages=pages, characters=characters)
        try:
            found = asdict(read_document(sys.stdin.buffer.read(size + 1), limits))
            found["warnings"] = [error_to_column(warning) for warning in found["warnings"]]
            return {"found": found}
        except DocumentError as error:
            return {"code": error.code, "detail": error_to_column(error.detail)}
    except MemoryError:
        return {"code": "too_much_memory"}
    except ImportError as error:
        return {"code": "unavailable", "detail": f"{error}"}
    except Exception as error:
        return {"code": "damaged", "kind": type(error).__name__}


if __name__ == "__main__":
    main(sys.argv[1:])

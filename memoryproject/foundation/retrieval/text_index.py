"""An index of texts in memory: their words and their vectors, as arrays. Pure.

A segment is immutable and holds some texts in rows. It has postings (the rows of each term), the
terms of each row, a vector of small integers for each row, and its binary code. A term is stored as
its hash, which is salted for each process: the index holds no readable text.

A code has one bit for each number of a vector, its sign. The Hamming distance of two codes
estimates the angle between their vectors (Charikar, "Similarity estimation techniques from rounding
algorithms", 2002), so the nearest codes are the candidates whose cosines are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.int64]
Hashes: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]

MAX_COUNT = 255
_STEPS = 127.0
# So many codes fit into a processor's cache.
_BLOCK = 8_192
# A term of more than one in so many rows is frequent: its rows take less memory as bits.
_FREQUENT = 32
# The distance of a text without a vector.
NO_VECTOR = np.iinfo(np.uint16).max


def hashes_of(texts: Sequence[str]) -> Hashes:
    """Return a 64-bit hash of each text. It differs between processes."""
    return np.fromiter(map(hash, texts), np.int64, len(texts))


@dataclass(frozen=True)
class Vectors:
    """Vectors of one length as small integers, with their binary codes.

    ``steps``: one row of integers for each text. ``scales``: what one step is worth in a vector of
    length 1, and 0.0 for a text without a vector. ``codes``: one column of 64-bit numbers for each.
    """

    steps: NDArray[np.int8]
    scales: NDArray[np.float32]
    codes: NDArray[np.uint64]

    @classmethod
    def of(cls, vectors: NDArray[np.float32], known: Mask) -> Vectors:
        """Return the vectors of the ``known`` rows, in their order; the others have none."""
        dimensions = vectors.shape[1]
        steps = np.zeros((len(known), dimensions), np.int8)
        scales = np.zeros(len(known), np.float32)
        codes = np.zeros((-(-dimensions // 64), len(known)), np.uint64)
        largest = np.abs(vectors).max(axis=1, initial=0.0)
        length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        largest[largest == 0], length[length == 0] = 1.0, 1.0
        steps[known] = np.rint(vectors * (_STEPS / largest)[:, None]).astype(np.int8)
        scales[known] = largest / _STEPS / length
        codes[:, known] = codes_of(vectors).T
        return cls(steps, scales, codes)

    @classmethod
    def none(cls, rows: int, dimensions: int = 0) -> Vectors:
        return cls.of(np.empty((0, dimensions), np.float32), np.zeros(rows, bool))

    @property
    def dimensions(self) -> int:
        return self.steps.shape[1]

    def taken(self, rows: Any) -> Vectors:
        codes = np.ascontiguousarray(self.codes[:, rows])
        return Vectors(self.steps[rows], self.scales[rows], codes)


@dataclass(frozen=True, eq=False)
class Segment:
    """Some texts, each in one row.

    ``keys``: the two halves of each text's id. ``lengths``: in words. ``columns``: further values
    of each text. ``terms``: the hashes of all terms, sorted. ``row_starts``: where the terms of
    each row start in ``row_terms`` (their places in ``terms``, sorted) and ``row_counts``, and the
    end of the last. ``starts``: likewise for each term in ``postings``, which are rows in order.
    """

    keys: NDArray[np.uint64]
    lengths: NDArray[np.int32]
    columns: NDArray[np.void]
    vectors: Vectors
    terms: Hashes
    row_starts: NDArray[np.int64]
    row_terms: NDArray[np.int32]
    row_counts: NDArray[np.uint8]
    starts: NDArray[np.int64]
    postings: NDArray[np.int32]

    @classmethod
    def of(
        cls,
        *,
        keys: NDArray[np.uint64],
        lengths: NDArray[np.int32],
        columns: NDArray[np.void],
        vectors: Vectors,
        hashes: Hashes,
        sizes: NDArray[np.int64],
    ) -> Segment:
        """Return the segment of these texts.

        hashes: those of the terms of the first text, repeated as often as they occur, then those of
        the second. sizes: the number of them that each text has.
        """
        terms, number = np.unique(hashes, return_inverse=True)
        width = max(len(terms), 1)
        rows = np.repeat(np.arange(len(sizes)), sizes)
        pairs, counts = np.unique(rows * width + number, return_counts=True)
        row, row_terms = np.divmod(pairs, width)
        return cls.indexed(
            keys, lengths, columns, vectors, terms, row, row_terms, np.minimum(counts, MAX_COUNT)
        )

    @classmethod
    def indexed(
        cls,
        keys: NDArray[np.uint64],
        lengths: NDArray[np.int32],
        columns: NDArray[np.void],
        vectors: Vectors,
        terms: Hashes,
        row: NDArray[Any],
        row_terms: NDArray[Any],
        counts: NDArray[Any],
    ) -> Segment:
        """Add the postings. ``row`` is sorted; the places of each row's terms are sorted."""
        # Sorting numbers takes a tenth of the time that sorting their places takes.
        rows = max(len(keys), 1)
        by_term, postings = np.divmod(np.sort(row_terms.astype(np.int64) * rows + row), rows)
        return cls(
            keys=keys,
            lengths=lengths,
            columns=columns,
            vectors=vectors,
            terms=terms,
            row_starts=np.searchsorted(row, np.arange(len(keys) + 1)),
            row_terms=row_terms.astype(np.int32),
            row_counts=counts.astype(np.uint8),
            starts=np.searchsorted(by_term, np.arange(len(terms) + 1)),
            postings=postings.astype(np.int32),
        )

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def nbytes(self) -> int:
        """The memory that its arrays take, and the rows of frequent terms as bits."""
        held = [getattr(part, name.name) for part in (self, self.vectors) for name in fields(part)]
        arrays = sum(part.nbytes for part in held if isinstance(part, np.ndarray))
        frequent = np.count_nonzero(np.diff(self.starts) * _FREQUENT > len(self))
        return arrays + int(frequent * len(self) // 8)

    @cached_property
    def words(self) -> int:
        """The number of words of all texts."""
        return int(self.lengths.sum())

    @cached_property
    def _bitmaps(self) -> dict[int, NDArray[np.uint8]]:
        """The rows of frequent terms that were asked for, as bits, by the places of the terms."""
        return {}

    @cached_property
    def _without_vector(self) -> Rows:
        return np.flatnonzero(self.vectors.scales == 0)

    @cached_property
    def _by_key(self) -> NDArray[np.int32]:
        return np.lexsort((self.keys[:, 1], self.keys[:, 0])).astype(np.int32)

    def rows_of(self, keys: NDArray[np.uint64]) -> Rows:
        """Return the row of each of these keys; -1 for one that isn't here."""
        if not len(self):
            return np.full(len(keys), -1)
        halves, last = self.keys[:, 0], len(self) - 1
        at = np.minimum(np.searchsorted(halves, keys[:, 0], sorter=self._by_key), last)
        while True:
            rows: Rows = self._by_key[at].astype(np.int64)
            # Random ids never share a half, others may: go on to the one with the same second half.
            earlier = (halves[rows] == keys[:, 0]) & (self.keys[rows, 1] < keys[:, 1]) & (at < last)
            if not earlier.any():
                return np.where((self.keys[rows] == keys).all(axis=1), rows, -1)
            at = at + earlier

    def without(self, rows: Rows) -> Segment:
        """Return the segment without these rows: nothing of them is kept."""
        kept = ~self._marks(rows)
        row = np.repeat(np.arange(len(self)), np.diff(self.row_starts))
        here = kept[row]
        row_terms = self.row_terms[here]
        used = np.bincount(row_terms, minlength=len(self.terms)) > 0
        return self.indexed(
            self.keys[kept],
            self.lengths[kept],
            self.columns[kept],
            self.vectors.taken(kept),
            self.terms[used],
            (np.cumsum(kept) - 1)[row[here]],
            (np.cumsum(used) - 1)[row_terms],
            self.row_counts[here],
        )

    def places_of(self, hashes: Hashes) -> tuple[Rows, Mask]:
        """Return the places of these terms in ``terms``, and whether they are there."""
        if not len(self.terms):
            return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), bool)
        places = np.minimum(np.searchsorted(self.terms, hashes), len(self.terms) - 1)
        return places, self.terms[places] == hashes

    def postings_of(self, hashes: Hashes) -> list[tuple[int, NDArray[np.int32]]]:
        """Return the rows of each of these terms that is there, with the term's number."""
        places, known = self.places_of(hashes)
        return [
            (number, self.postings[self.starts[places[number]] : self.starts[places[number] + 1]])
            for number in np.flatnonzero(known).tolist()
        ]

    def bits_of(self, rows: Rows, hashes: Hashes, bits: NDArray[Any]) -> NDArray[Any]:
        """Return the bits of those of these terms that each row holds, combined."""
        found = np.zeros(len(rows), bits.dtype)
        places, known = self.places_of(hashes)
        for number in np.flatnonzero(known).tolist():
            found |= self._hold(rows, int(places[number])) * bits[number]
        return found

    def _hold(self, rows: Rows, place: int) -> Mask:
        """Return which of these rows hold the term at this place."""
        postings = self.postings[self.starts[place] : self.starts[place + 1]]
        if len(postings) * _FREQUENT > len(self):
            if (bitmap := self._bitmaps.get(place)) is None:
                bitmap = self._bitmaps[place] = np.packbits(self._marks(postings))
            if len(rows) * 16 > len(self):
                return np.unpackbits(bitmap).view(bool).take(rows)
            return (bitmap.take(rows >> 3) << (rows & 7) & 128).astype(bool)
        if len(rows) * 16 > len(postings):
            return self._marks(postings).take(rows)
        at = np.minimum(np.searchsorted(postings, rows), len(postings) - 1)
        return postings[at] == rows

    def _marks(self, rows: NDArray[Any]) -> Mask:
        marks = np.zeros(len(self), bool)
        marks[rows] = True
        return marks

    def or_bits(self, found: NDArray[Any], hashes: Hashes, bits: NDArray[Any]) -> None:
        """Add to ``found`` the bits of each term that a row holds."""
        for number, postings in self.postings_of(hashes):
            # A row holds a term once, so that no row is there twice.
            rows = postings.astype(np.int64)
            found[rows] = found.take(rows) | bits[number]

    def counts_of(self, rows: Rows, hashes: Hashes) -> Floats:
        """Return how often each row holds each term: one column for each."""
        found = np.zeros((len(rows), len(hashes)))
        places, known = self.places_of(hashes)
        if not len(rows) or not known.any():
            return found
        columns = np.full(len(self.terms), -1, np.int16)
        columns[places[known]] = np.flatnonzero(known)
        at, owner = ranges(self.row_starts[rows], self.row_starts[rows + 1])
        column = columns.take(self.row_terms.take(at))
        held = np.flatnonzero(column >= 0)
        found[owner.take(held), column.take(held)] = self.row_counts.take(at.take(held))
        return found

    def distances(self, code: NDArray[np.uint64]) -> NDArray[np.uint16]:
        """Return the number of bits in which the code of each row differs from this one."""
        codes = self.vectors.codes
        found = np.full(len(self), NO_VECTOR, np.uint16)
        if len(codes) == len(code) and len(self._without_vector) < len(self):
            for start in range(0, len(self), _BLOCK):
                other = np.bitwise_count(codes[:, start : start + _BLOCK] ^ code[:, None])
                other.sum(axis=0, dtype=np.uint16, out=found[start : start + _BLOCK])
            found[self._without_vector] = NO_VECTOR
        return found


def codes_of(vectors: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the binary codes of vectors: one row of 64-bit numbers for each."""
    packed = np.packbits(vectors > 0, axis=1)
    codes = np.zeros((len(vectors), -(-packed.shape[1] // 8)), np.uint64)
    codes.view(np.uint8)[:, : packed.shape[1]] = packed
    return codes


def ranges(starts: NDArray[Any], ends: NDArray[Any]) -> tuple[Rows, Rows]:
    """Return the numbers of all ranges, one after the other, and for each that of its range."""
    sizes = ends - starts
    owner = np.repeat(np.arange(len(sizes)), sizes)
    before = np.cumsum(sizes) - sizes
    return np.arange(len(owner)) + np.repeat(starts - before, sizes), owner


class TextIndex:
    """Segments that are searched as one: the rows of the first, then those of the second."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = tuple(segments)
        self._first = np.cumsum([0, *(len(segment) for segment in segments)])

    def __len__(self) -> int:
        return int(self._first[-1])

    def lengths_of(self, rows: Rows) -> NDArray[np.int32]:
        """Return the lengths of these texts in words."""
        nothing = np.empty(0, np.int32)
        return self.gathered(rows, lambda part, local: part.lengths.take(local), nothing)

    def keys_of(self, rows: Rows) -> NDArray[np.uint64]:
        """Return the two halves of the ids of these texts."""
        nothing = np.empty((0, 2), np.uint64)
        return self.gathered(rows, lambda part, local: part.keys.take(local, axis=0), nothing)

    def columns_of(self, rows: Rows) -> NDArray[np.void]:
        """Return the further values of these texts. There is at least one segment."""
        nothing = self.segments[0].columns[:0]
        return self.gathered(rows, lambda part, local: part.columns.take(local), nothing)

    def marked(self, mark: Callable[[Segment], Mask]) -> Mask:
        """Return the mask of all texts that consists of one for each segment."""
        return self._concatenated([mark(segment) for segment in self.segments], bool)

    @staticmethod
    def _concatenated(parts: Sequence[NDArray[Any]], kind: Any) -> NDArray[Any]:
        return np.concatenate(parts) if parts else np.empty(0, kind)

    def rows_of(self, keys: NDArray[np.uint64]) -> Rows:
        """Return the rows of these keys, without those that aren't here, in no order."""
        found = []
        for segment, first in zip(self.segments, self._first, strict=False):
            rows = segment.rows_of(keys)
            found.append(rows[rows >= 0] + first)
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def bits(self, terms: Mapping[str, int], *, most: int = 0) -> NDArray[Any]:
        """Return for each text the bits of the terms that it holds, combined.

        most: the numbers have room for it, too.
        """
        highest = max([most, *terms.values()]).bit_length()
        kind = np.uint16 if highest <= 16 else np.uint32 if highest <= 32 else np.uint64
        found = np.zeros(len(self), kind)
        hashes = hashes_of(list(terms))
        values = np.array(list(terms.values()), kind)
        for segment, first in zip(self.segments, self._first, strict=False):
            segment.or_bits(found[first : first + len(segment)], hashes, values)
        return found

    def counts_of(self, rows: Rows, terms: Sequence[str]) -> Floats:
        """Return how often these texts hold these terms: one row for each text."""
        hashes = hashes_of(terms)
        nothing = np.zeros((0, len(terms)))
        return self.gathered(rows, lambda part, local: part.counts_of(local, hashes), nothing)

    def known(self, terms: Sequence[str]) -> list[str]:
        """Return those of the terms that any text holds."""
        hashes = hashes_of(terms)
        known = np.logical_or.reduce([part.places_of(hashes)[1] for part in self.segments])
        return [terms[place] for place in np.flatnonzero(known).tolist()]

    def distances(self, vector: Sequence[float]) -> NDArray[np.uint16]:
        """Return how far each code is from that of the vector, ``NO_VECTOR`` for a text without."""
        (code,) = codes_of(np.array([vector], np.float32))
        return self._concatenated([part.distances(code) for part in self.segments], np.uint16)

    def cosines(self, rows: Rows, vectors: Sequence[Sequence[float] | None]) -> Floats:
        """Return the cosines of these texts to the vectors: one row for each text.

        They differ from the exact ones by less than 0.01. NaN without a vector of the text, or
        where the vector is None.
        """
        nothing = np.full((len(rows), len(vectors)), np.nan)
        given = [place for place, vector in enumerate(vectors) if vector is not None]
        if not given or not len(rows):
            return nothing
        wanted = np.array([vectors[place] for place in given], np.float32)
        # Several times as fast as ``np.linalg.norm``.
        length = np.sqrt(np.einsum("ij,ij->i", wanted, wanted))
        wanted = (wanted / np.where(length > 0, length, 1.0)[:, None]).astype(np.float64)

        def cosines(segment: Segment, local: Rows) -> Floats:
            found = np.full((len(local), len(vectors)), np.nan)
            if segment.vectors.dimensions == wanted.shape[1]:
                # How a product is rounded depends on the row's place: equal texts shall be equal.
                near = segment.vectors.steps.take(local, axis=0).astype(np.float64) @ wanted.T
                scales = segment.vectors.scales.take(local)
                near = (near * scales[:, None]).round(6)
                near[scales == 0] = np.nan
                found[:, given] = near
            return found

        return self.gathered(rows, cosines, nothing)

    def gathered(
        self,
        rows: Rows,
        part: Callable[[Segment, Rows], NDArray[Any]],
        nothing: NDArray[Any],
    ) -> NDArray[Any]:
        """Return what ``part`` returns for the rows of each segment, in the order of ``rows``.

        nothing: what is returned if there is no segment.
        """
        if not self.segments:
            return nothing
        if len(self.segments) == 1:
            return part(self.segments[0], rows)
        owner = np.searchsorted(self._first, rows, side="right") - 1
        which = [np.flatnonzero(owner == number) for number in range(len(self.segments))]
        found = np.concatenate(
            [
                part(segment, rows[mine] - first)
                for segment, mine, first in zip(self.segments, which, self._first, strict=False)
            ]
        )
        return found.take(np.argsort(np.concatenate(which)), axis=0)

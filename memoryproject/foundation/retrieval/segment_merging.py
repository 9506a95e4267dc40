"""Merge segments of an index of texts in memory. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memoryproject.foundation.retrieval.text_index import Segment, Vectors


def merged(segments: Sequence[Segment]) -> Segment:
    """Return one segment with the rows of all, in order."""
    terms = np.unique(np.concatenate([segment.terms for segment in segments]))
    first = np.cumsum([0, *(len(segment) for segment in segments)])
    rows, row_terms = [], []
    for segment, start in zip(segments, first, strict=False):
        places = np.searchsorted(terms, segment.terms)
        rows.append(np.repeat(np.arange(len(segment)) + start, np.diff(segment.row_starts)))
        row_terms.append(places[segment.row_terms])
    return Segment.indexed(
        np.concatenate([segment.keys for segment in segments]),
        np.concatenate([segment.lengths for segment in segments]),
        np.concatenate([segment.columns for segment in segments]),
        _joined([segment.vectors for segment in segments]),
        terms,
        np.concatenate(rows),
        np.concatenate(row_terms),
        np.concatenate([segment.row_counts for segment in segments]),
    )


def _joined(vectors: Sequence[Vectors]) -> Vectors:
    dimensions = max(each.dimensions for each in vectors)
    # A segment without any vector has zeros.
    wide = [
        each if each.dimensions == dimensions else Vectors.none(len(each.scales), dimensions)
        for each in vectors
    ]
    return Vectors(
        np.concatenate([each.steps for each in wide]),
        np.concatenate([each.scales for each in wide]),
        np.concatenate([each.codes for each in wide], axis=1),
    )

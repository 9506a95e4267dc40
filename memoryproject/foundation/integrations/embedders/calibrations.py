"""How far each embedding model's cosines can be trusted. Wordllama's numbers are those that
``benchmarks/calibrate_recall.py`` fits, rounded. The others are estimates from what is known of
the models' cosines, not measured here."""

from __future__ import annotations

from memoryproject.foundation.integrations.embedders.base import Calibration

WORDLLAMA_256 = Calibration(midpoint=0.31, slope=10.0)
HASHING = Calibration(midpoint=0.30, slope=12.0)

# Of the potion models; each model's row in the admin can be corrected.
MODEL2VEC = Calibration(midpoint=0.35, slope=10.0)

OPENAI_DEFAULT = Calibration(midpoint=0.35, slope=14.0)
OPENAI: dict[str, Calibration] = {
    "text-embedding-3-small": Calibration(midpoint=0.35, slope=14.0),
    "text-embedding-3-large": Calibration(midpoint=0.35, slope=14.0),
    # Its cosines hardly go below 0.7, whatever the texts.
    "text-embedding-ada-002": Calibration(midpoint=0.80, slope=40.0),
}

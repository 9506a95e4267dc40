"""Public face of extraction: what other packages may use."""

from sessions_app.extraction.doubts import calendar_numbers, numbers_stand
from sessions_app.extraction.extract import chat_learn
from sessions_app.extraction.extraction_claims import (
    extraction_repeat,
    extraction_request,
    extractions_abandoned,
)
from sessions_app.extraction.fact_store import NOTHING_LEARNED
from sessions_app.extraction.passage import forms_of, without_marks, words_of
from sessions_app.extraction.source_text import turn_with_merged
from sessions_app.extraction.statement_words import NUMBER_WORDS

"""Text analysis for recall, in any language: words, their stems and their variants.

``terms`` makes the index terms of a stored text, ``query`` the terms of a question.
"""

"""Text analysis for recall, in any language: words out of text, their stems and variants.

``terms`` says what a stored text is indexed under, ``query`` what a question looks for.
"""

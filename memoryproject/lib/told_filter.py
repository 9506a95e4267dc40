"""``{{ text|told }}`` in templates."""

from __future__ import annotations

from django import template

from memoryproject.lib.told import told

register = template.Library()
register.filter("told", told)

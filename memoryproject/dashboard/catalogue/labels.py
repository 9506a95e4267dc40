"""Names of models, of fields and of their choices, and what fields are for, in staff's language.

Django makes most of them from the names in the code ("whatsapp chat"). They are looked up in the
catalogue when they are shown; ``model_labels`` lists them, so that the catalogue has them. It is
written by ``manage.py list_labels``.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.apps import apps
from django.db.models import Field, Model
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

# Whose models staff see; Django's own are translated by Django.
APPS = (
    "sessions_app",
    "memories_app",
    "cards_app",
    "audit",
    "api",
    "hooks",
    "dashboard",
    "django_q",
)


def labels_translate() -> None:
    """Make every plain name a lazy one. What is lazy already is left alone."""
    for label in APPS:
        config = apps.get_app_config(label)
        if not isinstance(config.verbose_name, Promise):
            config.verbose_name = gettext_lazy(config.verbose_name)
    for model in _models():
        options = model._meta
        if "verbose_name_plural" not in options.original_attrs:
            # Django's own plural is lazy too, but puts an "s" behind the English name.
            options.verbose_name_plural = str(options.verbose_name_plural)
        for name in ("verbose_name", "verbose_name_plural"):
            if not isinstance(getattr(options, name), Promise):
                setattr(options, name, gettext_lazy(getattr(options, name)))
        for field in _fields(model):
            if not isinstance(field.verbose_name, Promise):
                field.verbose_name = gettext_lazy(field.verbose_name)
            if field.help_text and not isinstance(field.help_text, Promise) and _is_ours(model):
                field.help_text = gettext_lazy(field.help_text)
            if field.choices:
                field.choices = [
                    (value, label if isinstance(label, Promise) else gettext_lazy(str(label)))
                    for value, label in field.flatchoices
                ]


def labels() -> list[str]:
    """Every such name, in English, once and in order."""
    with_names = {str(apps.get_app_config(label).verbose_name) for label in APPS}
    for model in _models():
        with_names |= {str(model._meta.verbose_name), str(model._meta.verbose_name_plural)}
        with_names |= {str(field.verbose_name) for field in _fields(model)}
        if _is_ours(model):
            with_names |= {str(field.help_text) for field in _fields(model) if field.help_text}
        for field in _fields(model):
            with_names |= {str(label) for _, label in field.flatchoices or ()}
    return sorted(with_names)


def _models() -> Iterator[type[Model]]:
    for label in APPS:
        yield from apps.get_app_config(label).get_models(include_auto_created=False)


def _is_ours(model: type[Model]) -> bool:
    """What a package's fields are for, only programmers ask."""
    return model._meta.app_label != "django_q"


def _fields(model: type[Model]) -> Iterator[Field]:  # type: ignore[type-arg]
    yield from (*model._meta.local_fields, *model._meta.local_many_to_many)

"""The fields of answers, each with what it means for the schema."""

from typing import Any

from rest_framework import serializers

from memoryproject.foundation.rest_kit.serializers import Moment


def text(meaning: str, **options: Any) -> serializers.CharField:
    return serializers.CharField(help_text=meaning, **options)


def texts(meaning: str, **options: Any) -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), help_text=meaning, **options)


def uuid(meaning: str, **options: Any) -> serializers.UUIDField:
    return serializers.UUIDField(help_text=meaning, **options)


def number(meaning: str, **options: Any) -> serializers.IntegerField:
    return serializers.IntegerField(help_text=meaning, **options)


def fraction(meaning: str, **options: Any) -> serializers.FloatField:
    return serializers.FloatField(help_text=meaning, **options)


def truth(meaning: str, **options: Any) -> serializers.BooleanField:
    return serializers.BooleanField(help_text=meaning, **options)


def moment(meaning: str, **options: Any) -> Moment:
    return Moment(help_text=meaning, **options)


def json_object(meaning: str, **options: Any) -> serializers.DictField:
    return serializers.DictField(child=serializers.JSONField(), help_text=meaning, **options)

"""Serialize which messages a summary covers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from memoryproject.foundation.rest_kit.serializers import Moment


class TimestampRangeSerializer(serializers.Serializer[Any]):
    start = Moment(source="range_start", help_text="The earliest timestamp, inclusive.")
    end = Moment(source="range_end", help_text="The latest timestamp, inclusive.")


class SummarySerializer(serializers.Serializer[Any]):
    """The messages that a summary covers: SummarizationMetadata of seed 003."""

    summary_metadata_id = serializers.UUIDField(
        help_text="By which the summary's message names it: summaryMetadataId in its metadata."
    )
    session_id = serializers.UUIDField(help_text="The session whose messages it covers.")
    number = serializers.IntegerField(help_text="Its place among the session's summaries, from 1.")
    summary_message_id = serializers.UUIDField(help_text="The message that holds its text.")
    summarized_message_ids = serializers.ListField(
        child=serializers.UUIDField(), help_text="The ids of the messages that it covers."
    )
    first_order = serializers.IntegerField(help_text="order_num of its first message.")
    last_order = serializers.IntegerField(help_text="order_num of its last message.")
    timestamp_range = TimestampRangeSerializer(
        source="*", help_text="The earliest and the latest timestamp of its messages."
    )
    skill_id = serializers.CharField(
        help_text="The instructions that it was made by, such as conversation-summary."
    )
    model = serializers.CharField(help_text="Empty where no chat model made it.")
    is_extractive = serializers.BooleanField(
        help_text="Made of the messages' own words, without a chat model."
    )
    sources_deleted = serializers.BooleanField(
        help_text="Its messages were deleted (DELETE_SUMMARIZED_MESSAGES)."
    )
    created_at = Moment(help_text="When the summary was made.")

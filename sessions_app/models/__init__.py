"""Chats, sessions, messages, turns and provider deliveries."""

from sessions_app.models.chats import (
    CLIENT,
    GODFATHER,
    Chat,
    ChatActivity,
    ChatAddress,
    ContactMerge,
    OwnAddress,
    Provider,
)
from sessions_app.models.deliveries import InboundDelivery, OutboundPart, PartState
from sessions_app.models.jobs import Job, JobKind, JobPart, JobState
from sessions_app.models.limits import ChatAccess, Standing, UsageDay
from sessions_app.models.messages import DeliveryStatus, Message, MessageEmbedding, Role
from sessions_app.models.profile import AssistantProfile, OpeningHours, StoredSetting
from sessions_app.models.receipts import (
    ForgetEpoch,
    ForgetItem,
    ForgetReceipt,
    ForgetRun,
    ForgottenKind,
)
from sessions_app.models.review import (
    Assignment,
    Bookmark,
    ChatLabel,
    ChatMark,
    Label,
    Note,
    ReadMark,
    ReviewedMark,
    Rule,
    RuleRun,
    SavedFilter,
    Snooze,
)
from sessions_app.models.sessions import (
    CardWork,
    ChatSession,
    Evidence,
    SessionOutcome,
    SessionStatus,
    Verdict,
)
from sessions_app.models.summaries import (
    ExtractionWork,
    MediaFile,
    MediaState,
    SummarizationMetadata,
    SummaryWork,
    TranscriptBatch,
)
from sessions_app.models.takeover import Broadcast, BroadcastRecipient, CannedReply, ChatPause
from sessions_app.models.trials import (
    AnswerRating,
    AnswerResolved,
    AnswerTrial,
    CheckDay,
    CheckQuestion,
    RatingReason,
)
from sessions_app.models.turns import WAITING_STATES, Outcome, Turn, TurnReplay, TurnState

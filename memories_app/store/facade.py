"""Public face of storing memories: what other packages may use."""

from memories_app.store.change import (
    memory_get,
    memory_locked,
    memory_pin,
    memory_reinstate,
    memory_set_times,
    memory_set_visibility,
    memory_supersede,
    memory_update,
    refuse_duplicate,
)
from memories_app.store.deduplicate import memory_audit, revisions_add
from memories_app.store.duplicate_lookup import Claim, KnownFacts, last_before
from memories_app.store.import_memories import MemoryImport
from memories_app.store.memory_fields import (
    content_hash,
    content_set,
    passages_created,
    passages_forgotten,
    scopes_lock,
    terms_set,
)
from memories_app.store.move_scope import facts_shared, memories_give, memories_move
from memories_app.store.patch import MadeAhead, memory_patch
from memories_app.store.propose import alike_key, proposal_add, proposal_reopen, replacement_propose
from memories_app.store.remember import (
    CREATED,
    DUPLICATE,
    MAX_AT_ONCE,
    Foreseen,
    Remembered,
    memories_foresee,
    memories_remember,
    memory_remember,
)
from memories_app.store.retract import (
    EXTRACTION,
    is_forgotten,
    keyed_hash,
    memories_delete,
    memories_retract,
    tombstones_add,
    tombstones_remove,
    with_older,
)
from memories_app.store.same_files import SameFile, same_files_record, same_files_restore
from memories_app.store.transfer_record import AT_ONCE, Record, RecordError, read_record, records_of

__all__ = [
    "AT_ONCE",
    "CREATED",
    "Claim",
    "DUPLICATE",
    "EXTRACTION",
    "Foreseen",
    "KnownFacts",
    "MAX_AT_ONCE",
    "MadeAhead",
    "MemoryImport",
    "Record",
    "RecordError",
    "Remembered",
    "SameFile",
    "alike_key",
    "last_before",
    "content_hash",
    "content_set",
    "facts_shared",
    "is_forgotten",
    "keyed_hash",
    "memories_delete",
    "memories_foresee",
    "memories_give",
    "memories_move",
    "memories_remember",
    "memories_retract",
    "memory_audit",
    "memory_get",
    "memory_locked",
    "memory_patch",
    "memory_pin",
    "memory_remember",
    "memory_set_times",
    "memory_set_visibility",
    "memory_reinstate",
    "memory_supersede",
    "memory_update",
    "passages_created",
    "passages_forgotten",
    "proposal_add",
    "proposal_reopen",
    "read_record",
    "records_of",
    "refuse_duplicate",
    "replacement_propose",
    "revisions_add",
    "same_files_record",
    "same_files_restore",
    "scopes_lock",
    "terms_set",
    "tombstones_add",
    "tombstones_remove",
    "with_older",
]

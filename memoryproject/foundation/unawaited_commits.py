"""The condition of statements whose commit doesn't wait for the disk: losing it costs nothing.

If the machine or PostgreSQL ends within a second, what such a statement wrote may be as it was
before. It is never on the disk later than what is committed after it in the usual way.
"""

from __future__ import annotations

# It always holds. Only for statements outside of a transaction, whose commit is their own.
UNAWAITED = "(SELECT set_config('synchronous_commit', 'off', true)) = 'off'"

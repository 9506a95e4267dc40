-- The statements of timeline.py.

-- name: walk
-- The sessions from a place on, and of each no more messages than a page has. A session without
-- messages, as it is after a clear, is none of those that fill a page.
SELECT said.message_id FROM (
    SELECT session_id, created_at FROM sessions_app_chatsession AS one
    WHERE chat_id = %(chat)s AND (created_at, session_id) $reach= (%(began_at)s, %(session)s)
      AND EXISTS (SELECT FROM sessions_app_message AS own WHERE own.session_id = one.session_id)
    ORDER BY created_at $order, session_id $order LIMIT %(sessions)s
) AS held CROSS JOIN LATERAL (
    SELECT message_id, order_num FROM sessions_app_message AS own
    WHERE own.session_id = held.session_id
      AND (held.session_id <> %(session)s OR order_num $reach %(order_num)s)
    ORDER BY order_num $order LIMIT %(limit)s
) AS said
ORDER BY held.created_at $order, held.session_id $order, said.order_num $order
LIMIT %(limit)s

-- name: from_day
SELECT said.message_id FROM (
    SELECT session_id, created_at FROM sessions_app_chatsession
    WHERE chat_id = %(chat)s AND last_active >= %(at)s
) AS held CROSS JOIN LATERAL (
    SELECT message_id, order_num FROM sessions_app_message AS own
    WHERE own.session_id = held.session_id AND own.timestamp >= %(at)s
    ORDER BY order_num LIMIT 1
) AS said
ORDER BY held.created_at, held.session_id LIMIT 1

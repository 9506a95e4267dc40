-- The statements of read_markers.py, which puts in $chat, $kind and $whose.

-- name: marks
unnest(%s::uuid[], %s::timestamptz[], %s::uuid[], %s::int[])
    AS mark (chat_id, began_at, session_key, order_num)

-- name: since
-- Find sessions from the marker on by an index, and in each the messages after the marker.
FROM sessions_app_chatsession AS held
JOIN sessions_app_message AS said ON said.session_id = held.session_id
WHERE held.chat_id = mark.chat_id AND held.created_at >= mark.began_at
  AND (held.created_at, held.session_id) >= (mark.began_at, mark.session_key)
  AND said.order_num
    > CASE WHEN held.session_id = mark.session_key THEN mark.order_num ELSE 0 END
  AND said.role = ANY(%s)

-- name: counts
SELECT mark.chat_id, count(*) FROM $marks
CROSS JOIN LATERAL (SELECT $since LIMIT %s) AS news GROUP BY mark.chat_id

-- name: first
SELECT mark.chat_id, news.message_id, news.created_at, news.session_id, news.order_num FROM $marks
CROSS JOIN LATERAL (
    SELECT said.message_id, held.created_at, held.session_id, said.order_num $since
    ORDER BY held.created_at, held.session_id, said.order_num LIMIT 1
) AS news

-- name: last
-- Takes each session's last message, then the one of the newest session that has any.
SELECT chat.id, news.message_id, news.created_at, news.session_id, news.order_num
FROM unnest(%s::uuid[]) AS chat (id)
CROSS JOIN LATERAL (
    SELECT said.message_id, held.created_at, held.session_id, said.order_num
    FROM sessions_app_chatsession AS held
    CROSS JOIN LATERAL (
        SELECT message_id, order_num FROM sessions_app_message AS own
        WHERE own.session_id = held.session_id AND own.role = ANY(%s)
        ORDER BY order_num DESC LIMIT 1
    ) AS said
    WHERE held.chat_id = chat.id
    ORDER BY held.created_at DESC, held.session_id DESC LIMIT 1
) AS news

-- name: news_there
-- A condition on each of a few chats, with an optional review.
EXISTS (
    SELECT FROM (VALUES (1)) AS one
    LEFT JOIN sessions_app_reviewedmark AS mark ON mark.chat_id = $chat
    JOIN sessions_app_chatsession AS held
      ON held.chat_id = $chat AND held.created_at >= coalesce(mark.began_at, '-infinity')
      AND (mark.chat_id IS NULL
           OR (held.created_at, held.session_id) >= (mark.began_at, mark.session_key))
    JOIN sessions_app_message AS said
      ON said.session_id = held.session_id AND said.order_num
        > CASE WHEN held.session_id = mark.session_key THEN mark.order_num ELSE 0 END
    WHERE said.role = ANY(%s)
)

-- name: news_since
-- The same for a list of all chats that have a marker, read at once: for one chat after the other
-- it takes several times as long. A session's message_counter is its last order_num: only sessions
-- beyond their marker are looked into.
$chat IN (
    SELECT mark.chat_id FROM $kind AS mark
    JOIN sessions_app_chatsession AS held
      ON held.chat_id = mark.chat_id AND held.created_at >= mark.began_at
      AND (held.created_at, held.session_id) >= (mark.began_at, mark.session_key)
      AND held.message_counter
        > CASE WHEN held.session_id = mark.session_key THEN mark.order_num ELSE 0 END
    CROSS JOIN LATERAL (
        SELECT FROM sessions_app_message AS said
        WHERE said.session_id = held.session_id AND said.order_num
          > CASE WHEN held.session_id = mark.session_key THEN mark.order_num ELSE 0 END
          AND said.role = ANY(%s)
        LIMIT 1
    ) AS news
    $whose
)

-- name: said_there
-- "OFFSET 0": else the messages of all chats would be read.
EXISTS (
    SELECT FROM sessions_app_message AS said
    WHERE said.chat_id = $chat AND said.role = ANY(%s) OFFSET 0
)

-- name: old_are_seen
-- Whoever has looked further than at old messages keeps their marker.
INSERT INTO sessions_app_readmark AS mark (user_id, chat_id, began_at, session_key, order_num)
SELECT id, %s, %s, %s, %s FROM auth_user WHERE is_staff AND is_active
ON CONFLICT (user_id, chat_id) DO UPDATE SET began_at = excluded.began_at,
    session_key = excluded.session_key, order_num = excluded.order_num
WHERE mark.session_key = ANY(%s)

-- The statements of rollups.py, which puts in what stands behind a dollar sign.

-- name: counted
-- Figures of each row of "marked", the times at which quarters start.
SELECT starts_at, messages, messages_in, messages_out, answers, failed, missed,
       held, unknown, rated_good, rated_bad,
       answer_bins, answer_counts, model_names, prompt_tokens, completion_tokens,
       memories_added, receipts, memories_forgotten
FROM marked
CROSS JOIN LATERAL (
    SELECT count(*) AS messages, count(*) FILTER (WHERE role = 'user') AS messages_in,
           count(*) FILTER (WHERE role = 'assistant') AS messages_out
    FROM sessions_app_message
    WHERE received_at >= starts_at AND received_at < starts_at + interval '15 minutes'
) AS of_messages
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state = 'sent') AS answers,
           count(*) FILTER (WHERE state = 'failed') AS failed,
           count(*) FILTER (WHERE state = 'missed') AS missed,
           count(*) FILTER (WHERE state = 'held') AS held,
           count(*) FILTER (WHERE EXISTS (SELECT FROM sessions_app_answerrating
               WHERE turn_id = sessions_app_turn.id AND is_good)) AS rated_good,
           count(*) FILTER (WHERE EXISTS (SELECT FROM sessions_app_answerrating
               WHERE turn_id = sessions_app_turn.id AND NOT is_good)) AS rated_bad
    FROM sessions_app_turn
    WHERE created_at >= starts_at AND created_at < starts_at + interval '15 minutes'
) AS of_turns
CROSS JOIN LATERAL (
    SELECT count(*) AS unknown FROM sessions_app_turn
    JOIN sessions_app_message ON sessions_app_message.message_id = sessions_app_turn.message_id
    JOIN sessions_app_turnreplay ON sessions_app_turnreplay.turn_id = sessions_app_turn.id
    WHERE created_at >= starts_at AND created_at < starts_at + interval '15 minutes'
      AND state = 'sent' AND NOT by_hand AND model <> '' AND terms @> ARRAY['!asks']
      AND (recalled -> 0 -> 'nearest' = 'true' OR NOT recalled @> '[{"source": "memory"}]'
           AND NOT recalled @> '[{"source": "message"}]')
) AS of_questions
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(bin), '{}') AS answer_bins,
           coalesce(array_agg(number), '{}') AS answer_counts
    FROM (
        SELECT $bin AS bin, count(*) AS number FROM sessions_app_turn
        WHERE created_at >= starts_at AND created_at < starts_at + interval '15 minutes'
          AND state = 'sent' AND finished_at IS NOT NULL AND NOT by_hand
        GROUP BY 1
    ) AS bins
) AS of_durations
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(model), '{}') AS model_names,
           coalesce(array_agg(prompt), '{}') AS prompt_tokens,
           coalesce(array_agg(completion), '{}') AS completion_tokens
    FROM (
        SELECT model, coalesce(sum(prompt_tokens), 0) AS prompt,
               coalesce(sum(completion_tokens), 0) AS completion
        FROM sessions_app_turnreplay
        JOIN sessions_app_turn ON sessions_app_turn.id = sessions_app_turnreplay.turn_id
        WHERE created_at >= starts_at AND created_at < starts_at + interval '15 minutes'
          AND (prompt_tokens > 0 OR completion_tokens > 0)
        GROUP BY 1
    ) AS models
) AS of_models
CROSS JOIN LATERAL (
    SELECT count(*) AS memories_added FROM memories_app_memory
    WHERE created_at >= starts_at AND created_at < starts_at + interval '15 minutes'
) AS of_memories
CROSS JOIN LATERAL (
    SELECT count(*) AS receipts,
           coalesce(sum((swept ->> 'memories_app_memory')::bigint), 0) AS memories_forgotten
    FROM sessions_app_forgetreceipt
    WHERE forgotten_at >= starts_at AND forgotten_at < starts_at + interval '15 minutes'
) AS of_receipts

-- name: store
-- Quarters are given by the times at which they start.
WITH marked AS (SELECT unnest(%(quarters)s::timestamptz[]) AS starts_at)
INSERT INTO dashboard_quarter ($columns)
SELECT $columns FROM ($counted) AS counted
WHERE messages > 0 OR memories_added > 0 OR receipts > 0
   OR EXISTS (SELECT FROM sessions_app_turn WHERE created_at >= starts_at
              AND created_at < starts_at + interval '15 minutes')

-- name: drop_days
-- The days whose stored figures are outdated.
DELETE FROM dashboard_day USING unnest(%(quarters)s::timestamptz[]) AS quarter
WHERE quarter >= starts_at AND quarter < ends_at

-- name: read
-- The slots between the borders, each with its figures and whether they were stored (all as JSON, so
-- that one statement returns it), and the number of chats in the whole period as slot null.
WITH borders AS (
    SELECT * FROM unnest(%(borders)s::timestamptz[]) WITH ORDINALITY AS of_slot (at, place)
), slots AS (
    SELECT first.place - 1 AS slot, first.at AS slot_start, last.at AS slot_end
    FROM borders AS first JOIN borders AS last ON last.place = first.place + 1
), known AS (
    SELECT slot, figures FROM slots
    JOIN dashboard_day ON starts_at = slot_start AND ends_at = slot_end
    WHERE NOT EXISTS (
        SELECT FROM dashboard_mark WHERE quarter >= slot_start AND quarter < slot_end
    )
), open AS (
    SELECT * FROM slots WHERE slot NOT IN (SELECT slot FROM known)
), marked AS (
    SELECT DISTINCT quarter AS starts_at FROM open
    JOIN dashboard_mark ON quarter >= slot_start AND quarter < slot_end
), quarters AS MATERIALIZED (
    SELECT slot, every.* FROM open
    JOIN (
        SELECT $columns FROM dashboard_quarter
        WHERE starts_at >= %(start)s AND starts_at < %(end)s
          AND starts_at NOT IN (SELECT starts_at FROM marked)
        UNION ALL $counted
    ) AS every ON starts_at >= slot_start AND starts_at < slot_end
), sums AS (
    SELECT slot, $sums FROM quarters GROUP BY slot
), bins AS (
    SELECT slot, jsonb_agg(jsonb_build_array(bin, number)) AS bins
    FROM (
        SELECT slot, bin, sum(number) AS number
        FROM quarters, unnest(answer_bins, answer_counts) AS of_bin (bin, number)
        GROUP BY slot, bin
    ) AS of_slot
    GROUP BY slot
), tokens AS (
    SELECT slot, jsonb_agg(jsonb_build_array(model, prompt, completion)) AS tokens
    FROM (
        SELECT slot, model, sum(prompt) AS prompt, sum(completion) AS completion
        FROM quarters, unnest(model_names, prompt_tokens, completion_tokens)
             AS of_model (model, prompt, completion)
        GROUP BY slot, model
    ) AS of_slot
    GROUP BY slot
), chats AS (
    SELECT slot, (
        SELECT count(DISTINCT chat_id) FROM (
            SELECT chat_id FROM sessions_app_message
            WHERE received_at >= slot_start AND received_at < slot_end
            UNION ALL SELECT chat_id FROM sessions_app_turn
            WHERE created_at >= slot_start AND created_at < slot_end
        ) AS either
    ) AS chats
    FROM open
)
SELECT slot, figures, true FROM known
UNION ALL
SELECT slot, jsonb_build_object('sums', coalesce(to_jsonb(sums) - 'slot', '{}'), 'bins',
    coalesce(bins, '[]'), 'tokens', coalesce(tokens, '[]'), 'chats', chats), false
FROM open
LEFT JOIN sums USING (slot) LEFT JOIN bins USING (slot) LEFT JOIN tokens USING (slot)
JOIN chats USING (slot)
UNION ALL
SELECT null, to_jsonb(count(*)), true FROM sessions_app_chat AS chat
WHERE EXISTS (SELECT FROM sessions_app_message
              WHERE chat_id = chat.id AND received_at >= %(start)s AND received_at < %(end)s)
   OR EXISTS (SELECT FROM sessions_app_turn
              WHERE chat_id = chat.id AND created_at >= %(start)s AND created_at < %(end)s)

-- These statements insert what follows from the packets, in this order. @provider is the provider's name.
--
-- The fate of a payout, 0 to 999, follows from its packet and share:
--      0 to 5    the account is frozen: failed
--      6 to 10   the recipient declines: 6 cancelled, 7 paid by other means, others failed
--     11 to 16   declined by a rule of the provider: 16 failed, others paid by a retry
--     17 to 20   paid and returned
--     others     paid

-- Users of low numbers claim most; the users of one packet have consecutive numbers.
INSERT INTO shares (packet_id, share_index, amount, user_id, claimed_at)
SELECT packet_id, share_index, amount,
    IF(won, CONCAT('user', LPAD(FLOOR(190000 * POW(CRC32(packet_id) / 4294967296, 2)) + share_index, 6, '0'),
        CASE WHEN fate < 6 THEN '~frozen' WHEN fate < 11 THEN '~declined' ELSE '' END), NULL),
    IF(won, created_at + INTERVAL (share_index + 1) * 300000 DIV share_count * 1000 MICROSECOND, NULL)
FROM (
    SELECT STRAIGHT_JOIN id AS packet_id, seq AS share_index, total_amount DIV share_count AS amount, created_at, share_count,
        seq < claimed_count AS won, CRC32(CONCAT(id, ':', seq)) % 1000 AS fate
    FROM packets JOIN seq_0_to_399 ON seq < share_count
    WHERE status = 'closed'
) s;

INSERT INTO claims (packet_id, user_id, kind, share_index, amount, payment_id, app_id, claimed_at)
SELECT s.packet_id, s.user_id, 'share', s.share_index, s.amount, CONCAT('p', s.packet_id, LOWER(LPAD(CONV(s.share_index, 10, 32), 4, '0'))),
    p.app_id, s.claimed_at FROM shares s JOIN packets p ON p.id = s.packet_id WHERE s.user_id IS NOT NULL;

-- Charges.
INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark, provider,
    status, version, attempt, order_no, failure_code, failure_message, created_at, updated_at, settled_at)
SELECT CONCAT('c', id, '0000'), 'c', id, app_id, sender_id, -1, sender_id, total_amount, 'CNY', CONCAT('hongbao ', id), @provider,
    IF(status = 'rejected', 'failed', 'paid'), 2, 1, CONCAT('c', id, '000001'), failure_code, failure_code,
    created_at, created_at + INTERVAL 1 SECOND, created_at + INTERVAL 1 SECOND
FROM packets;

-- Payouts.
INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark, provider,
    status, version, attempt, order_no, failure_code, failure_message, created_at, updated_at, settled_at)
SELECT id, 'p', packet_id, app_id, user_id, share_index, user_id, amount, 'CNY', CONCAT('hongbao ', packet_id), @provider,
    status, 2, attempt, CONCAT(id, '0', attempt), code, code,
    claimed_at, claimed_at + INTERVAL seconds SECOND, claimed_at + INTERVAL seconds SECOND
FROM (
    SELECT p.*, IF(fate BETWEEN 11 AND 15, 2, 1) AS attempt,
        CASE
            WHEN fate = 6 THEN 'cancelled'
            WHEN fate = 7 THEN 'paid_outside'
            WHEN fate < 11 OR fate = 16 THEN 'failed'
            WHEN fate BETWEEN 17 AND 20 THEN 'returned'
            ELSE 'paid'
        END AS status,
        CASE
            WHEN fate < 6 THEN 'account_frozen'
            WHEN fate BETWEEN 8 AND 10 THEN 'payee_declined'
            WHEN fate = 16 THEN 'declined_by_rule'
            WHEN fate BETWEEN 17 AND 20 THEN 'returned'
        END AS code,
        CASE WHEN fate IN (6, 7) OR fate BETWEEN 11 AND 15 THEN 2401 WHEN fate BETWEEN 17 AND 20 THEN 1200 ELSE 1 END AS seconds
    FROM (
        SELECT payment_id AS id, packet_id, app_id, user_id, share_index, amount, claimed_at,
            CRC32(CONCAT(packet_id, ':', share_index)) % 1000 AS fate
        FROM claims WHERE kind = 'share'
    ) p
) f;

-- Refunds: of the remainder, and of each payout that was cancelled.
INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark, provider,
    status, version, attempt, order_no, created_at, updated_at, settled_at)
SELECT CONCAT('r', packet_id, number), 'r', packet_id, app_id, sender_id, -1, sender_id, amount, 'CNY', CONCAT('hongbao ', packet_id), @provider,
    'paid', 2, 1, CONCAT('r', packet_id, number, '01'), at, at + INTERVAL 1 SECOND, at + INTERVAL 1 SECOND
FROM (
    SELECT id AS packet_id, app_id, sender_id, remainder AS amount, books_closed_at AS at, '0000' AS number FROM packets WHERE remainder > 0
    UNION ALL
    SELECT p.packet_id, p.app_id, k.sender_id, p.amount, p.settled_at, LOWER(LPAD(CONV(p.share_index + 1, 10, 32), 4, '0'))
    FROM payments p JOIN packets k ON k.id = p.packet_id WHERE p.kind = 'p' AND p.status = 'cancelled'
) r;

-- The status of a payment follows from its last attempt; an earlier one was declined.
INSERT INTO attempts (order_no, payment_id, no, op, account, request, sends, asks, statement, refused, booked, return_booked, next_action, forgotten,
    observed, code, message, provider_ref, started_at, ask_until, ended_at)
SELECT own_order_no, id, no, ELT(FIELD(kind, 'c', 'p', 'r'), 'charge', 'transfer', 'refund'), account, CONCAT('{"order_no":"', own_order_no, '"}'),
    1, statement <> 'succeeded', statement, statement = 'declined', statement <> 'declined', statement = 'returned', 'ask', FALSE, '',
    CASE statement
        WHEN 'succeeded' THEN ''
        WHEN 'returned' THEN 'returned'
        ELSE COALESCE(failure_code, IF(no < attempt, 'declined_by_rule', 'payee_declined'))
    END, '', CONCAT('sbx', MD5(own_order_no)), at, at + INTERVAL 30 DAY, at + INTERVAL 1 SECOND
FROM (
    SELECT p.*, seq AS no, CONCAT(id, '0', seq) AS own_order_no, created_at + INTERVAL (seq - 1) * 40 MINUTE AS at,
        CASE
            WHEN seq < attempt OR status IN ('failed', 'cancelled', 'paid_outside') THEN 'declined'
            WHEN status = 'returned' THEN 'returned'
            ELSE 'succeeded'
        END AS statement
    FROM payments p JOIN seq_1_to_2 ON seq <= attempt
) a;

-- The timeline: sends, and the queries that confirm what was declined or returned.
INSERT INTO payment_events (payment_id, at, source, op, order_no, outcome, code, event, args, started_at, ended_at)
SELECT payment_id, ended_at, 'provider', 'send', order_no, outcome, code, 'sent', '{}', started_at, ended_at
FROM (
    SELECT payment_id, order_no, started_at, ended_at,
        IF(statement = 'declined', 'declined', 'succeeded') AS outcome, IF(statement = 'declined', code, '') AS code
    FROM attempts
) a;

INSERT INTO payment_events (payment_id, at, source, op, order_no, outcome, code, event, args, started_at, ended_at)
SELECT payment_id, ended_at + INTERVAL 1 SECOND, 'provider', 'ask', order_no, statement, code, 'queried', '{}', ended_at,
    ended_at + INTERVAL 1 SECOND
FROM attempts WHERE asks > 0;

-- The ledger is in the order of time.
INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at, provider)
SELECT packet_id, kind, debit, credit, amount, order_no, CONCAT(order_no, ':', kind), at, IF('provider' IN (debit, credit), 'sandbox', NULL)
FROM (
    SELECT p.packet_id, ELT(FIELD(p.kind, 'c', 'p', 'r'), 'charge', 'paid', 'refunded') AS kind,
        ELT(FIELD(p.kind, 'c', 'p', 'r'), 'provider', 'owed', 'refunding') AS debit, IF(p.kind = 'c', 'holding', 'provider') AS credit,
        p.amount, a.order_no, a.ended_at AS at
    FROM attempts a JOIN payments p ON p.id = a.payment_id WHERE a.booked
    UNION ALL SELECT packet_id, 'claim', 'holding', 'owed', amount, id, created_at FROM payments WHERE kind = 'p'
    UNION ALL SELECT packet_id, 'returned', 'provider', 'owed', amount, order_no, settled_at FROM payments WHERE kind = 'p' AND status = 'returned'
    UNION ALL SELECT packet_id, 'cancel', 'owed', 'refunding', amount, id, settled_at FROM payments WHERE kind = 'p' AND status = 'cancelled'
    UNION ALL SELECT packet_id, 'paid_outside', 'owed', 'outside', amount, id, settled_at FROM payments WHERE kind = 'p' AND status = 'paid_outside'
    UNION ALL SELECT packet_id, 'close', 'holding', 'refunding', amount, id, created_at FROM payments WHERE kind = 'r' AND id LIKE '%0000'
) t
ORDER BY at;

-- A retry needs one person; a cancel and a payment by other means need two. Payouts that
-- the recipient declined stay failed because the second person rejected the cancel.
INSERT INTO decisions (id, payment_id, kind, reason, decided_by, role, status, approval_id, expires_at,
    preview_hash, approved_by, approve_reason, evidence, created_at, ended_at)
SELECT CONCAT('d', id), id, kind, '工单 48213：用户已处理', 'li-na', 'finance', IF(status = 'failed', 'rejected', 'carried_out'),
    IF(kind = 'retry', NULL, CONCAT('a', id)), IF(kind = 'retry', NULL, at + INTERVAL 1 DAY),
    IF(kind = 'retry', NULL, UNHEX(SHA2(id, 256))), IF(kind = 'retry', NULL, 'wang-wei'),
    IF(kind = 'retry', NULL, 'checked'), IF(kind = 'mark_paid', 'receipt 1', NULL), at, at + INTERVAL 10 MINUTE
FROM (
    SELECT id, status, created_at + INTERVAL 25 MINUTE AS at,
        CASE WHEN attempt = 2 THEN 'retry' WHEN status = 'paid_outside' THEN 'mark_paid' ELSE 'cancel' END AS kind
    FROM payments
    WHERE kind = 'p' AND (attempt = 2 OR status IN ('cancelled', 'paid_outside') OR status = 'failed' AND failure_code = 'payee_declined')
) d;

INSERT INTO audit (seq, at, actor, role, action, subject, reason, before_is, after_is, hash)
SELECT ROW_NUMBER() OVER (ORDER BY created_at, id), created_at, decided_by, role, kind, payment_id, reason, '{}', '{}', REPEAT('h', 32) FROM decisions;

ANALYZE TABLE packets, shares, claims, payments, attempts, payment_events, transfers, decisions, audit;

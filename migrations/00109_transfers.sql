-- Transfers: the ledger, append-only double entry (rule R12). amount leaves debit and goes
-- to credit; each kind has its two accounts. reference, order number and kind, is unique, so
-- nothing is recorded twice. Balances are sums, so there is no hot row, except for the balances
-- of apps: a transfer of one names its app and the available balance afterwards. A credit or
-- debit has no packet; its order number is the id of the movement (m). Fees, top-ups and
-- withdrawals have none either: they come from a line of a provider's statement, and their
-- order number (f) is derived from it. An error is corrected by another transfer, never by a
-- change.
-- Where MySQL writes a binary log, the user that migrates needs
-- log_bin_trust_function_creators = 1 (or SUPER) to create a trigger.
-- +goose Up
CREATE TABLE IF NOT EXISTS transfers (
    id         BIGINT        NOT NULL AUTO_INCREMENT PRIMARY KEY,
    packet_id  VARBINARY(20) NOT NULL,
    kind       VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    debit      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    credit     VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    amount     BIGINT        NOT NULL,
    order_no   VARBINARY(27) NOT NULL,
    reference  VARBINARY(64) NOT NULL,
    created_at DATETIME(3)   NOT NULL,
    app_id     VARBINARY(32) NULL COMMENT 'of the balance that it changes',
    available  BIGINT        NULL COMMENT 'of that balance, afterwards',
    provider   VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'whose account it changes',
    UNIQUE KEY transfers_reference (reference),
    KEY transfers_packet (packet_id, id),
    KEY transfers_created (created_at, id),
    KEY transfers_order (order_no),
    KEY transfers_app (app_id, id),
    CONSTRAINT transfers_amount CHECK (amount > 0),
    CONSTRAINT transfers_two_sides CHECK (debit <> credit),
    CONSTRAINT transfers_named CHECK (reference = CONCAT(order_no, ':', kind)),
    CONSTRAINT transfers_owner CHECK (packet_id = IF(kind IN ('credit', 'debit', 'fee', 'fee_returned', 'top_up', 'withdrawal'), '',
        SUBSTRING(order_no, 2, 20))),
    CONSTRAINT transfers_at_provider CHECK ((provider IS NOT NULL) = (debit = 'provider' OR credit = 'provider')),
    CONSTRAINT transfers_app_balance CHECK ((app_id IS NOT NULL) = (debit = 'prefunded' OR credit = 'prefunded')
        AND (app_id IS NULL) = (available IS NULL)),
    CONSTRAINT transfers_kind CHECK (CONCAT(kind, ' ', debit, ' ', credit) IN (
        'charge provider holding', 'claim holding owed', 'paid owed provider', 'close holding refunding', 'refunded refunding provider',
        'cancel owed refunding', 'returned provider owed', 'refund_returned provider refunding', 'paid_outside owed outside',
        'refund_outside refunding outside', 'honoured house owed', 'voided owed house', 'second_success suspense provider',
        'second_returned provider suspense', 'charge_returned house provider', 'refund_kept refunding house',
        'refund_dropped refunding suspense', 'written_off house suspense', 'recovered suspense house', 'credit bank prefunded', 'debit prefunded bank', 'reserve prefunded holding',
        'release refunding prefunded', 'fee fees provider', 'fee_returned provider fees', 'top_up provider bank',
        'withdrawal bank provider'))
) ENGINE = InnoDB;
CREATE TRIGGER IF NOT EXISTS transfers_no_update BEFORE UPDATE ON transfers FOR EACH ROW
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'transfers is append-only';
CREATE TRIGGER IF NOT EXISTS transfers_no_delete BEFORE DELETE ON transfers FOR EACH ROW
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'transfers is append-only';

-- +goose Down
DROP TABLE IF EXISTS transfers;

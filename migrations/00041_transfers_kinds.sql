-- Each kind of posting moves money between two accounts that are fixed (rule
-- R12), and its reference is order number and kind.
-- +goose Up
ALTER TABLE transfers
    ADD CONSTRAINT transfers_kind CHECK (CONCAT(kind, ' ', debit, ' ', credit) IN (
        'charge provider holding', 'claim holding owed', 'paid owed provider', 'close holding refunding', 'refunded refunding provider',
        'cancel owed refunding', 'returned provider owed', 'refund_returned provider refunding', 'paid_outside owed outside',
        'refund_outside refunding outside', 'honoured house owed', 'second_success suspense provider')),
    ADD CONSTRAINT transfers_named CHECK (reference = CONCAT(order_no, ':', kind)),
    ADD CONSTRAINT transfers_owner CHECK (SUBSTRING(order_no, 2, 20) = packet_id);

-- +goose Down
ALTER TABLE transfers DROP CONSTRAINT transfers_kind, DROP CONSTRAINT transfers_named, DROP CONSTRAINT transfers_owner;

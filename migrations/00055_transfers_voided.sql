-- A promise that the house honoured may be given up: its money stays with the house.
-- +goose Up
ALTER TABLE transfers
    DROP CONSTRAINT transfers_kind,
    ADD CONSTRAINT transfers_kind CHECK (CONCAT(kind, ' ', debit, ' ', credit) IN (
        'charge provider holding', 'claim holding owed', 'paid owed provider', 'close holding refunding', 'refunded refunding provider',
        'cancel owed refunding', 'returned provider owed', 'refund_returned provider refunding', 'paid_outside owed outside',
        'refund_outside refunding outside', 'honoured house owed', 'voided owed house', 'second_success suspense provider',
        'second_returned provider suspense'));

-- +goose Down
ALTER TABLE transfers
    DROP CONSTRAINT transfers_kind,
    ADD CONSTRAINT transfers_kind CHECK (CONCAT(kind, ' ', debit, ' ', credit) IN (
        'charge provider holding', 'claim holding owed', 'paid owed provider', 'close holding refunding', 'refunded refunding provider',
        'cancel owed refunding', 'returned provider owed', 'refund_returned provider refunding', 'paid_outside owed outside',
        'refund_outside refunding outside', 'honoured house owed', 'second_success suspense provider', 'second_returned provider suspense'));

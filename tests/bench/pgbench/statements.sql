-- The client's next usage: step is -7 at the start, so the first client charges m1, m9, m17 …
\set step :step + 8
\set usage :step + :client_id
BEGIN;
INSERT INTO job_ledger (key, args_hash, actor, message_id) VALUES (:head || :usage, '\x02870f5530d0600b4d1681ecb8a83a6b', 'charge_credit', 'e1dac99c-1d6a-4def-ad62-aa08e04444ff') ON CONFLICT DO NOTHING RETURNING txid_current();
INSERT INTO credit_entries (reference, account_id, amount) SELECT :reference || :usage AS anon_1, usages.account_id, usages.cost FROM usages WHERE usages.task_id = :task AND usages.message_id = 'm' || :usage RETURNING credit_entries.account_id, credit_entries.amount \gset
UPDATE accounts SET balance=(accounts.balance - :amount) WHERE accounts.id = :account_id AND accounts.balance >= :amount RETURNING accounts.id;
COMMIT;

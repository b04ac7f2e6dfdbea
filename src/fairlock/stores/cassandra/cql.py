"""All statements that are sent to Cassandra. Prepared once for each session; nothing is put together from names.

Never a TTL, never a DELETE of a lock or an item, never a plain write beside the conditional ones: a deleted row would
lose its fence and leave a tombstone, and a plain write is not ordered with transactions. Audit lines have no fence.

A condition must have a column on its left. So there is one that is always 1970, and `zero <= clock - :now` says that
`now` is not ahead of the coordinator's clock. A refused transaction shows the columns of its conditions, hence
`body != ''`: it saves the read.
"""

LOCKS = """CREATE TABLE IF NOT EXISTS {keyspace}.fairlock_locks (
    key text PRIMARY KEY,      -- namespace and name
    score bigint,              -- the last fence given out
    owner text,                -- the holder, for people
    body text,                 -- the record, JSON
    version bigint,            -- random, new with each write
    zero timestamp             -- 1970, for conditions
)"""
ITEMS = """CREATE TABLE IF NOT EXISTS {keyspace}.fairlock_items (
    pool text,                 -- namespace and name
    bucket int,                -- which of sixteen partitions: transactions of one wait for each other
    key text,
    score bigint,              -- when it is due, in microseconds; -1 = done, -2 = removed
    fence bigint,              -- of the last take
    ticket text,               -- whose it is
    lease bigint,              -- for how long it is taken, or was to rest
    owner text,
    note text,
    body text,                 -- JSON: [format, body, checksum of pool, key and body]
    zero timestamp,            -- 1970, for conditions
    PRIMARY KEY ((pool, bucket), key)
)"""

CLOCK = "SELECT toUnixTimestamp(now()) AS now FROM system.local"

READ = (
    "SELECT score, owner, body, version, toUnixTimestamp(now()) AS now FROM {keyspace}.fairlock_locks WHERE key = ?"
)
INSERT = (
    "INSERT INTO {keyspace}.fairlock_locks (key, score, owner, body, version, zero) VALUES (?, ?, ?, ?, ?, 0) "
    "IF NOT EXISTS"
)
UPDATE = (
    "UPDATE {keyspace}.fairlock_locks SET score = ?, owner = ?, body = ?, version = ? WHERE key = ? "
    "IF version = ? AND body != '' AND zero <= toTimestamp(now()) - (duration) ?"
)
DELETE_AUDIT = "DELETE FROM {keyspace}.fairlock_locks WHERE key = ? IF version = ?"
SCAN = "SELECT key, score, owner, body, version FROM {keyspace}.fairlock_locks"

COLUMNS = "key, score, fence, ticket, lease, owner, note, body"
OF_BUCKET = "FROM {keyspace}.fairlock_items WHERE pool = ? AND bucket = ?"
OF_BUCKETS = "FROM {keyspace}.fairlock_items WHERE pool = ? AND bucket IN ?"
DUE_BETWEEN = "AND score >= ? AND score <= ?"

GET = f"SELECT {COLUMNS}, toUnixTimestamp(now()) AS now {OF_BUCKET} AND key = ?"
ADD = (
    "INSERT INTO {keyspace}.fairlock_items (pool, bucket, key, score, fence, ticket, lease, owner, note, body, zero) "
    "VALUES (?, ?, ?, ?, 0, '', 0, '', '', ?, 0) IF NOT EXISTS"
)
PUT = (
    "UPDATE {keyspace}.fairlock_items SET score = ?, fence = ?, ticket = ?, lease = ?, owner = ?, note = ?, body = ? "
    "WHERE pool = ? AND bucket = ? AND key = ? "
    "IF score = ? AND fence = ? AND ticket = ? AND zero <= toTimestamp(now()) - (duration) ?"
)
MEND = (
    "UPDATE {keyspace}.fairlock_items SET score = ?, fence = ?, ticket = '', lease = 0, owner = '', note = '', "
    "body = ?, zero = 0 WHERE pool = ? AND bucket = ? AND key = ? IF score = ? AND fence = ? AND ticket = ?"
)
DUE_IN_BUCKET = f"SELECT {COLUMNS} {OF_BUCKET} {DUE_BETWEEN} LIMIT 64 ALLOW FILTERING"
LEAST = f"SELECT min(score) AS score {OF_BUCKET} {DUE_BETWEEN} ALLOW FILTERING"
WITH_SCORE = f"SELECT {COLUMNS} {OF_BUCKET} AND score = ? LIMIT 1 ALLOW FILTERING"
DUE = f"SELECT key, score {OF_BUCKETS} {DUE_BETWEEN} ALLOW FILTERING"
OF = f"SELECT {COLUMNS} {OF_BUCKETS} AND score > ? AND score <= ? AND ticket = ? ALLOW FILTERING"
# Not min(score): over several partitions that makes the server log a warning for every client.
SOON = f"SELECT score {OF_BUCKETS} {DUE_BETWEEN} LIMIT 256 ALLOW FILTERING"
ALL = f"SELECT {COLUMNS} {OF_BUCKETS}"
SCORES = f"SELECT key, score, ticket {OF_BUCKETS}"

POOLS = "SELECT DISTINCT pool, bucket FROM {keyspace}.fairlock_items"

SCHEMA = """-- The keyspace, if there is none. How many copies it has: replication=3 or replication=east:3,west:3.
-- CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication};
{tables}

-- The rights of a role that locks:
-- GRANT SELECT ON KEYSPACE {keyspace} TO locker;
-- GRANT MODIFY ON KEYSPACE {keyspace} TO locker;
"""

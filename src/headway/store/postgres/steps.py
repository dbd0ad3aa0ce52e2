"""The tables and functions, as numbered steps forward. A released step never changes.

Everything is named with its schema: nothing depends on a connection's search path, nor
on any other state of a session, so a pooler may give every transaction another one.
What is called often is a function: its plans are kept by the server, without prepared
statements. A function's name ends with its version; a step may add a newer one and
leaves those that older code still calls.
"""

from typing import Final, NamedTuple

from headway.store.postgres.cluster_2_sql import CLUSTER_2
from headway.store.postgres.cluster_sql import CLUSTER
from headway.store.postgres.commit_2_sql import COMMIT_2
from headway.store.postgres.commit_sql import COMMIT
from headway.store.postgres.inbox_sql import INBOX
from headway.store.postgres.read_sql import READS


class Step(NamedTuple):
    """One step forward, taken whole or not at all."""

    text: str
    least: int
    """Code that knows no step after this one still works once the step is taken."""


TABLES: Final = """
CREATE TABLE headway.partitions(
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    epoch bigint NOT NULL,
    owner text NOT NULL,
    taken_at timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE headway.jobs(
    seq bigint NOT NULL,
    first bigint NOT NULL,
    second bigint NOT NULL,
    partition integer NOT NULL,
    lane integer NOT NULL,
    turn bytea NOT NULL,
    -- Where that is too long for an index, and `turn` stands for it.
    whole_turn bytea,
    change bytea,
    body bytea NOT NULL,
    PRIMARY KEY(partition, seq)
) WITH (
    -- Room for what is only extended: such a change touches no index.
    fillfactor = 80,
    -- A larger body lies apart, so that a move need not rewrite it.
    toast_tuple_target = 1024,
    -- Rows live for seconds; what they leave behind is swept while there is little.
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_limit = 2000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 5000,
    -- Giving the end of the file back would lock everybody out for a while.
    vacuum_truncate = off
);
ALTER TABLE headway.jobs ALTER body SET STORAGE EXTERNAL;
CREATE INDEX jobs_in_order
    ON headway.jobs(partition, lane, turn, first, second, seq);

-- Keys of any length are known by a name that an index can hold.
CREATE TABLE headway.facts(
    partition integer NOT NULL,
    kind text COLLATE "C" NOT NULL,
    name bytea NOT NULL,
    key bytea NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY(partition, kind, name)
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 500
);

-- Queue and key are bytes: text can't hold all that they may be.
CREATE TABLE headway.keys(
    seq bigint NOT NULL,
    at_ms bigint NOT NULL,
    partition integer NOT NULL,
    name bytea NOT NULL,
    queue bytea NOT NULL,
    key bytea NOT NULL,
    fingerprint bytea NOT NULL,
    PRIMARY KEY(partition, name)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 5000
);
CREATE INDEX keys_by_time ON headway.keys(partition, at_ms);

CREATE TABLE headway.results(
    seq bigint NOT NULL,
    until_ms bigint NOT NULL,
    partition integer NOT NULL,
    blob bytea NOT NULL,
    PRIMARY KEY(partition, seq)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    vacuum_truncate = off
);
ALTER TABLE headway.results ALTER blob SET STORAGE EXTERNAL;
CREATE INDEX results_by_time ON headway.results(partition, until_ms, seq);

-- Made of tables that hold a span of numbers of one partition each, and are dropped.
CREATE TABLE headway.history(
    partition integer NOT NULL,
    first bigint NOT NULL,
    count integer NOT NULL CHECK(count > 0),
    at_ms bigint NOT NULL,
    blob bytea NOT NULL,
    PRIMARY KEY(partition, first)
) PARTITION BY RANGE(partition, first);
ALTER TABLE headway.history ALTER blob SET STORAGE EXTERNAL;
CREATE TABLE headway.history_parts(
    partition integer NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY(partition, number)
);
-- From which number on history is there; what is before it is gone for everybody,
-- though it may lie in a table that holds later numbers, too.
CREATE TABLE headway.history_begins(
    partition integer PRIMARY KEY,
    first bigint NOT NULL
) WITH (fillfactor = 50);
"""

HISTORY: Final = """
CREATE FUNCTION headway.make_part_1(of_partition integer, at_number bigint, span bigint)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := format('history_%s_%s', of_partition, at_number);
BEGIN
    INSERT INTO headway.history_parts VALUES(of_partition, at_number)
        ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN RETURN; END IF;
    -- Made apart and then attached: that locks out neither readers nor writers.
    EXECUTE format(
        'CREATE TABLE headway.%I(LIKE headway.history INCLUDING ALL)', name);
    EXECUTE format(
        'ALTER TABLE headway.history ATTACH PARTITION headway.%I '
        'FOR VALUES FROM (%s, %s) TO (%s, %s)', name,
        of_partition, at_number * span, of_partition, (at_number + 1) * span);
END $$;

-- Answers whether a table was dropped. Waits for nobody for long: whoever reads history
-- now would be waited for by all who come after.
CREATE FUNCTION headway.drop_part_1(of_partition integer, at_epoch bigint, span bigint)
RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
    oldest bigint;
BEGIN
    PERFORM 1 FROM headway.partitions
        WHERE id = of_partition AND epoch = at_epoch FOR SHARE;
    IF NOT FOUND THEN RETURN false; END IF;
    SELECT p.number INTO oldest
        FROM headway.history_parts p JOIN headway.history_begins b USING(partition)
        WHERE p.partition = of_partition AND (p.number + 1) * span <= b.first
        ORDER BY p.number LIMIT 1;
    IF NOT FOUND THEN RETURN false; END IF;
    EXECUTE format('DROP TABLE headway.%I',
        format('history_%s_%s', of_partition, oldest));
    DELETE FROM headway.history_parts
        WHERE partition = of_partition AND number = oldest;
    RETURN true;
END $$;

CREATE FUNCTION headway.history_1(
    of_partition integer, from_number bigint, most_bytes bigint)
RETURNS TABLE(first bigint, count integer, at_ms bigint, blob bytea)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    begins bigint;
    start bigint;
    one record;
    total bigint := 0;
    is_any boolean := false;
BEGIN
    SELECT b.first INTO begins FROM headway.history_begins b
        WHERE b.partition = of_partition;
    IF begins IS NOT NULL AND from_number < begins THEN
        RAISE EXCEPTION 'dropped' USING ERRCODE = 'HW003', DETAIL = begins::text;
    END IF;
    SELECT h.first INTO start FROM headway.history h
        WHERE h.partition = of_partition AND h.first <= from_number
        ORDER BY h.first DESC LIMIT 1;
    FOR one IN SELECT h.first, h.count, h.at_ms, h.blob FROM headway.history h
        WHERE h.partition = of_partition AND h.first >= start ORDER BY h.first
    LOOP
        CONTINUE WHEN one.first + one.count <= from_number;
        total := total + octet_length(one.blob);
        EXIT WHEN is_any AND total > most_bytes;
        is_any := true;
        first := one.first; count := one.count;
        at_ms := one.at_ms; blob := one.blob;
        RETURN NEXT;
    END LOOP;
END $$;
"""

STEPS: Final[tuple[Step, ...]] = (
    Step(TABLES + HISTORY + COMMIT + READS + INBOX, 1),
    Step(CLUSTER, 1),
    Step(COMMIT_2, 1),
    Step(CLUSTER_2, 1),
)

"""Where applications leave jobs inside their own transactions."""

from typing import Final

# Numbers are given when a row is written, and rows are seen when their transaction is
# committed: a reader that went by numbers would miss the slower of two. So rows carry
# the number of their transaction, and a reader goes on at the oldest one that was under
# way when it last looked.
INBOX: Final = """
CREATE TABLE headway.inbox(
    xact bigint NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    partition integer NOT NULL,
    queue text NOT NULL CHECK(length(queue) <= 128),
    jobs bytea NOT NULL CHECK(octet_length(jobs) <= 16777216),
    refused text,
    PRIMARY KEY(partition, xact, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    vacuum_truncate = off
);
ALTER TABLE headway.inbox ALTER jobs SET STORAGE EXTERNAL;

-- Runs with its owner's rights: an application needs no more than to be allowed to call
-- it, and can neither read nor change what others have left.
CREATE FUNCTION headway.enqueue_1(
    to_partition text, to_queue text, packed bytea, is_told boolean)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found integer;
BEGIN
    SELECT id INTO found FROM headway.partitions WHERE name = to_partition;
    IF found IS NULL THEN
        RAISE EXCEPTION 'there is no partition %', quote_literal(to_partition)
            USING ERRCODE = 'HW004';
    END IF;
    INSERT INTO headway.inbox(partition, xact, queue, jobs)
    VALUES(found, pg_current_xact_id()::text::bigint, to_queue, packed);
    IF is_told THEN
        -- However often in one transaction, whoever listens is told once.
        PERFORM pg_notify('headway_inbox_' || found, '');
    END IF;
END $$;
REVOKE ALL ON FUNCTION headway.enqueue_1(text, text, bytea, boolean) FROM PUBLIC;

-- The next of what is there, up to so many bytes; whose it is; whether that is all; and
-- the oldest transaction that is under way.
CREATE FUNCTION headway.inbox_1(
    of_partition integer, after_xact bigint, after_id bigint,
    most integer, most_bytes bigint)
RETURNS TABLE(epoch bigint, horizon bigint, is_all boolean,
    xact bigint, id bigint, queue text, jobs bytea)
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    SELECT owned.epoch, pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
        coalesce(entry.found < most AND entry.sum <= most_bytes, true),
        entry.xact, entry.id, entry.queue, entry.jobs
    FROM headway.partitions AS owned LEFT JOIN LATERAL (
        SELECT one.*, row_number() OVER running AS number,
            sum(octet_length(one.jobs)) OVER running AS total,
            sum(octet_length(one.jobs)) OVER () AS sum, count(*) OVER () AS found
        FROM (
            SELECT e.xact, e.id, e.queue, e.jobs FROM headway.inbox AS e
            WHERE e.partition = of_partition
                AND (e.xact, e.id) > (after_xact, after_id) AND e.refused IS NULL
            ORDER BY e.xact, e.id LIMIT most) AS one
        WINDOW running AS (ORDER BY one.xact, one.id)
    ) AS entry ON entry.number = 1 OR entry.total <= most_bytes
    WHERE owned.id = of_partition
$$;
"""

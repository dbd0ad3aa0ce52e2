"""The function that writes a batch, by the place of every row and no other way.

`commit_1` joins the rows it is given with the table. A plan that was made when the table
held little reads all of the partition for that, dead rows included, and is kept until
the server counts again: then a commit takes the longer, the more there is.
"""

from typing import Final

# Each row is looked up by its key, one after another, and changed where it was found:
# there is no join whose order the server could choose. Nobody else changes these rows
# between the two: the epoch is locked.
COMMIT_2: Final = """
CREATE FUNCTION headway.commit_2(
    of_partition integer, at_epoch bigint,
    put_seqs bigint[], put_lanes integer[], put_turns bytea[], put_firsts bigint[],
    put_seconds bigint[], put_changes bytea[], put_bodies bytea[], put_wholes bytea[],
    move_lanes integer[], move_turns bytea[], move_firsts bigint[],
    move_seconds bigint[], move_changes bytea[], move_seqs bigint[],
    move_wholes bytea[],
    end_seqs bigint[],
    fact_kinds text[], fact_names bytea[], fact_keys bytea[], fact_values bytea[],
    forgotten_kinds text[], forgotten_names bytea[],
    key_names bytea[], key_queues bytea[], key_keys bytea[], key_seqs bigint[],
    key_fingerprints bytea[], key_times bigint[], keys_before bigint,
    segment_first bigint, segment_count integer, segment_at bigint,
    segment_blob bytea, history_before bigint,
    result_seqs bigint[], result_untils bigint[], result_blobs bytea[],
    over_until bigint, over_most bigint,
    inbox_xacts bigint[], inbox_ids bigint[], inbox_refusals text[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    newest bigint;
    changed bigint;
    refused bigint;
BEGIN
    SELECT epoch INTO newest FROM headway.partitions
        WHERE id = of_partition FOR SHARE;
    IF newest IS DISTINCT FROM at_epoch THEN
        RAISE EXCEPTION 'fenced' USING ERRCODE = 'HW001', DETAIL = newest::text;
    END IF;
    IF cardinality(put_seqs) > 0 THEN
        INSERT INTO headway.jobs(
            partition, seq, lane, turn, first, second, change, body, whole_turn)
        SELECT of_partition, row.* FROM unnest(
            put_seqs, put_lanes, put_turns, put_firsts, put_seconds,
            put_changes, put_bodies, put_wholes) AS row;
    END IF;
    IF cardinality(move_seqs) > 0 THEN
        UPDATE headway.jobs AS job
        SET lane = row.lane, turn = row.turn, first = row.first,
            second = row.second, change = row.change, whole_turn = row.whole
        FROM (
            SELECT one.*, (
                SELECT found.ctid FROM headway.jobs AS found
                WHERE found.partition = of_partition AND found.seq = one.seq) AS place
            FROM unnest(
                move_lanes, move_turns, move_firsts, move_seconds, move_changes,
                move_seqs, move_wholes) AS one(
                    lane, turn, first, second, change, seq, whole)) AS row
        WHERE job.ctid = row.place;
        GET DIAGNOSTICS changed = ROW_COUNT;
        IF changed <> cardinality(move_seqs) THEN
            RAISE EXCEPTION '% moves, but % of these jobs exist',
                cardinality(move_seqs), changed USING ERRCODE = 'HW002';
        END IF;
    END IF;
    IF cardinality(end_seqs) > 0 THEN
        DELETE FROM headway.jobs WHERE ctid = ANY(ARRAY(
            SELECT (
                SELECT found.ctid FROM headway.jobs AS found
                WHERE found.partition = of_partition AND found.seq = row.seq)
            FROM unnest(end_seqs) AS row(seq)));
        GET DIAGNOSTICS changed = ROW_COUNT;
        IF changed <> cardinality(end_seqs) THEN
            RAISE EXCEPTION '% ends, but % of these jobs exist',
                cardinality(end_seqs), changed USING ERRCODE = 'HW002';
        END IF;
    END IF;
    IF cardinality(fact_kinds) > 0 THEN
        INSERT INTO headway.facts(partition, kind, name, key, value)
        SELECT of_partition, row.* FROM unnest(
            fact_kinds, fact_names, fact_keys, fact_values) AS row
        ON CONFLICT(partition, kind, name) DO UPDATE SET value = excluded.value;
    END IF;
    IF cardinality(forgotten_kinds) > 0 THEN
        DELETE FROM headway.facts WHERE ctid = ANY(ARRAY(
            SELECT (
                SELECT found.ctid FROM headway.facts AS found
                WHERE found.partition = of_partition
                    AND found.kind = row.kind AND found.name = row.name)
            FROM unnest(forgotten_kinds, forgotten_names) AS row(kind, name)));
    END IF;
    IF cardinality(key_names) > 0 THEN
        INSERT INTO headway.keys(
            partition, name, queue, key, seq, fingerprint, at_ms)
        SELECT of_partition, row.* FROM unnest(
            key_names, key_queues, key_keys, key_seqs, key_fingerprints, key_times) AS row
        ON CONFLICT(partition, name) DO UPDATE SET seq = excluded.seq,
            fingerprint = excluded.fingerprint, at_ms = excluded.at_ms;
    END IF;
    IF keys_before IS NOT NULL THEN
        DELETE FROM headway.keys
        WHERE partition = of_partition AND at_ms < keys_before;
    END IF;
    IF segment_first IS NOT NULL THEN
        INSERT INTO headway.history VALUES(
            of_partition, segment_first, segment_count, segment_at, segment_blob);
    END IF;
    IF history_before IS NOT NULL THEN
        -- A segment ends where the next begins; the newest has no next and stays.
        INSERT INTO headway.history_begins AS begins
        SELECT of_partition, first FROM headway.history
        WHERE partition = of_partition AND first <= history_before
        ORDER BY first DESC LIMIT 1
        ON CONFLICT(partition) DO UPDATE SET first = excluded.first
        WHERE begins.first < excluded.first;
    END IF;
    IF cardinality(result_seqs) > 0 THEN
        INSERT INTO headway.results(partition, seq, until_ms, blob)
        SELECT of_partition, row.*
        FROM unnest(result_seqs, result_untils, result_blobs) AS row;
    END IF;
    IF over_until IS NOT NULL THEN
        DELETE FROM headway.results WHERE ctid = ANY(ARRAY(
            SELECT found.ctid FROM headway.results AS found
            WHERE found.partition = of_partition AND found.until_ms <= over_until
            ORDER BY found.until_ms, found.seq LIMIT over_most));
    END IF;
    IF cardinality(inbox_ids) > 0 THEN
        DELETE FROM headway.inbox WHERE ctid = ANY(ARRAY(
            SELECT (
                SELECT found.ctid FROM headway.inbox AS found
                WHERE found.partition = of_partition
                    AND found.xact = row.xact AND found.id = row.id)
            FROM unnest(inbox_xacts, inbox_ids, inbox_refusals)
                AS row(xact, id, refused)
            WHERE row.refused IS NULL));
        GET DIAGNOSTICS changed = ROW_COUNT;
        UPDATE headway.inbox AS entry SET refused = row.refused
        FROM (
            SELECT one.refused, (
                SELECT found.ctid FROM headway.inbox AS found
                WHERE found.partition = of_partition
                    AND found.xact = one.xact AND found.id = one.id) AS place
            FROM unnest(inbox_xacts, inbox_ids, inbox_refusals)
                AS one(xact, id, refused)
            WHERE one.refused IS NOT NULL) AS row
        WHERE entry.ctid = row.place;
        GET DIAGNOSTICS refused = ROW_COUNT;
        IF changed + refused <> cardinality(inbox_ids) THEN
            RAISE EXCEPTION '% of the inbox, but % are there',
                cardinality(inbox_ids), changed + refused USING ERRCODE = 'HW002';
        END IF;
    END IF;
END $$;
"""

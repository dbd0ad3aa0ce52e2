"""The functions that read jobs in their order."""

from typing import Final

# By the index alone, from a place in it on. What the server guesses of a turn that has
# grown since it last counted may be wrong by a million rows, and a sort would read them
# all.
_BY_INDEX: Final = """SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_incremental_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off"""
_ROW: Final = """job.seq, job.lane, coalesce(job.whole_turn, job.turn),
    job.first, job.second, job.change, job.body"""
_COLUMNS: Final = """row_seq bigint, row_lane integer, row_turn bytea, row_first bigint,
    row_second bigint, row_change bytea, row_body bytea"""

READS: Final = f"""
CREATE FUNCTION headway.rows_1(
    of_partition integer, in_lane integer, in_turn bytea,
    after_first bigint, after_second bigint, after_seq bigint, most bigint)
RETURNS TABLE({_COLUMNS}) LANGUAGE plpgsql
{_BY_INDEX}
AS $$
BEGIN
    RETURN QUERY SELECT {_ROW} FROM headway.jobs AS job
    WHERE job.partition = of_partition AND job.lane = in_lane AND job.turn = in_turn
        AND (job.first, job.second, job.seq) > (after_first, after_second, after_seq)
    ORDER BY job.first, job.second, job.seq LIMIT most;
END $$;

-- A step down the index for a turn, however many rows it has.
CREATE FUNCTION headway.turns_1(
    of_partition integer, in_lane integer, start bytea, most bigint, each bigint)
RETURNS TABLE({_COLUMNS}) LANGUAGE plpgsql
{_BY_INDEX}
AS $$
DECLARE
    name bytea;
BEGIN
    SELECT job.turn INTO name FROM headway.jobs AS job
        WHERE job.partition = of_partition AND job.lane = in_lane AND job.turn >= start
        ORDER BY job.turn LIMIT 1;
    FOR number IN 1..most LOOP
        EXIT WHEN name IS NULL;
        RETURN QUERY SELECT {_ROW} FROM headway.jobs AS job
            WHERE job.partition = of_partition AND job.lane = in_lane
                AND job.turn = name
            ORDER BY job.first, job.second, job.seq LIMIT each;
        SELECT job.turn INTO name FROM headway.jobs AS job
            WHERE job.partition = of_partition AND job.lane = in_lane
                AND job.turn > name
            ORDER BY job.turn LIMIT 1;
    END LOOP;
END $$;
"""  # noqa: S608

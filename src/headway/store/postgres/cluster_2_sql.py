"""Queues that are given more partitions, and fewer: what is kept while that goes on."""

from typing import Final

CLUSTER_2: Final = """
ALTER TABLE headway.placements
    -- Those of its partitions that take no new jobs, and go once they hold none.
    ADD COLUMN leaving text[] NOT NULL DEFAULT '{}',
    -- The rules of all partitions together, while not each has its part of them yet.
    ADD COLUMN whole bytea,
    -- Up to so many partitions nodes may give it by themselves.
    ADD COLUMN most integer;

-- Changes where a queue is, if nobody else has since it was looked at. Answers the new
-- version, or nothing. Its home stays, and so does what is not leaving already.
CREATE FUNCTION headway.replace_1(
    of_queue text, at_version bigint, in_partitions text[], now_leaving text[],
    new_whole bytea, new_most integer)
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    had record;
    number bigint;
BEGIN
    PERFORM 1 FROM headway.map FOR UPDATE;
    SELECT * INTO had FROM headway.placements WHERE queue = of_queue;
    IF NOT FOUND OR had.version <> at_version THEN RETURN NULL; END IF;
    IF in_partitions[1] <> had.partitions[1]
        OR in_partitions[1] = ANY(now_leaving)
        OR NOT now_leaving <@ in_partitions THEN RETURN NULL; END IF;
    PERFORM 1 FROM unnest(had.partitions) AS one
        WHERE one <> ALL(in_partitions) AND one <> ALL(had.leaving);
    IF FOUND THEN RETURN NULL; END IF;
    PERFORM 1 FROM unnest(in_partitions) AS one
        WHERE one <> ALL(had.partitions) AND NOT EXISTS(
            SELECT FROM headway.holdings AS h
            WHERE h.partition = one AND h.state = 'open');
    IF FOUND THEN RETURN NULL; END IF;
    UPDATE headway.map SET version = version + 1 RETURNING version INTO number;
    UPDATE headway.placements SET partitions = in_partitions, leaving = now_leaving,
        whole = new_whole, most = new_most, version = number WHERE queue = of_queue;
    PERFORM pg_notify('headway_cluster', '');
    RETURN number;
END $$;
"""

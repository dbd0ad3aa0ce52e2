"""Who serves what: nodes with their leases, who holds which partition, where queues are.

Leases are counted by the database's clock alone. A node's row is changed by its own
renewals and read with a lock by whoever wants to take a partition of it: either the
renewal comes first, and the partition stays, or the renewal tells the node of its loss.
"""

from typing import Final

TABLES: Final = """
CREATE TABLE headway.nodes(
    name text COLLATE "C" PRIMARY KEY,
    -- Of one process: whoever comes later under the same name is another.
    life text NOT NULL,
    address text NOT NULL,
    version text NOT NULL,
    -- Names of the databases that it can open partitions in; '' is this one.
    databases text[] NOT NULL,
    started_at timestamptz NOT NULL,
    until timestamptz NOT NULL,
    -- By an operator, for good; and by the node itself, as it is about to end.
    is_draining boolean NOT NULL DEFAULT false,
    is_leaving boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500);

CREATE TABLE headway.holdings(
    partition text COLLATE "C" PRIMARY KEY,
    database text NOT NULL DEFAULT '',
    node text,
    -- Counts its holders: whoever held it before is another, whatever the name.
    claim bigint NOT NULL DEFAULT 0,
    -- Who is to have it next; and where an operator wants it to be, for good.
    wanted text,
    pinned text,
    state text NOT NULL DEFAULT 'open' CHECK(state IN ('open', 'closing'))
) WITH (fillfactor = 50);

CREATE TABLE headway.placements(
    queue text COLLATE "C" PRIMARY KEY CHECK(length(queue) <= 128),
    -- Its home first.
    partitions text[] NOT NULL CHECK(cardinality(partitions) > 0),
    version bigint NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX placements_by_version ON headway.placements(version);

CREATE TABLE headway.shared(name text PRIMARY KEY, value bytea NOT NULL);

-- Versions are given under the lock of this row: whoever has seen one has seen all
-- before it. It counts the queues, too.
CREATE TABLE headway.map(
    id boolean PRIMARY KEY DEFAULT true CHECK(id),
    version bigint NOT NULL,
    queues bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO headway.map(version, queues) VALUES(0, 0);
"""

NODES: Final = """
-- Renews the lease of a node. Answers whether it has one: not while an earlier process
-- of its name may still have one, and never again after a later one came.
CREATE FUNCTION headway.beat_1(
    of_node text, of_life text, at_address text, of_version text,
    with_databases text[], lease_ms bigint, is_first boolean, is_going boolean)
RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lease interval := lease_ms * interval '1 millisecond';
BEGIN
    UPDATE headway.nodes AS n
        SET until = clock_timestamp() + lease, is_leaving = is_going
        WHERE n.name = of_node AND n.life = of_life;
    IF FOUND THEN RETURN true; END IF;
    IF NOT is_first THEN RETURN false; END IF;
    INSERT INTO headway.nodes AS n(
        name, life, address, version, databases, started_at, until)
    VALUES(of_node, of_life, at_address, of_version, with_databases,
        clock_timestamp(), clock_timestamp() + lease)
    ON CONFLICT(name) DO UPDATE SET life = excluded.life, address = excluded.address,
        version = excluded.version, databases = excluded.databases,
        started_at = clock_timestamp(), until = clock_timestamp() + lease,
        is_leaving = false
    WHERE n.until <= clock_timestamp();
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM pg_notify('headway_cluster', '');
    RETURN true;
END $$;

-- Ends a lease before its time. Nothing is held under it any more.
CREATE FUNCTION headway.leave_1(of_node text, of_life text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE headway.nodes SET until = clock_timestamp()
        WHERE name = of_node AND life = of_life AND until > clock_timestamp();
    PERFORM pg_notify('headway_cluster', '');
END $$;

CREATE FUNCTION headway.drain_1(of_node text, is_on boolean)
RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE headway.nodes SET is_draining = is_on WHERE name = of_node;
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM pg_notify('headway_cluster', '');
    RETURN true;
END $$;
"""

HOLDINGS: Final = """
-- Takes a partition that nobody holds, or whose holder's lease is over. Answers the
-- number of the claim, or nothing.
CREATE FUNCTION headway.claim_1(of_partition text, for_node text, of_life text)
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held record;
    held_until timestamptz;
    number bigint;
BEGIN
    PERFORM 1 FROM headway.nodes
        WHERE name = for_node AND life = of_life AND until > clock_timestamp()
        FOR SHARE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    SELECT * INTO held FROM headway.holdings
        WHERE partition = of_partition FOR UPDATE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF held.node IS NOT NULL AND held.node <> for_node THEN
        -- The lock first, and then the clock: a renewal under way is waited for.
        SELECT until INTO held_until FROM headway.nodes
            WHERE name = held.node FOR SHARE;
        IF held_until > clock_timestamp() THEN RETURN NULL; END IF;
    END IF;
    UPDATE headway.holdings SET node = for_node, wanted = NULL, claim = claim + 1
        WHERE partition = of_partition RETURNING claim INTO number;
    PERFORM pg_notify('headway_cluster', '');
    RETURN number;
END $$;

-- Lets go of a partition, for whoever is to have it next.
CREATE FUNCTION headway.release_1(
    of_partition text, of_node text, of_claim bigint, for_node text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE headway.holdings SET node = NULL, wanted = for_node
        WHERE partition = of_partition AND node = of_node AND claim = of_claim;
    PERFORM pg_notify('headway_cluster', '');
END $$;

CREATE FUNCTION headway.pin_1(of_partition text, at_node text)
RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE headway.holdings SET pinned = at_node WHERE partition = of_partition;
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM pg_notify('headway_cluster', '');
    RETURN true;
END $$;

-- Adds partitions that are not there yet; answers how many. Where only a first node may
-- begin with them, none is added beside others.
CREATE FUNCTION headway.add_partitions_1(
    new_names text[], in_database text, is_first_only boolean, most integer)
RETURNS integer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    there integer;
    added integer;
BEGIN
    PERFORM 1 FROM headway.map FOR UPDATE;
    SELECT count(*) INTO there FROM headway.holdings;
    IF is_first_only AND there > 0 THEN RETURN 0; END IF;
    INSERT INTO headway.holdings(partition, database)
        SELECT name, in_database FROM unnest(new_names) AS name ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS added = ROW_COUNT;
    IF there + added > most THEN
        RAISE EXCEPTION 'a cluster has at most % partitions', most
            USING ERRCODE = 'HW005';
    END IF;
    PERFORM pg_notify('headway_cluster', '');
    RETURN added;
END $$;

-- From now on no queue is placed there; answers whether there is such a partition.
CREATE FUNCTION headway.set_state_1(of_partition text, new_state text)
RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE headway.holdings SET state = new_state WHERE partition = of_partition;
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM pg_notify('headway_cluster', '');
    RETURN true;
END $$;

-- Takes a partition out of the cluster that is closing and has no queue. What it has
-- stored stays.
CREATE FUNCTION headway.drop_partition_1(of_partition text)
RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now_state text;
    named text;
BEGIN
    PERFORM 1 FROM headway.map FOR UPDATE;
    SELECT state INTO now_state FROM headway.holdings
        WHERE partition = of_partition FOR UPDATE;
    IF NOT FOUND THEN RETURN 'it is not there'; END IF;
    IF now_state <> 'closing' THEN RETURN 'it is open'; END IF;
    SELECT queue INTO named FROM headway.placements
        WHERE of_partition = ANY(partitions) ORDER BY queue LIMIT 1;
    IF FOUND THEN RETURN format('queue %s is there', quote_literal(named)); END IF;
    PERFORM 1 FROM headway.partitions AS p WHERE p.name = of_partition AND (
        EXISTS(SELECT FROM headway.jobs AS j WHERE j.partition = p.id) OR
        EXISTS(SELECT FROM headway.inbox AS i WHERE i.partition = p.id));
    IF FOUND THEN RETURN 'it has jobs'; END IF;
    PERFORM 1 FROM headway.holdings WHERE partition <> of_partition LIMIT 1;
    IF NOT FOUND THEN RETURN 'it is the only one'; END IF;
    DELETE FROM headway.holdings WHERE partition = of_partition;
    PERFORM pg_notify('headway_cluster', '');
    RETURN '';
END $$;
"""

PLACEMENTS: Final = """
-- The partitions of a queue: those it has, or else the given ones from now on. Nothing
-- if one of these is not open (any more).
CREATE FUNCTION headway.place_1(of_queue text, in_partitions text[], most bigint)
RETURNS text[] LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_in text[];
    number bigint;
BEGIN
    SELECT partitions INTO found_in FROM headway.placements WHERE queue = of_queue;
    IF FOUND THEN RETURN found_in; END IF;
    UPDATE headway.map SET version = version + 1 RETURNING version INTO number;
    SELECT partitions INTO found_in FROM headway.placements WHERE queue = of_queue;
    IF FOUND THEN RETURN found_in; END IF;
    PERFORM 1 FROM unnest(in_partitions) AS one
        LEFT JOIN headway.holdings AS h ON h.partition = one AND h.state = 'open'
        WHERE h.partition IS NULL;
    IF FOUND THEN RETURN NULL; END IF;
    UPDATE headway.map SET queues = queues + 1 WHERE queues < most;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'a cluster has at most % queues', most
            USING ERRCODE = 'HW006';
    END IF;
    INSERT INTO headway.placements VALUES(of_queue, in_partitions, number);
    PERFORM pg_notify('headway_cluster', '');
    RETURN in_partitions;
END $$;

-- A queue was found in a partition: whatever else it has, it has this one.
CREATE FUNCTION headway.found_1(of_queues text[], in_partition text)
RETURNS integer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    number bigint;
    changed integer;
BEGIN
    PERFORM 1 FROM unnest(of_queues) AS one
        LEFT JOIN headway.placements AS p
            ON p.queue = one AND in_partition = ANY(p.partitions)
        WHERE p.queue IS NULL LIMIT 1;
    IF NOT FOUND THEN RETURN 0; END IF;
    PERFORM 1 FROM headway.map FOR UPDATE;
    UPDATE headway.map SET version = version + 1, queues = queues + (
        SELECT count(*) FROM (SELECT unnest(of_queues) EXCEPT SELECT p.queue
            FROM headway.placements AS p WHERE p.queue = ANY(of_queues)) AS new)
        RETURNING version INTO number;
    INSERT INTO headway.placements AS p
    SELECT DISTINCT one, ARRAY[in_partition], number FROM unnest(of_queues) AS one
    ON CONFLICT(queue) DO UPDATE
        SET partitions = p.partitions || in_partition, version = excluded.version
        WHERE NOT in_partition = ANY(p.partitions);
    GET DIAGNOSTICS changed = ROW_COUNT;
    PERFORM pg_notify('headway_cluster', '');
    RETURN changed;
END $$;
"""

CLUSTER: Final = TABLES + NODES + HOLDINGS + PLACEMENTS

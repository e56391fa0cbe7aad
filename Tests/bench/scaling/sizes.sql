-- Bytes of a row in each table, and of its entries in the table's indexes.
SELECT
    relname AS "table", n_live_tup AS "rows",
    pg_relation_size(relid) / greatest(n_live_tup, 1) AS "bytes a row",
    pg_indexes_size(relid) / greatest(n_live_tup, 1) AS "of indexes a row",
    pg_size_pretty(pg_total_relation_size(relid)) AS "in all"
FROM pg_stat_user_tables
WHERE n_live_tup > 100
ORDER BY pg_total_relation_size(relid) DESC;

-- The indexes that are worth a word.
SELECT
    indexrelname AS "index", pg_relation_size(indexrelid) / greatest(n_live_tup, 1) AS "bytes a row",
    pg_size_pretty(pg_relation_size(indexrelid)) AS "in all"
FROM pg_stat_user_indexes JOIN pg_stat_user_tables USING (relid)
WHERE pg_relation_size(indexrelid) > 1000000
ORDER BY pg_relation_size(indexrelid) DESC;

-- $1 text: table
-- $2 text: partition
SELECT drop_partition($1, $2)

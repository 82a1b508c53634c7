#!/bin/sh
# The entry point of the published image, as far as the composition needs it: makes the database at the first start, and runs
# what is mounted for that.
set -eu
PATH=/usr/lib/postgresql/15/bin:$PATH
data=/var/lib/postgresql/data
mkdir -p /var/run/postgresql
chown postgres: "$data" /var/run/postgresql
if [ ! -s "$data/PG_VERSION" ]; then
    password=$(mktemp)
    cat "$POSTGRES_PASSWORD_FILE" >"$password"
    chown postgres: "$password"
    gosu postgres initdb --pgdata "$data" --username "$POSTGRES_USER" --pwfile "$password" --auth-local trust --auth-host scram-sha-256
    rm "$password"
    echo 'host all all all scram-sha-256' >>"$data/pg_hba.conf"
    # On its socket alone, until it is complete.
    gosu postgres pg_ctl --pgdata "$data" --wait --options "-c listen_addresses=''" start
    createdb --username "$POSTGRES_USER" "$POSTGRES_DB"
    for script in /docker-entrypoint-initdb.d/*.sh; do sh "$script"; done
    gosu postgres pg_ctl --pgdata "$data" --wait stop
fi
exec gosu postgres postgres -D "$data" -c listen_addresses='*'

#!/bin/sh
# Makes the services' roles, with the passwords that init.sh chose. `earshot migrate` gives them their rights.
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --file /run/earshot/roles.sql

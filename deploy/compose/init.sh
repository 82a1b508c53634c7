#!/bin/sh
# Makes what the composition keeps secret, once: passwords, addresses that hold them, the encryption key, and the
# broker's users. What is there already stays, so an upgrade changes nothing; `docker compose down --volumes` forgets
# all of it, with the data.
#
#   init.sh SECRETS DEFINITIONS    both folders; SECRETS has postgres/, rabbitmq/ and one folder for each service
set -eu
umask 022
secrets=$1
definitions=$2
services='api-gateway manager-compiler scanner webhook-dispatcher'

random() { # BYTES: random bytes as hexadecimal digits
    od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'
}

write() { # FILE: stdin, whole or not at all
    cat >"$1.new"
    chmod 444 "$1.new" # a volume is mounted only where it is needed, each under a user of its own
    mv "$1.new" "$1"
}

# The mark comes last: the next run replaces what an interrupted run left, before any server has seen it.
if [ -e "$secrets/postgres/complete" ]; then
    echo 'the secrets are there'
    exit 0
fi

database=$(random 24)
printf %s "$database" | write "$secrets/postgres/password"
roles=
echo "2026-11:$(head -c 32 /dev/urandom | base64)" >"$secrets/rabbitmq/key.tmp"
users=
for service in $services operator; do
    password=$(random 24)
    users="$users${users:+, }{\"name\": \"earshot-$service\", \"password\": \"$password\", \"tags\": \"\"}"
    folder=$secrets/$service
    # The operator migrates and owns the tables; `earshot migrate` gives the others what they need.
    if [ "$service" = operator ]; then
        role=earshot role_password=$database
    else
        role=earshot_$(printf %s "$service" | tr - _) role_password=$(random 24)
        roles="${roles}CREATE ROLE $role LOGIN PASSWORD '$role_password';
"
    fi
    printf 'postgres://%s:%s@postgres:5432/earshot?sslmode=disable' "$role" "$role_password" | write "$folder/database-url"
    printf 'amqp://earshot-%s:%s@rabbitmq:5672/earshot' "$service" "$password" | write "$folder/bus-url"
    case $service in
    api-gateway | webhook-dispatcher) write "$folder/encryption-keys" <"$secrets/rabbitmq/key.tmp" ;;
    esac
done
rm "$secrets/rabbitmq/key.tmp"
printf %s "$roles" | write "$secrets/postgres/roles.sql"

# One file: users, then what the other two hold between their first and last lines.
{
    printf '{\n  "users": [%s],\n' "$users"
    sed '1d;$d' "$definitions/permissions.json"
    echo ','
    sed 1d "$definitions/definitions.json"
} | write "$secrets/rabbitmq/definitions.json"

: | write "$secrets/postgres/complete"
echo 'made the secrets'

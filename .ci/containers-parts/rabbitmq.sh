#!/bin/sh
# The entry point of the published image, as far as the composition needs it.
set -eu
chown -R rabbitmq: /var/lib/rabbitmq
export HOME=/var/lib/rabbitmq RABBITMQ_CONFIG_FILES=/etc/rabbitmq/conf.d RABBITMQ_LOGS=-
exec gosu rabbitmq /usr/lib/rabbitmq/bin/rabbitmq-server

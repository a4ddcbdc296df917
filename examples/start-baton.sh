#!/bin/sh
# One epoch of Baton, for baton-restarter: each SIGHUP to the wrapper runs this script again, with the next number. Everything
# that may change between epochs, including options and versions, belongs here.
#
#   baton-restarter examples/start-baton.sh

# exec, so that the process that the wrapper supervises is Baton itself: it receives signals, and can report that it is live.
exec "${BATON:-baton}" \
  --config-path "${BATON_CONFIG:-/etc/baton/baton.yaml}" \
  --restart-epoch "${RESTART_EPOCH:?is set by baton-restarter}" \
  --drain-time-s "${BATON_DRAIN_TIME_S:-60}" \
  --parent-shutdown-time-s "${BATON_PARENT_SHUTDOWN_TIME_S:-90}" \
  "$@"

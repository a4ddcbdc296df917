#!/bin/sh
# One epoch of Baton, for baton-restarter: each SIGHUP to the wrapper runs this script once more, with the next number.
# Whatever may change from one epoch to the next, options and versions too, belongs here.
#
#   baton-restarter examples/start-baton.sh

# exec, so that the process that the wrapper knows is Baton itself: signals reach it, and it can say that it is live.
exec "${BATON:-baton}" \
  --config-path "${BATON_CONFIG:-/etc/baton/baton.yaml}" \
  --restart-epoch "${RESTART_EPOCH:?is set by baton-restarter}" \
  --drain-time-s "${BATON_DRAIN_TIME_S:-60}" \
  --parent-shutdown-time-s "${BATON_PARENT_SHUTDOWN_TIME_S:-90}" \
  "$@"

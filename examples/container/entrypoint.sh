#!/bin/sh
# Process 1 of the container becomes the wrapper, by exec: signals to the container reach it, and it reaps orphans. What is
# given to `docker run` behind the image's name goes to each epoch of Baton.
set -eu

exec baton-restarter ${BATON_RESTARTER_OPTIONS:-} start-baton.sh "$@"

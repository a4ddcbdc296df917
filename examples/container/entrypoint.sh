#!/bin/sh
# Process 1 of the container becomes the wrapper by exec, so that it receives the container's signals and reaps orphans. Arguments
# of `docker run` after the image's name are passed to each epoch of Baton.
set -eu

exec baton-restarter ${BATON_RESTARTER_OPTIONS:-} start-baton.sh "$@"

#!/bin/sh
# Builds the models of this kit with trtexec on the board and packs results.zip. Needs no root and no network.
#
#   sh run.sh               run all builds, and continue where an earlier call was stopped
#   sh run.sh --list        what will be built, how long it takes, and what the results will contain
#   sh run.sh --again ID    run a build again
#   sh run.sh --pack        pack what there is
#
# TRTEXEC and PYTHON name the programs, if they are not found.
set -eu

folder=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

find_python() {
    for name in "${PYTHON:-}" python3 python3.10 python3.8 python3.6 /usr/bin/python3; do
        if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1; then
            command -v "$name"
            return 0
        fi
    done
    return 1
}

find_trtexec() {
    for name in "${TRTEXEC:-}" trtexec /usr/src/tensorrt/bin/trtexec /usr/local/tensorrt/bin/trtexec; do
        if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1; then
            command -v "$name"
            return 0
        fi
    done
    return 1
}

if ! python=$(find_python); then
    echo "Python 3.6 or newer was not found. Name it: PYTHON=/path/to/python3 sh run.sh" >&2
    exit 2
fi
if ! trtexec=$(find_trtexec); then
    trtexec=""
fi

cd -- "$folder"
exec "$python" on_board.py --trtexec "$trtexec" "$@"

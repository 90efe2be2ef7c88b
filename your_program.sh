#!/bin/sh
# Starts one broker with the properties file that is named: ./your_program.sh /tmp/server.properties
# In a fresh clone it builds .venv first, unless sskafka is installed already.
set -e
here=$(cd "$(dirname "$0")" && pwd)
python="$here/.venv/bin/python"

if [ -x "$here/.venv/bin/sskafka" ]; then
    exec "$python" -m sskafka start "$@"
fi
if command -v sskafka >/dev/null 2>&1; then
    exec sskafka start "$@"
fi

echo "building $here/.venv" >&2
[ -x "$python" ] || python3 -m venv "$here/.venv"
"$python" -m pip install --quiet --disable-pip-version-check -c "$here/constraints.txt" -e "$here[fast]" >&2
exec "$python" -m sskafka start "$@"

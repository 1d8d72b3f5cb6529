"""Shell that the chart puts into containers: the twin of ``templates/_scripts.tpl``."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["DIAL_SCRIPT", "RANK_SCRIPT", "hold_script"]

DIAL_SCRIPT = r'''dial() {
  if command -v nc >/dev/null 2>&1; then nc -z -w 2 "$1" "$2"
  elif command -v python3 >/dev/null 2>&1; then
    python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2).close()' "$1" "$2"
  else timeout 2 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2"
  fi
}
status=0
for address in "$@"; do
  left=30
  until dial "${address%:*}" "${address##*:}" 2>/dev/null; do
    left=`expr "$left" - 1`
    if [ "$left" -eq 0 ]; then echo "no answer: $address"; status=1; break; fi
    sleep 2
  done
  if [ "$left" -ne 0 ]; then echo "answers: $address"; fi
done
exit "$status"'''

# Runs its arguments as the process of a rank: the first of its group, and its index more.
RANK_SCRIPT = 'DI_RANK=`expr "$DI_FIRST_RANK" + "$SYMPH_INDEX"`; export DI_RANK; exec "$@"'

_HOLD_SCRIPT = r'''trap 'kill "$child" 2>/dev/null; exit 143' TERM
"$@" & child=$!
wait "$child" || exit $?
echo "symph: ended well and is held up"
set --@PORTS@
if command -v python3 >/dev/null 2>&1; then
  python3 -c '
import socket, sys, time
servers = [socket.create_server(("", int(port))) for port in sys.argv[1:]]
while True: time.sleep(3600)
' "$@" & child=$!
elif command -v nc >/dev/null 2>&1; then
  for port in "$@"; do (while :; do nc -l -p "$port" >/dev/null </dev/null; done) & done
  sleep 2147483647 & child=$!
else
  sleep 2147483647 & child=$!
fi
wait "$child"'''


def hold_script(ports: Iterable[int]) -> str:
    """Runs its arguments and, after they succeeded, listens on `ports` in their place until it is stopped."""
    return _HOLD_SCRIPT.replace("@PORTS@", "".join(f" {port}" for port in ports))

trap 'kill "$child" 2>/dev/null; exit 143' TERM
"$@" & child=$!
wait "$child" || exit $?
echo "symph: ended well and is held up"
set --@PORTS@
if command -v python3 >/dev/null 2>&1; then
  python3 -c '
import select, socket, sys
servers = [socket.create_server(("", int(port))) for port in sys.argv[1:]]
while True:
  for server in select.select(servers, [], [])[0]: server.accept()[0].close()
' "$@" & child=$!
elif command -v nc >/dev/null 2>&1; then
  for port in "$@"; do (while :; do nc -l -p "$port" >/dev/null </dev/null; done) & done
  sleep 2147483647 & child=$!
else
  sleep 2147483647 & child=$!
fi
wait "$child"

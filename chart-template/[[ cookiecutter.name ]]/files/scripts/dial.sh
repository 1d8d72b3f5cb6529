dial() {
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
exit "$status"

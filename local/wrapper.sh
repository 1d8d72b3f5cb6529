# The pane's own program: runs one process the way a pod would and notes how it ended.
#   sh wrapper.sh FOLDER
# FOLDER holds `start` (what becomes the process), and may hold `go` (a pipe to wait at), `mounts` (what only this
# process sees), `plain` (no terminal: stdin is empty, output goes to the log) and `limited` (asked at the end, what
# limits had to do with it). It gets `pid`, `exit` and perhaps `limit`, and `hup` if its pane is closed.
# With a terminal no program is started but the process itself, and `sleep` if tmux is busy at its end: at hundreds each
# one more is what takes the time.
cd "$1" || exit 125
# A handler that does nothing, unlike an ignored signal, is not inherited by the process.
trap : INT QUIT TERM
# The kernel sends it to this shell alone, which gets to it once the process has ended.
trap ': >hup' HUP
# All that tmux adds and what its server was started with (local/up.py): the process has its own exact environment.
unset HOME LANG PATH TERM COLORTERM SHELL TERM_PROGRAM TERM_PROGRAM_VERSION TMUX TMUX_PANE
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
if [ -p go ]; then
    read -r _ <go || exit 125
fi
become() {
    if [ -f mounts ]; then
        exec unshare --mount --propagation slave /bin/sh ./mounts /bin/sh ./start
    fi
    # Read, not run by another shell: one program less to start for each process.
    . ./start
}
ended() { # of the process, and perhaps what limits had to do with it
    status=$?
    umask 077
    if [ -f limited ]; then . ./limited; fi
    # Written over the placeholder of the same length, which works on a full disk. It is read when this shell is gone,
    # so no rename is needed.
    printf '%-3s\n' "$status" 1<>exit
}
# This shell would write "Terminated" and the like among the output of the process.
exec 3>&2 2>/dev/null
if [ -f plain ]; then
    # The terminal shows the end of the log, which goes there first; once more and whole when no more can come.
    clear='\033[H\033[2J\033[3J'
    printf "$clear"
    tail -c 65536 -f log </dev/null 3>&- &
    (become) </dev/null >>log 2>&1 3>&-
    ended
    # If it has ended before, another program may have its number by now, but none of those is a child of this shell.
    read -r _ _ _ parent _ <"/proc/$!/stat" && [ "$parent" = $$ ] && kill $!
    printf "$clear"
    exec tail -c 65536 log
fi
(become) 2>&3 3>&-
ended
# Once this shell has ended, tmux closes the terminal if the kernel reports no unread output (FIONREAD). The kernel counts
# output only after a delay, so the last lines could be lost. If tmux sleeps in poll, it polls the terminal again before
# it learns of the end, which makes the count right. If tmux works, wait: it may have polled already.
for pause in : : : : 'sleep 0.1'; do
    read -r place <"/proc/$PPID/wchan"
    case $place in *poll*) break ;; esac
    $pause
done

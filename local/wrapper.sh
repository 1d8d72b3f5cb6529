# The pane's own program: runs one process the way a pod would and notes how it ended.
#   env -i sh wrapper.sh FOLDER
# FOLDER holds `start` (what becomes the process), and may hold `go` (a pipe to wait at), `mounts` (what only this
# process sees) and `plain` (no terminal: stdin is empty, output goes to the log). It gets `pid` and `exit`.
cd "$1" || exit 125
# A handler that does nothing, unlike an ignored signal, is not inherited by the process.
trap : HUP INT QUIT TERM
if [ -p go ]; then
    read -r _ <go || exit 125
    rm -f go
fi
become() {
    if [ -f mounts ]; then
        exec unshare --mount --propagation private /bin/sh ./mounts /bin/sh ./start
    fi
    # Read, not run by another shell: one program less to start for each process.
    . ./start
}
# This shell would write "Terminated" and the like among the output of the process.
exec 3>&2 2>/dev/null
if [ -f plain ]; then
    (become) </dev/null >>log 2>&1 3>&-
else
    (become) 2>&3 3>&-
fi
status=$?
# Written beside and renamed: whoever sees the file sees the whole status.
echo "$status" >exit.new
mv exit.new exit

# Shows files and folders at the paths a pod has them, in a private mount namespace; the machine itself is not changed.
mark() { # a mount of the run's own, by which everything in this namespace is known to belong to it
    scratch=$run/scratch
    mkdir -p "$scratch" && mount -t tmpfs -o mode=0755 symph "$scratch" || exit 125
}
unlisted() { # a tmux built with utempter starts this helper twice for each pane, so that `who` shows it as a login
    for helper in /usr/lib/*/utempter/utempter /usr/lib/utempter/utempter /usr/libexec/utempter/utempter; do
        if [ -f "$helper" ]; then mount --bind /dev/null "$helper" || :; fi
    done
}
bind() { # SOURCE TARGET MODE
    if [ ! -e "$2" ]; then
        above=$2
        while [ ! -e "$above" ]; do above=$(dirname -- "$above"); done
        if [ "$above" = / ]; then
            echo "symph: $2 cannot be shown: this machine has no folder to hold it; make it once: mkdir -p $2" >&2
            exit 125
        fi
        layer=$scratch/$(echo "$above" | tr / _)
        if [ ! -d "$layer" ]; then
            mkdir "$layer" "$layer/upper" "$layer/work" || exit 125
            mount -t overlay -o "lowerdir=$above,upperdir=$layer/upper,workdir=$layer/work" symph "$above" || exit 125
        fi
        if [ -d "$1" ]; then mkdir -p "$2"; else mkdir -p "$(dirname -- "$2")" && : >"$2"; fi || exit 125
    fi
    mount --bind "$1" "$2" || exit 125
    if [ "$3" = ro ]; then mount -o remount,bind,ro "$2" || exit 125; fi
}

# Shows files and folders at the paths a pod has them, in a private mount namespace; the machine itself is not changed.
root=
mark() { # a mount of the run's own, by which everything in this namespace is known to belong to it
    scratch=$run/scratch
    mkdir -p "$scratch" && mount -t tmpfs -o mode=0755 symph "$scratch" || exit 125
}
unlisted() { # a tmux built with utempter starts this helper twice for each pane, so that `who` shows it as a login
    for helper in /usr/lib/*/utempter/utempter /usr/lib/utempter/utempter /usr/libexec/utempter/utempter; do
        if [ -f "$helper" ]; then mount --bind /dev/null "$helper" || :; fi
    done
}
top() { # NAME SOURCE: something at the root of the machine that may not be there; it is a folder where SOURCE is one
    if [ -e "/$1" ] || [ -e "$root/$1" ]; then return; fi
    [ -n "$root" ] || new_root
    if [ -d "$2" ]; then mkdir "$root/$1"; else : >"$root/$1"; fi || exit 125
}
new_root() { # a root of the run's own, with everything in place that is in the machine's
    root=$scratch/root
    mkdir "$root" && mount -t tmpfs -o mode=0755 symph "$root" && mount --make-unbindable "$root" || exit 125
    for entry in /* /.[!.]*; do
        if [ -L "$entry" ]; then
            cp -P "$entry" "$root$entry"
        elif [ -d "$entry" ]; then
            mkdir "$root$entry" && mount --rbind "$entry" "$root$entry"
        elif [ -f "$entry" ]; then
            : >"$root$entry" && mount --bind "$entry" "$root$entry"
        fi || exit 125
    done
}
settle() { # in the new root, if one was needed
    if [ -z "$root" ]; then return; fi
    old=/.symph-root
    mkdir "$root$old" && PATH=$PATH:/usr/sbin:/sbin pivot_root "$root" "$root$old" || exit 125
    cd / || exit 125
    # The program umount serves root alone, even where the kernel would let others; then the old root is covered.
    { umount -l "$old" 2>/dev/null && rmdir "$old"; } || mount -t tmpfs -o ro symph "$old" || exit 125
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

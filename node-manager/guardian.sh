#!/bin/sh
# Outlives its node manager by a moment, to leave no process of a host behind. The node manager holds the other end of our stdin and writes
#   + <pid> <start> <mark>   a host, leader of its own process group; <start> is field 22 of /proc/<pid>/stat, <mark> a NAME=VALUE of its environment
#   - <pid>                  its whole group is gone
# When stdin ends, the node manager is gone, however it died: every group that is still listed gets SIGKILL,
# and so does whatever left its group but has the mark in its environment.
# The host itself has a parent-death signal too; its children have not, and they are whom this is for.
trap '' HUP INT TERM QUIT PIPE
hosts=
while read -r sign pid start mark; do
  case $sign in
    +) hosts="$hosts $pid:$start:$mark" ;;
    -)
      rest=
      for host in $hosts; do [ "${host%%:*}" = "$pid" ] || rest="$rest $host"; done
      hosts=$rest
      ;;
  esac
done
marks=
for host in $hosts; do
  pid=${host%%:*}
  start=${host#*:}
  marks="$marks -e ${start#*:}"
  start=${start%%:*}
  # A number that belongs to another process by now is left alone. No process of that number: the leader is gone, and its group kept the number taken.
  if stat=$(cat "/proc/$pid/stat" 2>/dev/null) && [ -n "$stat" ]; then
    # The name in parentheses may hold blanks; after it, field 22 is the 20th.
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    [ "${20}" = "$start" ] || continue
  fi
  kill -s KILL -- "-$pid" 2>/dev/null
done
[ -n "$marks" ] || exit 0
# shellcheck disable=SC2086
for file in $(grep -lzxF $marks /proc/[0-9]*/environ 2>/dev/null); do
  pid=${file#/proc/}
  kill -s KILL "${pid%/environ}" 2>/dev/null
done
exit 0

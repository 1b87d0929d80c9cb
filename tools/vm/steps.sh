# SPDX-License-Identifier: GPL-2.0
# The steps of the set-up. The output of the commands of a step goes to a log. A
# terminal shows the progress of the step in one line, which is rewritten. If the output
# is not a terminal, a line is printed when the step begins, another one after half a
# minute, and further ones at growing intervals. A step that fails ends the script, and
# the end of the log and its path are printed. Sourced by lib.sh.

log= shown=2 step= watcher=

# log_to FILE: the following steps write to FILE, which begins anew.
log_to() {
	log=$1
	mkdir -p "${log%/*}"
	: >"$log"
	exec {shown}>&2
	trap step_ended EXIT
}

# step TITLE COMMAND...: COMMAND must not depend on its output being seen, except for
# what say prints.
step() {
	printf '== %s\n' "$1" >>"$log"
	watch "$1"
	shift
	"$@" >>"$log" 2>&1 6>&-
	step_over
}

# watch TITLE: show how far the log is, until step_over, or a line is written to
# descriptor 6, or this script ends.
watch() {
	step=$1
	[ -t "$shown" ] || printf '  %s\n' "$step" >&"$shown"
	exec 6> >(watch_step)
	watcher=$!
}

step_over() {
	exec 6>&-
	wait "$watcher" || true
	step=
}

# The EXIT trap: only a step that failed is still there.
step_ended() {
	local rc=$? title=$step
	[ -n "$title" ] || exit "$rc"
	# Within a function that was called without descriptor 6, its end is not to be had.
	kill "$watcher" 2>/dev/null || true
	step_over
	# A script that a signal ends has the status of what came before.
	[ "$rc" != 0 ] && [ "$rc" -lt 128 ] || exit "$rc"
	{
		clear_line
		printf '%s: %s: failed (status %d); the end of %s:\n' "${0##*/}" "$title" "$rc" "$log"
		log_lines | tail -n 30 | sed 's/^/  | /'
	} >&"$shown"
	exit "$rc"
}

# The log without apt's notes on its progress.
log_lines() { tr '\r' '\n' <"$log" | grep -Ev '^(dl|pm)status:' || true; }

clear_line() { [ ! -t "$shown" ] || printf '\r\033[K'; }

# The last line of the log, short, with apt's percentage if it has one.
last_line() {
	local line
	line=$(tail -n 1 "$log" | tr '\r\t' '\n ' | sed -n 's/^ *//; /./p' | tail -n 1)
	case $line in
	[dp][lm]status:*) line=$(sed 's/^[^:]*:[^:]*:\([0-9]*\)[^:]*:/\1 % /' <<<"$line") ;;
	"== "*) line= ;;
	esac
	printf '%s' "${line:0:50}"
}

watch_step() {
	local every=30 start=$SECONDS terminal= rc
	[ ! -t "$shown" ] || terminal=1 every=1
	while :; do
		[ -z "$terminal" ] ||
			printf '\r\033[K  %s: %d s  %s' "${step:0:50}" $((SECONDS - start)) "$(last_line)" >&"$shown"
		rc=0
		read -rt "$every" || rc=$?
		[ "$rc" -gt 128 ] || break
		[ -n "$terminal" ] || {
			printf '    %d s  %s\n' $((SECONDS - start)) "$(last_line)" >&"$shown"
			every=$((every * 2))
		}
	done
	[ -z "$terminal" ] || printf '\r\033[K  %s: %d s\n' "$step" $((SECONDS - start)) >&"$shown"
}

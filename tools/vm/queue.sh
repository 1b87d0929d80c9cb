# SPDX-License-Identifier: GPL-2.0
# The guest's tests in several guests side by side: each guest takes the next test that
# no other has taken, the longest first. Sourced after tally.sh.
#
#   queue_open DIR ARGUMENT...   a queue of the tests that selftests/run lists for ARGUMENT
#   queue_guest NAME RUN...      a guest takes tests from it until none is left; RUN is
#                                tools/vm/run and its options. In any number of processes
#                                at once, from the start or later
#   queue_close                  what no guest finished has failed; the slowest tests
#
# At the time $CHECK_UNTIL, in seconds since the epoch, what no guest has taken is skipped.
#
# What is printed is KTAP. A test's output is kept until its result is there and printed
# in one piece; lines in between tell which test begins. All of it is in $queue:
#   share/tests    the tests, one a line; share/taken/N is there once a guest has taken line N
#   results        the result lines of the tests, numbered as in share/tests
#   NAME.ran       the tests that guest NAME began; NAME.failed is there if one failed

queue_open() {
	queue=$1
	shift
	mkdir -p "$queue/share/taken"
	queue_args=("$@")
	queue_list "$@" >"$queue/share/tests"
	queue_total=$(wc -l <"$queue/share/tests")
	: >"$queue/results"
	together printf 'KTAP version 1\n1..%d\n' "$queue_total"
	local left
	queue_expiry=
	[ -n "${CHECK_UNTIL-}" ] || return 0
	left=$((CHECK_UNTIL - $(date +%s)))
	if [ $left -gt 0 ]; then
		{ alive sleep $left && queue_expires; } &
		queue_expiry=$!
	else
		queue_expires
	fi
}

# Takes what is left, as a guest would.
queue_expires() {
	local n=0 t
	while read -r t; do
		n=$((n + 1))
		together queue_skip "$n" "$t"
	done <"$queue/share/tests"
}
queue_skip() {
	! mkdir "$queue/share/taken/$1" 2>/dev/null || queue_result "ok $1 $2 # SKIP no time is left"
}

queue_list() { "$repo/selftests/run" --list --longest-first "$@"; }

queue_guest() {
	local rc=0
	queue_boots "$@" || rc=$?
	# A guest that dies before it loads the module has met a fault of the emulator or the kernel,
	# such as a trap while the kernel patches itself. It may try once more.
	if [ $rc = 99 ] && [ ! -e "$queue/$1.up" ]; then
		together echo "# guest $1 has died without the module, and begins again"
		rc=0
		queue_boots "$@" || rc=$?
	fi
	# 1 is a test that failed, which is counted.
	case $rc in
	0) ;;
	1) [ -e "$queue/$1.failed" ] || fail 1 "guest $1 (exit status 1)" ;;
	*) fail 1 "guest $1 (exit status $rc), in which ran: $(tr '\n' ' ' <"$queue/$1.ran")" ;;
	esac
}

# queue_boots NAME COMMAND...: run the guest; its exit status.
queue_boots() {
	local name=$1 rc=0
	shift
	# Every test may be taken by the time that this guest could begin.
	[ "$(compgen -G "$queue/share/taken/*" | wc -l)" -lt "$queue_total" ] || return 0
	: >"$queue/$name.ran"
	alive "$@" --share "$queue/share" -- \
		env SELFTEST_BIN=/usr/local/bin SELFTEST_TIMES="$times" selftests/run --queue /mnt/share "${queue_args[@]}" \
		2>"$queue/$name.err" | queue_output "$name" || rc=$?
	[ ! -s "$queue/$name.err" ] || together sed "s/^/# guest $name: /" "$queue/$name.err"
	return $rc
}

# queue_output NAME: print the output of a guest's selftests/run, a test at a time.
queue_output() {
	local name=$1 line n= t= block=()
	while IFS= read -r line || [ -n "$line" ]; do
		case $line in
		"# is up") : >"$queue/$name.up" ;;
		"# begins "*)
			read -r n t <<<"${line#"# begins "}"
			echo "$t" >>"$queue/$name.ran"
			together queue_begins "$name" "$t"
			;;
		"ok $n $t"* | "not ok $n $t"*)
			together queue_result "$line" "${block[@]}"
			[[ $line = ok* ]] || : >"$queue/$name.failed"
			n= t= block=()
			;;
		*) block+=("$line") ;;
		esac
	done
	[ -z "$t" ] || together queue_result "not ok $n $t # guest $name ended during it" "${block[@]}"
}

# The two print and count; nobody else does at the time.
queue_begins() {
	printf '# %d s, %d of %d done: guest %s begins %s\n' "$SECONDS" "$(wc -l <"$queue/results")" "$queue_total" "$@"
}
queue_result() {
	local line=$1 what=${1%%[0-9]*} rest
	shift
	[ $# = 0 ] || printf '%s\n' "$@"
	echo "$line" >>"$queue/results"
	rest=${line#"$what"}
	echo "$what$(wc -l <"$queue/results") ${rest#* }"
}

# Under the lock, so that the other process does not end between taking a test and its result.
queue_stop() {
	[ -n "$queue_expiry" ] && jobs -pr | grep -qx "$queue_expiry" || return 0
	{ kill "$queue_expiry" && wait "$queue_expiry" || true; } 2>/dev/null
}

queue_close() {
	local n=0 t failed
	together queue_stop
	while read -r t; do
		n=$((n + 1))
		grep -Eq "^(not )?ok $n " "$queue/results" || together queue_result "not ok $n $t # no guest ran it"
	done <"$queue/share/tests"
	echo "# the slowest tests:"
	sed -nE 's/^(not )?ok [0-9]+ ([^ ]*) # .*\b([0-9]+\.[0-9]) s\)?$/\3 \2/p' "$queue/results" | sort -rn |
		head -n 10 | sed 's/^\([^ ]*\)/#   \1 s/'
	skip "$(grep -c '^ok .*# SKIP' "$queue/results" || true)"
	pass "$(grep '^ok ' "$queue/results" | grep -vc '# SKIP' || true)"
	failed=$(grep -c '^not ok ' "$queue/results" || true)
	[ "$failed" = 0 ] || fail "$failed" "$(sed -n 's/^not ok [0-9]* //p' "$queue/results" | head -n 10 | tr '\n' ';')"
}

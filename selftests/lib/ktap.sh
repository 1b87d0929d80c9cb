# SPDX-License-Identifier: GPL-2.0
# KTAP for tests in bash: plan N; then for each case `check NAME COMMAND...`,
# or ok/not_ok/skip NAME; at the end `finish`. Sourced.

ktap_n=0 ktap_failed=0

plan() {
	echo "KTAP version 1"
	echo "1..$1"
	ktap_plan=$1
}
ok() { echo "ok $((ktap_n += 1)) $*"; }
not_ok() { echo "not ok $((ktap_n += 1)) $*"; ktap_failed=$((ktap_failed + 1)); }
skip() { local name=$1; shift; echo "ok $((ktap_n += 1)) $name # SKIP $*"; }
skip_all() { echo "KTAP version 1"; echo "1..0 # SKIP $*"; exit 4; }
say() { echo "# $*"; }

# check NAME COMMAND...: the command's output is shown when it fails, its
# seconds when there are many.
check() {
	local name=$1 out rc start=$SECONDS
	shift
	out=$("$@" 2>&1)
	rc=$?
	if [ $rc = 0 ]; then
		ok "$name$([ $((SECONDS - start)) -lt 10 ] || echo " # $((SECONDS - start)) s")"
	else
		[ -z "$out" ] || echo "$out" | tail -n 25 | sed 's/^/# /'
		not_ok "$name # exit status $rc"
	fi
	return $rc
}

# check_stock NAME COMMAND...: as check, but on the debug kernel, which is slow,
# only with --long: one case of each kind will do there.
check_stock() {
	if [ -z "${SELFTEST_DEBUG:-}" ] || [ -n "${SELFTEST_LONG:-}" ]; then
		check "$@"
	else
		skip "$1" "on the debug kernel only with --long"
	fi
}

# check_long NAME COMMAND...: as check, but only with --long.
check_long() {
	if [ -n "${SELFTEST_LONG:-}" ]; then
		check "$@"
	else
		skip "$1" "only with --long"
	fi
}

# die TEXT: the ground of the whole test is missing.
die() {
	echo "# $*"
	not_ok "setup"
	exit 1
}

finish() {
	[ -z "${ktap_plan:-}" ] || [ "$ktap_plan" = "$ktap_n" ] || {
		say "planned $ktap_plan, ran $ktap_n"
		exit 1
	}
	[ $ktap_failed = 0 ]
	exit
}

# SPDX-License-Identifier: GPL-2.0
# For stages that run at the same time, in processes of their own: one count for all of
# them, and output that is not mixed. Sourced after lib.sh; call tally_open first.

# tally_open DIR: what is counted lies in DIR/tally.
tally_open() {
	tally=$1/tally
	: >"$tally"
}
pass() { echo "passed $1" >>"$tally"; }
fail() { echo "failed $*" >>"$tally"; } # COUNT TEXT
skip() { echo "skipped $1" >>"$tally"; }
total() { awk -v what="$1" '$1 == what { n += $2 } END { print n + 0 }' "$tally"; }

# together COMMAND...: nobody else prints, or changes what they share, while COMMAND runs.
together() {
	{
		flock 6
		"$@"
	} 6>"$tally.lock"
}

# alive PROGRAM...: it ends when its caller does.
alive() { setpriv --pdeathsig TERM "$@"; }

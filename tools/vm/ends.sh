# SPDX-License-Identifier: GPL-2.0
# For tests of tools/vm/run: cases that are counted. Sourced after lib.sh.
#
#   ends STATUS NAME ARGUMENT...   tools/vm/run with these must end so; what it said is in
#                                  $dir/out and $dir/err
#   refuses LINE ARGUMENT...       it must end with status 2 after that line alone
#   holds NAME COMMAND...          COMMAND must succeed
#   said out|err TEXT
#   summary                        a line "N passed, M failed", and the status
passed=0 failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

ends() {
	local want=$1 name=$2 got=0
	shift 2
	"$vm_dir/run" "$@" >"$dir/out" 2>"$dir/err" || got=$?
	holds "$name: status $got, wanted $want" [ "$got" = "$want" ]
}

refuses() {
	local line="run: $1" got=0
	shift
	"$vm_dir/run" "$@" >"$dir/out" 2>"$dir/err" || got=$?
	holds "refused: $line (status $got)" [ "$got/$(cat "$dir/out" "$dir/err")" = "2/$line" ]
}

holds() {
	local name=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
		echo "ok $name"
	else
		failed=$((failed + 1))
		echo "not ok $name"
		tail -n 30 "$dir/out" "$dir/err" | sed 's/^/# /'
	fi
}
said() { grep -qF -- "$2" "$dir/$1"; }

summary() {
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ]
}

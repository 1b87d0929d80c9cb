# SPDX-License-Identifier: GPL-2.0
# The cases of programs in C (rdma/SUBJECT/NAME.c), for tests in bash: list_cases, then
# plan, then each case in turn. Sourced, after ktap.sh and net.sh.

# list_cases PROGRAM...: a line "PATH CASE" in $cases for each case of each; all
# of them must have some.
list_cases() {
	local p names
	cases=()
	for p; do
		p=$SELFTEST_BIN/selftest-$p
		names=$("$p") && [ -n "$names" ] || die "$p lists no cases"
		mapfile -t -O ${#cases[@]} cases < <(sed "s|^|$p |" <<<"$names")
	done
}

# two_hosts: the module, two hosts and the index of each one's GID.
two_hosts() {
	load_module
	hosts_up || die "no hosts"
	g1=$(gid_index x1 10.7.0.1) g2=$(gid_index x2 10.7.0.2)
}

# check_cases_once: all of $cases, within a device. ${#cases[@]} of the plan.
check_cases_once() {
	local c program name
	for c in "${cases[@]}"; do
		read -r program name <<<"$c"
		check "$name" "$program" "$name" x1 "$g1"
	done
}

# check_cases: all of $cases, within a device and between two. 2 * ${#cases[@]}
# of the plan. On the debug kernel, which is slow, a case takes one of the two ways,
# in turn; with --long both.
check_cases() {
	local c program name one=check wire=check_stock swap
	for c in "${cases[@]}"; do
		read -r program name <<<"$c"
		"$one" "$name, one device" "$program" "$name" x1 "$g1"
		"$wire" "$name, on the wire" "$program" "$name" x1 "$g1" x2 "$g2"
		swap=$one one=$wire wire=$swap
	done
}

# check_cases_on_wire: all of $cases, between two devices and, on the debug kernel only with
# --long, within a device: for services that have no shorter way there. 2 * ${#cases[@]} of
# the plan.
check_cases_on_wire() {
	local c program name
	for c in "${cases[@]}"; do
		read -r program name <<<"$c"
		check "$name, on the wire" "$program" "$name" x1 "$g1" x2 "$g2"
		check_stock "$name, one device" "$program" "$name" x1 "$g1"
	done
}

# SPDX-License-Identifier: GPL-2.0
# Several guests on one wire. Sourced after machine.sh and wire.sh.
#
# Each guest is in a process of its own. What the guests ask for (tools/vm/hosts/barrier,
# tools/vm/hosts/kill-host, the end of a command) comes as lines "HOST WORD..." through one
# FIFO, which this process reads; it is the only one that decides, one line after the other.

declare -A host_state=() host_at=() host_pid=() host_addon=()
# host_state: lives, done (its command has ended, the guest waits for the others), ended,
# killed. host_at: the barrier at which a host waits.

hosts_open() { # DIR: of all
	local i j
	hosts_dir=$1
	mkdir "$hosts_dir/wire"
	mkfifo "$hosts_dir/requests"
	exec {requests}<>"$hosts_dir/requests"
	wire_open "$hosts_dir/wire" "$hosts"
	for ((i = 1; i <= hosts; i++)); do
		machine_of "$i"
		mkdir "$hosts_dir/host$i"
		mkfifo "$hosts_dir/host$i/answers"
		ln "$hosts_dir/requests" "$hosts_dir/host$i/requests"
		exec {answers[i]}<>"$hosts_dir/host$i/answers"
		host_says "$i" "$hosts" "$hosts_dir/host$i"
		# Hosts with the same release and kernel share it.
		for ((j = 1; j < i; j++)); do [ "$(made_of "$j")" != "$(made_of "$i")" ] || break; done
		[ "$j" != "$i" ] || addon "$hosts_dir/addon$i" "$(checkout_of "$i")"
		host_addon[$i]=$hosts_dir/addon$j
	done
}

made_of() { echo "$(of_list "$flavours" "$1") $(checkout_of "$1")"; }

# host_says I N DIR: what the guest has to know, for tools/vm/hosts/up in it.
host_says() {
	printf '%s=%q\n' HOST "$1" HOSTS "$2" TYPE "$(of_list "${types:-xroce}" "$1")" \
		WIRE "$spec" BARE "$bare" >"$3/host"
}

hosts_close() {
	local i
	for i in "${!host_pid[@]}"; do kill "${host_pid[$i]}" 2>/dev/null || true; done
	for i in "${!host_pid[@]}"; do wait "${host_pid[$i]}" 2>/dev/null || true; done
	wire_close
}

# host_process I: what its process does.
host_process() {
	local rc nic
	host=$1
	trap 'rc=$?; machine_close; echo "$host ended $rc" >&"$requests"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	# The others' processes are the parent's.
	wire_pid= host_pid=()
	machine_of "$host"
	machine_open "$hosts_dir/host$host"
	binds=("$machine:/vmrun" "${host_addon[$host]}:/vmrun/addon" "$hosts_dir/wire:/vmwire")
	mapfile -t nic < <(wire_nic "$host" "${mtu:-1500}")
	machine_run "${nic[@]}"
	exit "$result"
}

# hosts_run: boot them all; $result is the status of the first that failed.
hosts_run() {
	local i from word rest
	result=0
	for ((i = 1; i <= hosts; i++)); do
		host_state[$i]=lives
		host_process "$i" &
		host_pid[$i]=$!
	done
	while in_state lives || in_state "done" || in_state killed; do
		read -r -t 5 -u "$requests" from word rest || { hosts_lost; continue; }
		# Guests can write anything there.
		[[ $from =~ ^[1-9]$ && -n ${host_state[$from]-} ]] || continue
		# hosts_lost may say that of a host that has said it itself.
		[ "${host_state[$from]}" != ended ] || continue
		case ${host_state[$from]}-$word in
		*-ended)
			wait "${host_pid[$from]}" 2>/dev/null || true
			hosts_failed "$rest"
			host_state[$from]=ended
			unset "host_pid[$from]" "host_at[$from]"
			;;
		lives-barrier) host_at[$from]="at $rest" ;;
		lives-done)
			hosts_failed "$rest"
			host_state[$from]=done
			unset "host_at[$from]"
			;;
		# One whose command has ended runs those of others (on-host).
		lives-kill | done-kill) host_kill "$rest" ;;
		esac
		barrier_release
		in_state lives || answer_all "done" done
	done
}

# hosts_lost: nobody has said anything for a while. A process that was itself killed could not
# say that it ended, nor end its guest and the guest's alarm.
hosts_lost() {
	local i pid
	for i in "${!host_pid[@]}"; do
		kill -0 "${host_pid[$i]}" 2>/dev/null && continue
		pid=$(cat "$hosts_dir/host$i/pid" 2>/dev/null) && kill -KILL "$pid" 2>/dev/null || true
		pid=$(cat "$hosts_dir/host$i/alarm" 2>/dev/null) && kill "$pid" 2>/dev/null || true
		echo "$i ended 137" >&"$requests"
	done
}

# hosts_failed STATUS: the first that is not 0 is the result, but a kernel's report counts more.
hosts_failed() {
	local status=$1
	[ "$status" != timeout ] || status=124
	[[ $status =~ ^[0-9]{1,3}$ ]] || status=99
	[ "$result" != 0 ] && [ "$status" != 99 ] || result=$status
}

in_state() { [[ " ${host_state[*]} " == *" $1 "* ]]; }

# answer_all STATE LINE: to those in that state.
answer_all() {
	local i
	for i in "${!host_state[@]}"; do
		[ "${host_state[$i]}" != "$1" ] || echo "$2" >&"${answers[i]}"
	done
}

# A guest that is killed says nothing any more, as a machine that loses its power.
host_kill() {
	local i=$1 pid
	[[ $i =~ ^[1-9]$ && -n ${host_state[$i]-} ]] || { say "kill-host: there is no such host"; return 0; }
	[[ ${host_state[$i]} = @(lives|done) ]] || { say "kill-host: host$i has ended"; return 0; }
	# A guest that does not run yet, as it has no pid there, looks for this file.
	: >"$hosts_dir/host$i/killed"
	pid=$(cat "$hosts_dir/host$i/pid" 2>/dev/null) && kill -KILL "$pid" 2>/dev/null || true
	host_state[$i]=killed
	unset "host_at[$i]"
	say "host$i: killed"
}

# The barrier opens when all that live are there. It opens with an error if it can no longer
# be one: a host's command has ended, or they are at different ones. A host that is being
# killed is waited for until it is dead.
barrier_release() {
	local i names why=
	[ "${#host_at[@]}" != 0 ] || return 0
	kill -0 "$wire_pid" 2>/dev/null || why="there is no wire any more: $(cat "$hosts_dir/wire/said")"
	for i in "${!host_state[@]}"; do
		case ${host_state[$i]} in
		"done" | ended) [ -e "$hosts_dir/host$i/killed" ] || why="host$i has ended" ;;
		killed) [ -n "$why" ] || why=wait ;;
		lives) [ -n "${host_at[$i]-}" ] || [ -n "$why" ] || why=wait ;;
		esac
	done
	[ "$why" != wait ] || return 0
	names=$(printf '%s\n' "${host_at[@]}" | sort -u)
	[ -n "$why" ] || [ "$(wc -l <<<"$names")" = 1 ] || why="the hosts are ${names//$'\n'/ and }"
	for i in "${!host_at[@]}"; do
		echo "barrier $why" >&"${answers[i]}"
		unset "host_at[$i]"
	done
}

# SPDX-License-Identifier: GPL-2.0
# One guest: what it is made of, its QEMU, and its result. Sourced after options.sh, whose
# variables say what is wanted.
#
#   machine_open DIR     the guest's directory, which is /vmrun in it
#   machine_run ARG...   boot it, with more arguments for QEMU; print what the command prints;
#                        $result is the status that tools/vm/run has then
#   machine_close        end it if it runs
#
# In the directory: addon (what a package of xroce installs), command, and what the guest
# says: console, stdout, stderr, dmesg, status, request; qemu is QEMU's own output, alarm the
# process that ends it when its time is over. pid is there while QEMU runs, killed once
# tools/vm/hosts.sh has killed it.

host= machine= machine_pid= machine_readers=() result=

# Without ERMS: that has pages and payloads copied and cleared byte by byte, which is one
# emulated step for each.
accelerator() {
	# What is translated may take 1 GiB; less for each of several guests.
	local tb=1024
	[ -z "$hosts" ] || tb=256
	accel=(-accel "tcg,thread=multi,tb-size=$tb" -cpu Haswell-noTSX,-pcid,-tsc-deadline,-invpcid,-erms)
	# KVM where the CPU has it; a /dev/kvm without that (nested, emulated) may hang.
	if [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo &&
		in_root timeout 5 qemu-system-x86_64 -accel kvm -machine none -display none \
			-monitor stdio <<<quit >/dev/null 2>&1; then
		accel=(-accel kvm -cpu host)
	fi
}

# addon DIR CHECKOUT: a snapshot of the checkout's package, so that a later build cannot change
# a running guest.
addon() {
	if [ -n "$bare" ]; then
		mkdir "$1"
		return
	fi
	(
		use_checkout "$2"
		[ ! -d "$out_dir" ] || { exec 8>"$out_dir/$flavour.lock"; flock -s 8; }
		[ -e "$out_dir/$flavour/rootfs/usr/lib/modules/$rel/updates/xroce.ko" ] ||
			wrong "--no-build: $repo has not been built for the $flavour kernel"
		cp -a "$out_dir/$flavour/rootfs" "$1"
	)
}

machine_open() {
	machine=$1 machine_pid= machine_readers=()
	printf '%q ' "${words[@]}" >"$machine/command"
	mkfifo "$machine/stdout" "$machine/stderr"
	: >"$machine/console"
	: >"$machine/dmesg"
	: >"$machine/status"
}

machine_close() {
	[ -z "$machine_pid" ] || { disown "$machine_pid"; kill -KILL "$machine_pid"; } 2>/dev/null || true
	[ -z "${machine_readers[*]}" ] || kill "${machine_readers[@]}" 2>/dev/null || true
}

port() { # NR OPTION,...
	printf '%s\n' -chardev "file,id=c$1,$2" -device "virtserialport,chardev=c$1,nr=$1"
}

# With host=I it is the I-th of several (tools/vm/hosts.sh), which its lines say, too.
machine_run() {
	local ports fs9p append rc=0 i=${host:-1} alarm named from=/ log_buffer=16M
	mapfile -t ports < <(
		port 1 path=/vmrun/stdout
		port 2 path=/vmrun/stderr
		port 3 path=/vmrun/dmesg
		port 4 path=/vmrun/status
		[ -z "$host" ] || {
			port 5 path=/vmrun/requests
			port 6 path=/dev/null,input-path=/vmrun/answers
		}
	)
	# Another root than QEMU's own: what the guest wants of that one is mounted there.
	if [ -n "$tree" ]; then
		from=/vmroot
		binds+=("$tree:/vmroot" "$repo:/vmroot/xroce" "$machine:/vmroot/vmrun"
			"$root/usr/lib/modules:/vmroot/usr/lib/modules" "$root/kernel:/vmroot/kernel")
	fi
	fs9p=(-virtfs "local,path=$from,mount_tag=root,security_model=none,readonly=on,multidevs=remap"
		-virtfs "local,path=/vmrun/addon,mount_tag=addon,security_model=none,readonly=on,multidevs=remap")
	append="console=ttyS0 panic=-1 oops=panic quiet mitigations=off tsc=reliable no_timer_check"
	# kmemleak scans the buffer, and four times as much that describes it.
	[ "$flavour" = stock ] || log_buffer=4M
	append+=" vm.nvdimm log_buf_len=$log_buffer rcupdate.rcu_cpu_stall_timeout=60 vm.timeout=$limit $params"
	# Slab's own checks, where drivers' objects are. KASAN names the owners of an
	# object; slab's own record would cost as much again.
	[ "$flavour" = stock ] || append+=" slab_debug=-;FZP,kmalloc*"
	if [ -n "$share" ]; then
		binds+=("$share:/vmshare")
		fs9p+=(-virtfs "local,path=/vmshare,mount_tag=share,security_model=none,multidevs=remap")
		append+=" vm.share"
	fi
	if [ -n "$dir_of" ]; then
		binds+=("$dir_of:/vmdir")
		fs9p+=(-virtfs "local,path=/vmdir,mount_tag=dir,security_model=none,multidevs=remap")
		append+=" vm.dir=1"
	fi

	# With the host's name before each line, if there are several.
	named=(cat)
	[ -z "$host" ] || named=(env LC_ALL=C sed -u "s/^/host$host: /")
	"${named[@]}" <"$machine/stdout" & machine_readers+=($!)
	"${named[@]}" <"$machine/stderr" >&2 & machine_readers+=($!)
	in_root qemu-system-x86_64 "${accel[@]}" -smp "$(of_list "$cpus" "$i")" \
		-machine pc,nvdimm=on -m "$(of_list "$mem" "$i"),slots=1,maxmem=64G" \
		-object memory-backend-ram,id=nv,size=64M -device nvdimm,memdev=nv \
		-nodefaults -no-user-config -display none -monitor none -no-reboot -nic none \
		-serial file:/vmrun/console -device virtio-rng-pci -device virtio-serial-pci "${ports[@]}" \
		"${fs9p[@]}" "$@" -kernel "$(vmlinuz "$rel")" -initrd "$initrd" -append "$append" \
		</dev/null >"$machine/qemu" 2>&1 &
	machine_pid=$!
	echo "$machine_pid" >"$machine/pid"
	# hosts.sh may have found no pid when it wanted to kill it.
	[ ! -e "$machine/killed" ] || kill -KILL "$machine_pid" 2>/dev/null || true
	# The guest keeps the command's time itself; this is for a guest that hangs.
	(
		exec >/dev/null 2>&1
		# Its sleep must not outlive it.
		sleep $((limit + grace)) &
		trap "kill $!" EXIT
		trap 'exit 1' TERM
		wait $!
		echo hang >"$machine/hang"
		kill -KILL $machine_pid
	) &
	alarm=$!
	echo "$alarm" >"$machine/alarm"
	machine_readers+=("$alarm")
	wait "$machine_pid" 2>/dev/null || rc=$?
	machine_pid=
	# A QEMU that died early has not opened them, so that the readers wait for a writer.
	: 3<>"$machine/stdout" 4<>"$machine/stderr"
	rm -f "$machine/pid"
	kill "$alarm" 2>/dev/null || true
	wait "${machine_readers[@]:0:2}" 2>/dev/null || true
	machine_result "$rc"
}

# machine_result STATUS: judge what it left, in $result; STATUS is QEMU's.
machine_result() {
	local log who=${host:+host$host: } reported=0 status
	log=$out_dir/log/console-$(date +%Y%m%d-%H%M%S)-$$${host:+-host$host}
	cp "$machine/console" "$log"
	[ ! -s "$machine/dmesg" ] || cp "$machine/dmesg" "$log.dmesg"
	find "$out_dir/log" -name 'console-*' -mmin +240 -delete 2>/dev/null || true
	# The serial line has what a dying guest said last, the log what was said before
	# the line was listened to.
	if [ -s "$machine/dmesg" ] && ! "$vm_dir/report" "$machine/dmesg" >"$machine/report"; then
		reported=1
	elif ! "$vm_dir/report" "$machine/console" >"$machine/report"; then
		reported=1
	fi
	status=$(cat "$machine/status")
	if [ "$reported" = 1 ]; then
		say "${who}the guest's kernel reported (whole log: $log):"
		head -n 400 "$machine/report" >&2
	fi
	if [ -e "$machine/hang" ] || [ "$status" = timeout ]; then
		say "${who}timeout after $limit s; the log's tail (whole log: $log):"
		tail -n 60 "$log" >&2
		result=124
	elif [ "$reported" = 1 ]; then
		result=99
	elif [ -z "$status" ] && [ -e "$machine/killed" ]; then
		result=0
	elif [ -z "$status" ]; then
		say "${who}the guest died (qemu's status $1; whole log: $log):"
		cat "$machine/qemu" >&2
		tail -n 40 "$log" >&2
		result=99
	else
		result=$status
	fi
}

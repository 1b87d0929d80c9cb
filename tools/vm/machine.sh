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

host= machine= machine_pid= machine_readers=() result= rel= initrd= accel=()

# Without ERMS: that has pages and payloads copied and cleared byte by byte, which is one
# emulated step for each.
accelerator() {
	# What is translated may take 1 GiB; less for each of several guests.
	local tb=1024 threads=multi clock=()
	[ -z "$hosts" ] || tb=256
	# QEMU counts instructions only if the CPUs run in turn. One takes 1 ns, and a guest that has
	# nothing to do is not waited for.
	[ -z "$icount" ] || threads=single clock=(-icount "shift=0,sleep=off")
	accel=(-accel "tcg,thread=$threads,tb-size=$tb" -cpu Haswell-noTSX,-pcid,-tsc-deadline,-invpcid,-erms)
	# KVM where the CPU has it; a /dev/kvm without that (nested, emulated) may hang.
	if [ -z "$icount" ] && [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo &&
		in_root timeout 5 qemu-system-x86_64 -accel kvm -machine none -display none \
			-monitor stdio <<<quit >/dev/null 2>&1; then
		accel=(-accel kvm -cpu host)
	fi
	# One without pointer authentication, which is slow to emulate, and with all sizes of pages.
	[ -z "$there" ] || accel=(-accel "tcg,thread=$threads,tb-size=$tb" -cpu neoverse-n1)
	accel+=("${clock[@]}")
}

# machine_of I: what the I-th guest is made of: the variables of use_flavour, and rel, initrd and
# accel.
machine_of() {
	use_flavour "$(of_list "$flavours" "$1")"
	rel=$(release_of "$flavour")
	initrd=$("$vm_dir/initramfs" "$rel")
	accelerator
}

# addon DIR CHECKOUT: a snapshot of the checkout's package, so that a later build cannot change
# a running guest.
addon() {
	if [ -n "$bare" ]; then
		mkdir "$1"
		return
	fi
	(
		local place
		place=$(place_of "$flavour")
		use_checkout "$2"
		[ ! -d "$out_dir" ] || { exec 8>"$out_dir/$place.lock"; flock -s 8; }
		[ -e "$out_dir/$place/rootfs/usr/lib/modules/$rel/updates/xroce.ko" ] ||
			wrong "--no-build: $repo has not been built for the $place kernel"
		cp -a "$out_dir/$place/rootfs" "$1"
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

# The directories that the guest mounts: those of the array directories, each as the words
# TAG DIRECTORY [rw]. The result is in qemu, the command, and shared, options.
directories_of() { # TRANSPORT MEMORY
	local one tag directory rw
	# A memory that can be shared is needed for virtiofs only.
	qemu=("$emulator") shared=(-machine pc,nvdimm=on)
	[ -z "$there" ] || shared=(-machine virt,gic-version=3)
	[ "$1" = 9p ] || {
		qemu=(/xroce/tools/vm/virtiofs /vmrun)
		shared=(-machine pc,nvdimm=on,memory-backend=ram
			-object "memory-backend-memfd,id=ram,size=$2,share=on")
	}
	for one in "${directories[@]}"; do
		read -r tag directory rw <<<"$one"
		if [ "$1" = 9p ]; then
			shared+=(-virtfs "local,path=$directory,mount_tag=$tag,security_model=none,multidevs=remap$([ -n "$rw" ] || echo ,readonly=on)")
		else
			qemu+=("$tag=$directory${rw:+:rw}")
		fi
	done
	[ "$1" = 9p ] || qemu+=(-- "$emulator")
}

# With host=I it is the I-th of several (tools/vm/hosts.sh), which its lines say, too.
machine_run() {
	local ports append rc=0 i=${host:-1} alarm named from=/ log_buffer=16M
	local transport directories qemu shared console=ttyS0 memory= nvdimm=()
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
	if [ -n "$there" ]; then
		from=/vmroot
		binds+=("$kernels:/vmroot" "$repo:/vmroot/xroce" "$machine:/vmroot/vmrun")
	elif [ -n "$tree" ]; then
		from=/vmroot
		binds+=("$tree:/vmroot" "$repo:/vmroot/xroce" "$machine:/vmroot/vmrun"
			"$root/usr/lib/modules:/vmroot/usr/lib/modules" "$root/kernel:/vmroot/kernel")
	fi
	if [ -z "$there" ]; then
		memory=",slots=1,maxmem=64G"
		nvdimm=(-object memory-backend-ram,id=nv,size=64M -device nvdimm,memdev=nv)
	else
		console=ttyAMA0
	fi
	transport=$(transport_of "$rel")
	directories=("root $from" "addon /vmrun/addon")
	append="console=$console panic=-1 oops=panic quiet mitigations=off tsc=reliable no_timer_check"
	# kmemleak scans the buffer, and four times as much that describes it.
	[ "$flavour" = stock ] || log_buffer=4M
	append+=" vm.nvdimm log_buf_len=$log_buffer rcupdate.rcu_cpu_stall_timeout=60 vm.timeout=$limit vm.fs=$transport $params"
	# Slab's own checks, where drivers' objects are. KASAN names the owners of an
	# object; slab's own record would cost as much again.
	[ "$flavour" = stock ] || append+=" slab_debug=-;FZP,kmalloc*"
	if [ -n "$share" ]; then
		binds+=("$share:/vmshare")
		directories+=("share /vmshare rw")
		append+=" vm.share"
	fi
	if [ -n "$dir_of" ]; then
		binds+=("$dir_of:/vmdir")
		directories+=("dir /vmdir rw")
		append+=" vm.dir=1"
	fi

	directories_of "$transport" "$(of_list "$mem" "$i")"

	# With the host's name before each line, if there are several.
	named=(cat)
	[ -z "$host" ] || named=(env LC_ALL=C sed -u "s/^/host$host: /")
	"${named[@]}" <"$machine/stdout" & machine_readers+=($!)
	"${named[@]}" <"$machine/stderr" >&2 & machine_readers+=($!)
	in_root "${qemu[@]}" "${accel[@]}" -smp "$(of_list "$cpus" "$i")" \
		"${shared[@]}" -m "$(of_list "$mem" "$i")$memory" "${nvdimm[@]}" \
		-nodefaults -no-user-config -display none -monitor none -no-reboot -nic none \
		-serial file:/vmrun/console -device virtio-rng-pci -device virtio-serial-pci "${ports[@]}" \
		"$@" -kernel "${there:+/vmroot}$(vmlinuz "$rel")" -initrd "$initrd" -append "$append" \
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

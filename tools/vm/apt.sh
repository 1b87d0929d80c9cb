# SPDX-License-Identifier: GPL-2.0
# apt in a build root. Sourced after lib.sh; $root is the root.

# apt_in_root ARGUMENT...: apt-get in the root. What an interrupted set-up has left there is
# finished first, since neither apt nor dpkg installs anything before that.
apt_in_root() {
	if [ "$1" = install ] && [ -n "$(in_root dpkg --audit)" ]; then
		in_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a || true
		apt_get --fix-broken install
	fi
	apt_get "$@"
}

# apt closes the descriptor of its notes on progress for the programs that it starts,
# and so it is not the output itself.
apt_get() {
	in_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root -o APT::Status-Fd=3 \
		-o APT::Install-Recommends=false -o Acquire::Retries=3 "$@" 3>&1
}

# What is in the root reaches the archive as the machine does: its resolver, proxies,
# lists of mirrors and authorities.
network() {
	local f p ca=/etc/ssl/certs/ca-certificates.crt
	mkdir -p "$root/etc/apt/apt.conf.d"
	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
	{
		for p in http https; do
			f=${p}_proxy
			[ -z "${!f-}" ] || echo "Acquire::$p::Proxy \"${!f}\";"
		done
		apt-config dump | grep -iE '^Acquire::https?::Proxy' || true
	} >"$root/etc/apt/apt.conf.d/80machine"
	for f in /etc/apt/mirrors/* "$ca"; do
		[ ! -f "$f" ] || install -D -m 644 "$f" "$root$f"
	done
}

# unpack_system DIRECTORY ARCHITECTURE "SUITE..." PACKAGE...: what these packages need, in a root
# of its own: unpacked, but nothing is configured. "=PACKAGE" is unpacked without what it depends
# on, "=?PACKAGE" if there is such a package; usr/src/dpkg of the root lists these for dpkg-query. The
# state of apt in the build root stays as it is.
unpack_system() {
	local to=$1 arch=$2 suites=$3 mirror
	shift 3
	mirror=$(sed -n 's/^deb \(\[[^]]*\] *\)\?\([^ ]*\) .*/\2/p' "$root/etc/apt/sources.list")
	network
	mkdir -p "${to%/*}"
	(
		binds=("${to%/*}:/var/cache/systems")
		in_root sh -ec '
			to=/var/cache/systems/$1 arch=$2 suites=$3 mirror=$4 d=$(mktemp -d)
			shift 4
			mkdir -p "$d/lists/partial" "$d/archives/partial"
			: >"$d/status"
			for suite in $suites; do echo "deb $mirror $suite main" >>"$d/sources"; done
			apt() {
				command=$1
				shift
				"apt-$command" -q -o APT::Sandbox::User=root -o Acquire::Languages=none \
					-o APT::Architecture="$arch" -o APT::Architectures="$arch" \
					-o Dir::Etc::SourceList="$d/sources" -o Dir::Etc::SourceParts=- \
					-o Dir::State::Lists="$d/lists" -o Dir::State::Status="$d/status" \
					-o APT::Install-Recommends=false -o Dir::Cache="$d" "$@"
			}
			apt get update -o APT::Update::Error-Mode=any ||
				apt get update -o APT::Update::Error-Mode=any -o Acquire::Check-Valid-Until=false
			packages= alone=
			for p; do
				case $p in
				"=?"*) [ -z "$(apt cache pkgnames "${p#=?}" | grep -xF "${p#=?}")" ] || alone="$alone ${p#=?}" ;;
				=*) alone="$alone ${p#=}" ;;
				*) packages="$packages $p" ;;
				esac
			done
			apt get -y -o Acquire::Check-Valid-Until=false --download-only install $packages
			mkdir "$d/alone"
			cd "$d/alone"
			[ -z "$alone" ] || apt get -o Acquire::Check-Valid-Until=false download $alone
			rm -rf "$to.new"
			mkdir -p "$to.new/usr"
			for i in bin sbin lib lib64; do
				mkdir -p "$to.new/usr/$i"
				ln -s "usr/$i" "$to.new/$i"
			done
			mkdir -p "$to.new/usr/src/dpkg"
			for deb in "$d"/archives/*.deb "$d"/alone/*.deb; do
				[ -e "$deb" ] || continue
				dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$to.new" --keep-directory-symlink
				case $deb in */alone/*)
					{ dpkg-deb -f "$deb"; echo "Status: install ok installed"; echo; } >>"$to.new/usr/src/dpkg/status" ;;
				esac
			done
			mkdir -p "$to.new/tmp" "$to.new/proc" "$to.new/sys" "$to.new/dev" "$to.new/opt/xroce"
			echo "$*" >"$to.new/.packages"
			rm -rf "$to"
			mv "$to.new" "$to"' unpack_system "${to##*/}" "$arch" "$suites" "$mirror" "$@"
	)
}

update() {
	network
	apt_in_root update -o APT::Update::Error-Mode=any && return
	say "apt-get update failed; again without the check of the archive's Valid-Until date"
	echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/90valid-until"
	apt_in_root update -o APT::Update::Error-Mode=any
}

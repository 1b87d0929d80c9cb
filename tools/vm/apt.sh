# SPDX-License-Identifier: GPL-2.0
# apt in a build root. Sourced after lib.sh; $root is the root.

# apt closes the descriptor of its notes on progress for the programs that it starts,
# and so it is not the output itself.
apt_in_root() {
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

update() {
	network
	apt_in_root update -o APT::Update::Error-Mode=any && return
	say "apt-get update failed; again without the check of the archive's Valid-Until date"
	echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/90valid-until"
	apt_in_root update -o APT::Update::Error-Mode=any
}

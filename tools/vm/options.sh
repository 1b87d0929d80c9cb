# SPDX-License-Identifier: GPL-2.0
# The options of tools/vm/run: read, and refused where they make no sense, in one line and
# with status 2, before anything is built or started. Sourced after lib.sh.

wrong() { say "$*"; exit 2; }

# usage: the command lines at the top of the script.
usage() { sed -n 's/^# \{0,1\}//; /^  tools/,/^$/p' "$0"; }

# read_options ARGUMENT...: sets the variables below, and words to the command.
flavour=stock cpus= mem= share= dir_of= params= limit=900 build=1 bare= icount=
hosts= spec= mtu= types= releases= flavours=$FLAVOUR packages=() words=()
# The checkouts that --xroce names, or this one.
checkouts=("$repo")
read_options() {
	local option list
	while [ $# -gt 0 ]; do
		option=$1
		shift
		case $option in
		--) break ;;
		--no-build) build=; continue ;;
		--bare) build= bare=1; continue ;;
		--icount) icount=1; continue ;;
		--help) usage; exit 0 ;;
		--kernel | --cpus | --mem | --share | --dir | --append | --timeout | \
			--hosts | --wire | --mtu | --type | --xroce | --flavour | --packages) ;;
		*) wrong "$option: no such option (--help shows them)" ;;
		esac
		[ $# -gt 0 ] && [ "$1" != -- ] || wrong "$option: there is no value"
		[[ $option = --append || $1 = *[![:space:]]* ]] || wrong "$option: the value is empty"
		case $option in
		--kernel) flavour=$1 ;;
		--cpus) cpus=$1 ;;
		--mem) mem=$1 ;;
		--share) share=$1 ;;
		--dir) dir_of=$1 ;;
		--append) params=$1 ;;
		--timeout) limit=$1 ;;
		--hosts) hosts=$1 ;;
		# In a file of YAML, words may be on several lines.
		--wire) read -rd '' -a list <<<"$1" || true; spec=${list[*]} ;;
		--mtu) mtu=$1 ;;
		--type) types=$1 ;;
		--xroce) releases=$1 ;;
		--flavour) flavours=$1 ;;
		--packages) read -rd '' -a packages <<<"$1" || true ;;
		esac
		shift
	done
	[ $# -gt 0 ] || wrong "there is no command (--help shows the options)"
	words=("$@")
}

# number OPTION VALUE FROM TO: VALUE must be one of them.
number() {
	[[ $2 =~ ^[1-9][0-9]{0,8}$ ]] && [ "$2" -ge "$3" ] && [ "$2" -le "$4" ] ||
		wrong "$1 $2: must be a number from $3 to $4"
}

# list OPTION VALUE REGEX WHAT: VALUE must be a WHAT, or with --hosts one for each.
list() {
	local one values
	IFS=, read -ra values <<<"$2"
	[ -n "$2" ] && [[ $2 != *, ]] || wrong "$1 $2: must be $4"
	for one in "${values[@]}"; do [[ $one =~ $3 ]] || wrong "$1 $2: must be $4"; done
	[ ${#values[@]} -le "${hosts:-1}" ] ||
		wrong "$1 $2: that is for ${#values[@]} guests, there will be ${hosts:-1}"
}

# of_list LIST I: its I-th value; the last one is everybody's who has none.
of_list() {
	local values
	IFS=, read -ra values <<<"$1"
	echo "${values[$2 - 1]-${values[-1]}}"
}

# checkout_of I: whose module and plug-in the I-th guest gets.
checkout_of() { echo "${checkouts[$1 - 1]-${checkouts[-1]}}"; }

check_checkouts() {
	local one there
	[ -n "$releases" ] || return 0
	[ -z "$bare" ] || wrong "--xroce $releases: there is no xroce with --bare"
	list --xroce "$releases" . "a directory"
	IFS=, read -ra checkouts <<<"$releases"
	for one in "${!checkouts[@]}"; do
		there=$(cd "${checkouts[$one]}" 2>/dev/null && pwd -P) && [ -e "$there/tools/libxroce/Makefile" ] ||
			wrong "--xroce ${checkouts[$one]}: is no checkout of xroce"
		checkouts[one]=$there
	done
}

# The words of --flavour, or FLAVOUR for all.
check_flavours() {
	local one what="amd64, cloud-amd64, rt-amd64, arm64 or arm64-16k"
	list --flavour "$flavours" '^(amd64|cloud-amd64|rt-amd64|arm64|arm64-16k)$' "$what"
	for one in ${flavours//,/ }; do
		[[ $one != arm64* ]] || [ ${#packages[@]} = 0 ] || wrong "--packages: not with FLAVOUR=$one"
		[ "$flavour" = stock ] || [ "$one" = amd64 ] || [ "$one" = rt-amd64 ] ||
			wrong "--kernel debug: there is none of FLAVOUR=$one"
	done
}

check_options() {
	case $flavour in stock | debug) ;; *) wrong "--kernel $flavour: must be stock or debug" ;; esac
	number --timeout "$limit" 1 99999999
	if [ -n "$hosts" ]; then
		number --hosts "$hosts" 2 4
		[ -z "$icount" ] || wrong "--icount: not with --hosts, each of which would have a time of its own"
		[ -z "$mtu" ] || number --mtu "$mtu" 1280 9000
		[ -z "$types" ] || list --type "$types" '^(xroce|rxe)$' "xroce or rxe"
	else
		[ -z "$spec" ] || wrong "--wire $spec: there is a wire only with --hosts"
		[ -z "$mtu" ] || wrong "--mtu $mtu: there is a wire only with --hosts"
		[ -z "$types" ] || wrong "--type $types: only with --hosts (a single guest makes its devices itself)"
	fi
	check_flavours
	# KASAN's shadow and the larger objects want room; booting and the scans for leaks
	# take minutes on a busy machine. Several guests get less of everything each.
	if [ "$flavour" = debug ]; then
		mem=${mem:-${hosts:+2G}} mem=${mem:-4G} grace=1200
	else
		mem=${mem:-${hosts:+1G}} mem=${mem:-3G} grace=600
	fi
	# --timeout is in the guest's time, which takes several times as long then.
	[ -z "$icount" ] || grace=$((grace + 19 * limit))
	cpus=${cpus:-${hosts:+1}} cpus=${cpus:-2}
	list --cpus "$cpus" '^([1-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])$' "a number of CPUs (1 to 255)"
	list --mem "$mem" '^[1-9][0-9]{0,6}[MG]$' "a number with M or G"
	local one mib
	for one in ${mem//,/ }; do
		mib=${one%[MG]}
		[[ $one = *M ]] || mib=$((mib * 1024))
		# QEMU's maxmem is 64G, the NVDIMM takes a part of that.
		[ "$mib" -ge 256 ] && [ "$mib" -le 64512 ] || wrong "--mem $one: must be from 256M to 63G"
	done
	[ -z "$share" ] || { mkdir -p "$share" 2>/dev/null && share=$(cd "$share" 2>/dev/null && pwd -P); } ||
		wrong "--share $share: cannot be made, or is no directory"
	check_checkouts
	local there
	there=$(cd "${dir_of:-/}" 2>/dev/null && pwd -P) || wrong "--dir $dir_of: no such directory"
	dir_of=${dir_of:+$there}
	local package
	for package in "${packages[@]}"; do
		[[ $package =~ ^[a-z0-9][a-z0-9.+-]+$ ]] || wrong "--packages $package: is no name of a package"
	done
}

# check_packages: are they in the archive? That is known once there is a build root.
check_packages() {
	local package
	for package in "${packages[@]}"; do
		grep -qxF -- "$package" "$suite_dir/allnames" || wrong "--packages $package: Debian $SUITE has no such package"
	done
}

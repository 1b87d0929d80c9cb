# SPDX-License-Identifier: GPL-2.0
# Completion vectors as /proc shows them. Sourced.

irq_of() { awk -F: -v n="$1" '$2 ~ "[ \t]" n "$" { print $1 + 0 }' /proc/interrupts; }
vector_names() { grep -o "$1-comp[0-9]*\$" /proc/interrupts | sort -V | tr '\n' ' '; }

# count NAME [CPU]: interrupts of that name, on one CPU or on all.
count() {
	awk -v n="$1" -v cpu="${2:-}" '
		NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i + 1 }
		$NF == n && cpu != "" { print $column["CPU" cpu] }
		$NF == n && cpu == "" { for (c in column) s += $column[c]; print s }' /proc/interrupts
}

# counts REGEX: a line "NAME CPU COUNT" for each such name and CPU.
counts() {
	awk -v re="$1" '
		NR == 1 { n = NF; for (i = 1; i <= n; i++) cpu[i] = substr($i, 4) }
		NR > 1 && $NF ~ re { for (i = 1; i <= n; i++) print $NF, cpu[i], $(i + 1) }' /proc/interrupts
}

affinity() { cat "/proc/irq/$(irq_of "$1")/smp_affinity_list"; }
effective() { cat "/proc/irq/$(irq_of "$1")/effective_affinity_list"; }
# move NAME CPUS
move() { echo "$2" >"/proc/irq/$(irq_of "$1")/smp_affinity_list"; }

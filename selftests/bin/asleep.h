/* SPDX-License-Identifier: GPL-2.0 */
/* Detects, without another process, that threads wait in the kernel. */
#ifndef SELFTEST_ASLEEP_H
#define SELFTEST_ASLEEP_H

#include "check.h"

/* Thread TID, 0 if it is not known yet, sleeps as only the kernel makes it, and for long. */
static inline int is_asleep(int tid)
{
	char path[64], state;
	int n, got;
	FILE *f;

	if (!tid)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	for (n = 0; n < 5; n++) {
		f = fopen(path, "r");
		if (!f)
			return 0;
		got = fscanf(f, "%*d (%*[^)]) %c", &state);
		fclose(f);
		if (got != 1 || state != 'D')
			return 0;
		usleep(1000);
	}
	return 1;
}

#endif /* SELFTEST_ASLEEP_H */

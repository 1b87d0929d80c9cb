/* SPDX-License-Identifier: GPL-2.0 */
/* Detects, without another process, that threads wait in the kernel. */
#ifndef SELFTEST_ASLEEP_H
#define SELFTEST_ASLEEP_H

#include <dirent.h>

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

/* How many threads of the kernel make runs (work queue xroce_run) and sleep meanwhile. */
static inline int runs_asleep(void)
{
	struct dirent *d;
	char line[256];
	int found = 0;
	DIR *proc = opendir("/proc");
	FILE *f;

	CHECK(proc);
	while ((d = readdir(proc))) {
		snprintf(line, sizeof(line), "/proc/%.16s/stat", d->d_name);
		if (d->d_name[0] < '1' || d->d_name[0] > '9' || !(f = fopen(line, "r")))
			continue;
		/* The name of a worker, which ends with that of its queue, then its state. */
		found += fgets(line, sizeof(line), f) && strstr(line, "+xroce_run) D");
		fclose(f);
	}
	closedir(proc);
	return found;
}

/* Waits until N of them do; nobody else may use such memory meanwhile. */
static inline void await_runs(int n)
{
	double end = deadline(20);

	while (runs_asleep() < n)
		CHECK(!is_past(end));
}

#endif /* SELFTEST_ASLEEP_H */

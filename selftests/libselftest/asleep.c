// SPDX-License-Identifier: GPL-2.0
#include "asleep.h"

int is_asleep(int tid)
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
static int runs_asleep(void)
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

void await_runs(int n)
{
	double end = deadline(20);

	while (runs_asleep() < n)
		CHECK(!is_past(end));
}

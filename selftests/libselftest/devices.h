/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The main program of cases that run on one device or on two:
 *
 *   PROGRAM                                     lists the cases
 *   PROGRAM CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 */
#ifndef SELFTEST_DEVICES_H
#define SELFTEST_DEVICES_H

#include "check.h"

/* The ends' devices; the same one twice if only one was named. */
static const char *device[2];
static int gid_index[2];

/* What COUNTER of the device called NAME is at. */
static inline unsigned long counter(const char *name, const char *counter)
{
	unsigned long n;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s", name,
		 counter);
	f = fopen(path, "r");
	CHECK(f && fscanf(f, "%lu", &n) == 1);
	fclose(f);
	return n;
}

/* The core keeps what it read of the counters for some milliseconds, but not any more. */
static inline void fresh_counters(const char *name)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/lifespan", name);
	f = fopen(path, "w");
	CHECK(f && fprintf(f, "0") == 1 && !fclose(f));
}

/* How often the device called NAME has told senders to come again (RNR). */
static inline unsigned long come_again(const char *name)
{
	return counter(name, "send_rnr_err");
}

/* Runs the case that the arguments name, with BEFORE and AFTER around it. */
static inline int main_around(const struct check_case *cases, void (*before)(void),
			      void (*after)(void), int argc, char **argv)
{
	int ret;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 1)
		return run_case(cases, NULL);
	if (argc != 4 && argc != 6)
		return 2;
	device[0] = argv[2];
	gid_index[0] = atoi(argv[3]);
	device[1] = argv[argc - 2];
	gid_index[1] = atoi(argv[argc - 1]);
	if (before)
		before();
	ret = run_case(cases, argv[1]);
	if (after)
		after();
	return ret;
}

static inline int main_of_cases(const struct check_case *cases, int argc, char **argv)
{
	return main_around(cases, NULL, NULL, argc, argv);
}

#endif /* SELFTEST_DEVICES_H */

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

static inline int main_of_cases(const struct check_case *cases, int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 1)
		return run_case(cases, NULL);
	if (argc != 4 && argc != 6)
		return 2;
	device[0] = argv[2];
	gid_index[0] = atoi(argv[3]);
	device[1] = argv[argc - 2];
	gid_index[1] = atoi(argv[argc - 1]);
	return run_case(cases, argv[1]);
}

#endif /* SELFTEST_DEVICES_H */

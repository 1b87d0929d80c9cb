/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The main program of cases that run on one device or on two:
 *
 *   PROGRAM                                     lists the cases
 *   PROGRAM CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 *
 * A case gets its program's fixture: a structure that begins with struct devices, or that
 * structure alone. Nothing of a fixture but the devices is made before the case begins.
 */
#ifndef SELFTEST_DEVICES_H
#define SELFTEST_DEVICES_H

#include "check.h"

/* The devices of the ends; the same one twice if only one was named. */
struct devices {
	const char *name[2];
	int gid_index[2];
};

/* The type of an array of cases with this fixture; the last one has no name. */
#define CASES(fixture) struct { const char *name; void (*run)(fixture *self); }

/* What choose_case() returns instead of a case. */
enum { LISTED = -1, MISUSED = -2 };

/*
 * Lists the cases, or returns the index of the one that the arguments name, whose devices
 * are in ON. NAME is that of the first; they are SIZE bytes apart.
 */
int choose_case(const char *const *name, size_t size, struct devices *on, int argc, char **argv);

/*
 * Runs the case of CASES that the arguments name, with BEFORE and AFTER around it; SELF is
 * its fixture. The exit status of the program.
 */
#define RUN_CASES_AROUND(self, cases, before, after, argc, argv)			\
({											\
	int chosen = choose_case(&(cases)[0].name, sizeof((cases)[0]),			\
				 (struct devices *)(self), argc, argv);			\
											\
	if (chosen >= 0) {								\
		before(self);								\
		(cases)[chosen].run(self);						\
		after(self);								\
	}										\
	chosen == MISUSED ? 2 : 0;							\
})

#define RUN_CASES(self, cases, argc, argv)						\
	RUN_CASES_AROUND(self, cases, (void), (void), argc, argv)

/* What COUNTER of the device called NAME is at. */
unsigned long counter(const char *name, const char *counter);

/* The core keeps what it read of the counters for some milliseconds, but not any more. */
void fresh_counters(const char *name);

/* How often the device called NAME has told senders to come again (RNR). */
unsigned long come_again(const char *name);

#endif /* SELFTEST_DEVICES_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Each verb that creates or changes something, and its reverse, as one call on objects
 * that prepare() has created once. A verb returns 0 or the value of errno.
 */
#ifndef SELFTEST_EVERYVERB_H
#define SELFTEST_EVERYVERB_H

#include "devices.h"

/* Callers among which a verb's allocations fail. */
enum where { ANYWHERE, IN_DRIVER, OPENING, LINKS, CORE_LINKS };

struct verb {
	const char *name;
	enum where where;
	/* What it needs, and its end. */
	int (*before)(void), (*after)(void);
	/* 0 or the value of errno. */
	int (*make)(void);
	/* The reverse. */
	int (*undo)(void);
	/* After a failure, checks that all is as it was. */
	void (*kept)(void);
	/* The reverse is more than one call: it has no faults. */
	int undo_apart;
	/* Its answer comes when it is too late to fail: copies do not. */
	int copies_last;
	/* It must succeed all the same: whoever posts is not to post again what is in the ring. */
	int never_fails;
	/* Not each fault, but one of so many; and no more than some. */
	unsigned int step, most;
};

extern const struct verb verbs[];
extern const size_t verb_count;

/* Connects the devices; links are made on NET_DEVICE. */
void prepare(const struct devices *devices, const char *net_device);

#endif /* SELFTEST_EVERYVERB_H */

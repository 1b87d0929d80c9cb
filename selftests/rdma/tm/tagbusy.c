// SPDX-License-Identifier: GPL-2.0
/*
 * Tagged messages without end, from many senders to one queue, until the device goes
 * away.
 *
 *   tagbusy until-gone DEVICE GID-INDEX [DEVICE GID-INDEX]
 *
 * Prints "ready" when there is traffic of each kind. Succeeds if something failed once
 * a device was gone, a fatal event came, and everything could still be destroyed and
 * closed ("closed").
 */
#include "devices.h"
#include "senders.h"

static struct senders all;

static void until_gone(const struct devices *on)
{
	struct ibv_async_event ev;
	int is_ready = 0;

	senders_make(&all, on->name, on->gid_index);
	while (!senders_step(&all, UINT32_MAX)) {
		if (!is_ready && all.fetched > 20 && all.unexpected > 20 &&
		    all.untagged > 20) {
			printf("ready\n");
			is_ready = 1;
		}
	}
	printf("stopped after %u messages\n",
	       all.matched + all.unexpected + all.untagged);
	/* With the module, both go. */
	CHECK(next_event(all.a.ctx, IBV_EVENT_DEVICE_FATAL, &ev));
	senders_free(&all);
	printf("closed\n");
}

static const CASES(const struct devices) cases[] = {
	{ "until-gone", until_gone },
	{}
};

int main(int argc, char **argv)
{
	static struct devices on;

	return RUN_CASES(&on, cases, argc, argv);
}

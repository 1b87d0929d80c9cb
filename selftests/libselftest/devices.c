// SPDX-License-Identifier: GPL-2.0
#include "devices.h"

int choose_case(const char *const *name, size_t size, struct devices *on, int argc, char **argv)
{
	int n;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 1 && argc != 4 && argc != 6)
		return MISUSED;
	for (n = 0; *name; n++, name = (void *)((char *)name + size)) {
		if (argc == 1)
			printf("%s\n", *name);
		else if (!strcmp(argv[1], *name))
			break;
	}
	if (argc == 1)
		return LISTED;
	if (!*name)
		return MISUSED;
	on->name[0] = argv[2];
	on->gid_index[0] = atoi(argv[3]);
	on->name[1] = argv[argc - 2];
	on->gid_index[1] = atoi(argv[argc - 1]);
	return n;
}

unsigned long counter(const char *name, const char *counter)
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

void fresh_counters(const char *name)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/lifespan", name);
	f = fopen(path, "w");
	CHECK(f && fprintf(f, "0") == 1 && !fclose(f));
}

unsigned long come_again(const char *name)
{
	return counter(name, "send_rnr_err");
}

// SPDX-License-Identifier: GPL-2.0
#include <dirent.h>
#include <fcntl.h>

#include "fault.h"

static const char *const text_names[TEXTS] = {
	[UVERBS] = "[ib_uverbs]",
	[IOCTL] = "ib_uverbs_ioctl",
	[DRIVER] = "[xroce]",
	[INIT_UCONTEXT] = "ib_init_ucontext",
	[IRQ_PROC] = "register_irq_proc",
	[REGISTER] = "ib_register_device",
};
struct text texts[TEXTS];

/* What can fail. */
static const char *const faults[] = { "failslab", "fail_page_alloc", "fail_usercopy" };
enum { SLAB, PAGES, USERCOPY, FAULTS };

static int nth_file = -1;

static void knob(int fault, const char *name, unsigned long value)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", faults[fault], name);
	f = fopen(path, "w");
	CHECK(f);
	CHECK(fprintf(f, "%#lx", value) > 0);
	CHECK(!fclose(f));
}

void fault_among(struct text required, struct text rejected)
{
	int i;

	for (i = 0; i < FAULTS; i++) {
		knob(i, "require-start", required.start);
		knob(i, "require-end", required.end);
		knob(i, "reject-start", rejected.start);
		knob(i, "reject-end", rejected.end);
	}
}

void fault_copies(int on)
{
	knob(USERCOPY, "stacktrace-depth", on ? 32 : 0);
}

struct text fault_both(struct text a, struct text b)
{
	return (struct text) { a.start < b.start ? a.start : b.start,
			       a.end > b.end ? a.end : b.end };
}

static void find_texts(void)
{
	static unsigned long functions[1 << 18];
	unsigned long last[TEXTS] = { 0 };
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[2048];
	size_t j, n = 0;
	int i;

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		char name[1024], type, module[64] = "";
		unsigned long address;

		if (sscanf(line, "%lx %c %1023s %63s", &address, &type, name, module) < 3 ||
		    (type != 't' && type != 'T'))
			continue;
		CHECK(n < sizeof(functions) / sizeof(functions[0]));
		functions[n++] = address;
		for (i = 0; i < TEXTS; i++) {
			if (strcmp(text_names[i], module) && strcmp(text_names[i], name))
				continue;
			if (!texts[i].start || address < texts[i].start)
				texts[i].start = address;
			if (address > last[i])
				last[i] = address;
		}
	}
	fclose(f);
	for (i = 0; i < TEXTS; i++) {
		if (!last[i])
			printf("no %s in /proc/kallsyms\n", text_names[i]);
		CHECK(last[i]);
		/* The last function ends where another begins. */
		texts[i].end = ~0ul;
		for (j = 0; j < n; j++)
			if (functions[j] > last[i] && functions[j] < texts[i].end)
				texts[i].end = functions[j];
	}
}

/*
 * Every slab cache may fail but kmemleak's own, which has an object for each object of
 * the others and does without one.
 */
static void fault_caches(void)
{
	DIR *dir = opendir("/sys/kernel/slab");
	struct dirent *entry;

	CHECK(dir);
	while ((entry = readdir(dir))) {
		char path[512];
		int fd;

		if (entry->d_name[0] == '.' || strstr(entry->d_name, "kmemleak"))
			continue;
		snprintf(path, sizeof(path), "/sys/kernel/slab/%s/failslab", entry->d_name);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0) {
			CHECK(write(fd, "1", 1) == 1);
			close(fd);
		}
	}
	closedir(dir);
	knob(SLAB, "cache-filter", 1);
}

void fault_setup(void)
{
	int i;

	for (i = 0; i < FAULTS; i++) {
		knob(i, "verbose", 0);
		knob(i, "probability", 0);
		knob(i, "stacktrace-depth", 32);
	}
	for (i = SLAB; i <= PAGES; i++)
		knob(i, "ignore-gfp-wait", 0);
	knob(PAGES, "ignore-gfp-highmem", 0);
	knob(PAGES, "min-order", 0);
	fault_caches();
	find_texts();
	nth_file = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	CHECK(nth_file >= 0);
}

void fault_at(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	CHECK(pwrite(nth_file, text, len, 0) == len);
}

unsigned int fault_end(void)
{
	char text[16] = "";

	CHECK(pread(nth_file, text, sizeof(text) - 1, 0) > 0);
	fault_at(0);
	return atoi(text);
}

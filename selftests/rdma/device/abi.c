// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=180 debug=long xroce
/*
 * Opening a device with an ABI other than the module's, or with an invalid request or
 * buffer for the response, by both of the kernel's calls. Checks the errno, that
 * nothing is left of the attempt, and that the file can be used after it. Also checks
 * the message for the user when module and library do not match. See devices.h for the
 * arguments.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/xroce-abi.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "devices.h"

#define CORE_ANSWER sizeof(struct ib_uverbs_get_context_resp)

/* How the request of the library is changed on its way to the kernel, or the answer. */
static enum { HONEST, OTHER_REQUEST, OTHER_ANSWER } lie;
static int lies;

static struct ib_uverbs_attr *attribute(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id)
{
	int i;

	for (i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].attr_id == id)
			return &hdr->attrs[i];
	return NULL;
}

/* In place of the C library's, for libibverbs as well. */
int ioctl(int fd, unsigned long request, ...)
{
	static struct xroce_alloc_ucontext_req changed;
	struct ib_uverbs_ioctl_hdr *hdr;
	struct ib_uverbs_attr *attr;
	va_list list;
	int ret;

	va_start(list, request);
	hdr = va_arg(list, void *);
	va_end(list);
	if (lie == HONEST || request != RDMA_VERBS_IOCTL ||
	    hdr->object_id != UVERBS_OBJECT_DEVICE || hdr->method_id != UVERBS_METHOD_GET_CONTEXT)
		return syscall(SYS_ioctl, fd, request, hdr);
	attr = attribute(hdr, UVERBS_ATTR_UHW_IN);
	CHECK(attr && attr->len == sizeof(changed));
	if (lie == OTHER_REQUEST) {
		memcpy(&changed, (void *)(uintptr_t)attr->data, sizeof(changed));
		CHECK(changed.abi_version == XROCE_ABI_VERSION);
		changed.abi_version++;
		attr->data = (uintptr_t)&changed;
	}
	ret = syscall(SYS_ioctl, fd, request, hdr);
	if (lie == OTHER_ANSWER) {
		attr = attribute(hdr, UVERBS_ATTR_UHW_OUT);
		CHECK(!ret && attr);
		((struct xroce_alloc_ucontext_resp *)(uintptr_t)attr->data)->abi_version++;
	}
	lies++;
	return ret;
}

/* A try: the driver's request, and where its answer goes, behind the core's. */
struct open_try {
	const void *request;
	size_t request_len;
	uint8_t *answer;
	size_t answer_len;
};

/* The two ways; the errno. */
static int by_write(int fd, const struct open_try *t)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context core;
		uint8_t driver[64];
	} cmd = {
		.hdr = { .command = IB_USER_VERBS_CMD_GET_CONTEXT },
		.core = { .response = (uintptr_t)t->answer },
	};
	size_t len = sizeof(cmd.hdr) + sizeof(cmd.core) + t->request_len;

	memcpy(cmd.driver, t->request, t->request_len);
	cmd.hdr.in_words = len / 4;
	cmd.hdr.out_words = (CORE_ANSWER + t->answer_len) / 4;
	return write(fd, &cmd, len) < 0 ? errno : 0;
}

static int by_ioctl(int fd, const struct open_try *t)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[2];
	} cmd = {
		.hdr = { .length = sizeof(cmd), .object_id = UVERBS_OBJECT_DEVICE,
			 .method_id = UVERBS_METHOD_GET_CONTEXT, .num_attrs = 2,
			 .driver_id = XROCE_DRIVER_ID },
		.attrs = {
			{ .attr_id = UVERBS_ATTR_UHW_IN, .len = t->request_len,
			  .data = (uintptr_t)t->request },
			{ .attr_id = UVERBS_ATTR_UHW_OUT, .len = t->answer_len,
			  .data = (uintptr_t)t->answer + CORE_ANSWER },
		},
	};

	/* What is short stands in the attribute itself. */
	if (t->request_len <= sizeof(cmd.attrs[0].data)) {
		cmd.attrs[0].data = 0;
		memcpy(&cmd.attrs[0].data, t->request, t->request_len);
	}
	return syscall(SYS_ioctl, fd, RDMA_VERBS_IOCTL, &cmd) < 0 ? errno : 0;
}

static int (*const ways[])(int fd, const struct open_try *t) = { by_write, by_ioctl };

/* The file of the device. */
static int open_file(const struct devices *on)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	char path[128];
	int i, fd = -1;

	for (i = 0; list && list[i]; i++) {
		if (strcmp(ibv_get_device_name(list[i]), on->name[0]))
			continue;
		snprintf(path, sizeof(path), "/dev/infiniband/%s", list[i]->dev_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	CHECK(fd >= 0);
	ibv_free_device_list(list);
	return fd;
}

static int contexts(void)
{
	return lines_with("", "rdma res show ctx");
}

static int files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static const struct xroce_alloc_ucontext_req right = {
	.abi_version = XROCE_ABI_VERSION, .features = UINT64_MAX,
};
static struct {
	struct ib_uverbs_get_context_resp core;
	struct xroce_alloc_ucontext_resp driver;
	uint8_t more[16];
} answer;

static struct open_try try_of(const void *request, size_t len)
{
	return (struct open_try) { request, len, (void *)&answer, sizeof(answer.driver) };
}

/* A file that refuses T with ERR takes a right request afterwards, once. */
static void refused(const struct devices *on, const struct open_try *t, int err)
{
	struct open_try good = try_of(&right, sizeof(right));
	int before = contexts(), nfiles = files(), way, i, got, events;

	for (way = 0; way < 2; way++) {
		int fd = open_file(on);

		for (i = 0; i < 2; i++) {
			got = ways[way](fd, t);
			if (got != err)
				printf("way %d: errno %d, not %d\n", way, got, err);
			CHECK(got == err);
		}
		CHECK(contexts() == before && files() == nfiles + 1);
		CHECK(!ways[way](fd, &good));
		CHECK(contexts() == before + 1);
		CHECK(answer.driver.abi_version == XROCE_ABI_VERSION);
		CHECK(answer.driver.features && answer.driver.max_inline);
		events = answer.core.async_fd;
		CHECK(ways[way](fd, &good) == EINVAL);
		if (way == 0)
			CHECK(!close(events));
		CHECK(!close(fd));
		CHECK(contexts() == before && files() == nfiles);
	}
}

static void versions(const struct devices *on)
{
	uint32_t bad[] = { XROCE_ABI_VERSION + 1, XROCE_ABI_VERSION - 1, UINT32_MAX };
	unsigned int i;

	for (i = 0; i < sizeof(bad) / 4; i++) {
		struct xroce_alloc_ucontext_req request = right;
		struct open_try t = try_of(&request, sizeof(request));

		request.abi_version = bad[i];
		refused(on, &t, EPROTO);
	}
}

static void reserved(const struct devices *on)
{
	struct xroce_alloc_ucontext_req request = right;
	struct open_try t = try_of(&request, sizeof(request));

	request.reserved = 1;
	refused(on, &t, EINVAL);
	request.reserved = UINT32_MAX;
	refused(on, &t, EINVAL);
}

static void short_requests(const struct devices *on)
{
	size_t len;

	for (len = 0; len < sizeof(right); len += 4) {
		struct open_try t = try_of(&right, len);

		refused(on, &t, EINVAL);
	}
}

/* More than the module knows must be zero. */
static void long_requests(const struct devices *on)
{
	struct {
		struct xroce_alloc_ucontext_req known;
		uint32_t more[4];
	} request = { .known = right, .more = { 0, 0, 0, 1 } };
	struct open_try t = try_of(&request, sizeof(request));
	int fd = open_file(on);

	refused(on, &t, EOPNOTSUPP);
	request.more[3] = 0;
	CHECK(!by_ioctl(fd, &t));
	close(fd);
}

/* No memory for the answer, or for a part of it. */
static void bad_answers(const struct devices *on)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uint8_t *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct open_try t = try_of(&right, sizeof(right));
	size_t here[] = { 0, 8 };
	unsigned int i;

	CHECK(pages != MAP_FAILED && !mprotect(pages + page, page, PROT_NONE));
	for (i = 0; i < 2; i++) {
		t.answer = pages + page - CORE_ANSWER - here[i];
		refused(on, &t, EFAULT);
	}
	t.answer = NULL;
	refused(on, &t, EFAULT);
	t.answer = (uint8_t *)UINTPTR_MAX - 4095;
	refused(on, &t, EFAULT);
	munmap(pages, 2 * page);
}

/* The answer is cut to the room that there is, and further room is zeroed. */
static void odd_answers(const struct devices *on)
{
	struct open_try t = try_of(&right, sizeof(right));
	int way, fd;

	for (way = 0; way < 2; way++) {
		fd = open_file(on);
		memset(&answer, 0xff, sizeof(answer));
		t.answer_len = 4;
		CHECK(!ways[way](fd, &t));
		CHECK(answer.driver.abi_version == XROCE_ABI_VERSION);
		CHECK(answer.driver.max_inline == UINT32_MAX);
		close(fd);
		fd = open_file(on);
		t.answer_len = sizeof(answer.driver) + sizeof(answer.more);
		CHECK(!ways[way](fd, &t));
		CHECK(answer.driver.max_inline != UINT32_MAX);
		CHECK(!answer.more[0] && !answer.more[15]);
		close(fd);
	}
}

/* The core's part of the command. */
static void cut_commands(const struct devices *on)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context core;
		struct xroce_alloc_ucontext_req driver;
	} cmd = {
		.hdr = { .command = IB_USER_VERBS_CMD_GET_CONTEXT, .in_words = sizeof(cmd) / 4,
			 .out_words = 6 },
		.core = { .response = (uintptr_t)&answer }, .driver = right,
	};
	int fd = open_file(on), before = contexts();

	/* No room for the core's answer; no such length; nothing but the header. */
	cmd.hdr.out_words = 1;
	CHECK(write(fd, &cmd, sizeof(cmd)) < 0 && errno == ENOSPC);
	cmd.hdr.out_words = 6;
	CHECK(write(fd, &cmd, sizeof(cmd) - 4) < 0 && errno == EINVAL);
	CHECK(write(fd, &cmd, 4) < 0 && errno == EINVAL);
	cmd.hdr.in_words = sizeof(cmd.hdr) / 4;
	CHECK(write(fd, &cmd, sizeof(cmd.hdr)) < 0 && errno == ENOSPC);
	CHECK(contexts() == before);
	close(fd);
}

/* Opens the device by the library while LIE is told; what it says goes to TEXT. */
static struct ibv_context *open_and_hear(const struct devices *on, int how, char *text, size_t size)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int told = memfd_create("stderr", MFD_CLOEXEC), own = dup(STDERR_FILENO), i, err;
	struct ibv_context *ctx = NULL;
	ssize_t len;

	CHECK(list && told >= 0 && own >= 0 && dup2(told, STDERR_FILENO) >= 0);
	for (i = 0; list[i] && strcmp(ibv_get_device_name(list[i]), on->name[0]); i++)
		;
	CHECK(list[i]);
	lie = how;
	errno = 0;
	ctx = ibv_open_device(list[i]);
	err = errno;
	lie = HONEST;
	CHECK(dup2(own, STDERR_FILENO) >= 0);
	len = pread(told, text, size - 1, 0);
	CHECK(len >= 0);
	text[len] = 0;
	close(told);
	close(own);
	ibv_free_device_list(list);
	errno = err;
	return ctx;
}

static void explained(const struct devices *on)
{
	char text[1024];
	int before = contexts(), nfiles = files(), how;
	struct ibv_context *ctx;

	for (how = OTHER_REQUEST; how <= OTHER_ANSWER; how++) {
		int err;

		lies = 0;
		ctx = open_and_hear(on, how, text, sizeof(text));
		err = errno;
		printf("said: %s", text);
		CHECK(lies == 1);
		CHECK(!ctx && err == EPROTO);
		CHECK(strstr(text, "xroce") && strstr(text, "version 1 of the ABI"));
		CHECK(contexts() == before && files() == nfiles);
	}
	ctx = open_and_hear(on, HONEST, text, sizeof(text));
	CHECK(ctx && !text[0]);
	CHECK(!ibv_close_device(ctx));
}

static const CASES(const struct devices) cases[] = {
	{ "other-versions", versions },
	{ "reserved", reserved },
	{ "short-requests", short_requests },
	{ "long-requests", long_requests },
	{ "bad-answers", bad_answers },
	{ "odd-answers", odd_answers },
	{ "cut-commands", cut_commands },
	{ "explained", explained },
	{}
};

int main(int argc, char **argv)
{
	static struct devices on;

	return RUN_CASES(&on, cases, argc, argv);
}

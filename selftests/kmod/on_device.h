/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A module that tests, while it is loaded, what kernel users can do with the device
 * DEVICE: on_device() does the tests. The module loads if all of them succeed; the
 * kernel's log says what failed.
 */
#ifndef SELFTEST_ON_DEVICE_H
#define SELFTEST_ON_DEVICE_H

#include <linux/module.h>
#include <rdma/ib_verbs.h>

static char *device = "x1";
module_param(device, charp, 0444);
static int gid_index;
module_param(gid_index, int, 0444);

static int failed;
static bool seen;

#define EXPECT(cond)							\
	do {								\
		if (!(cond)) {						\
			pr_info(KBUILD_MODNAME ": line %d: %s is not so\n", __LINE__, #cond); \
			failed = 1;					\
		}							\
	} while (0)

static void on_device(struct ib_device *dev);

static int add(struct ib_device *dev)
{
	if (strcmp(dev_name(&dev->dev), device))
		return -EOPNOTSUPP;
	seen = true;
	on_device(dev);
	/* Nothing to keep: the client goes before the module is loaded. */
	return -EOPNOTSUPP;
}

static struct ib_client client = { .name = KBUILD_MODNAME, .add = add };

static int __init start(void)
{
	int ret = ib_register_client(&client);

	if (ret)
		return ret;
	ib_unregister_client(&client);
	if (!seen)
		EXPECT(!"the device");
	return failed ? -EINVAL : 0;
}
module_init(start);

static void __exit end(void)
{
}
module_exit(end);

#endif

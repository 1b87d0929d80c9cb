// SPDX-License-Identifier: GPL-2.0
/*
 * Module parameter device_vectors: how many completion vectors the devices with
 * certain names get, because `rdma link add` has no way to say it. In C because
 * parameters of Rust modules are numbers, and nobody can change them.
 */
#include <linux/kstrtox.h>
#include <linux/moduleparam.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <rdma/ib_verbs.h>

#include "verbs/vector.h"

/* As many names as always fit into the page that sysfs shows. */
#define XRDMA_VECTORS_NAMES	48

/**
 * struct xrdma_vectors_of - what a device is to get
 * @device: its name.
 * @count: completion vectors; 0: one for each possible CPU.
 */
struct xrdma_vectors_of {
	char device[IB_DEVICE_NAME_MAX];
	u32 count;
};

/**
 * struct xrdma_vectors_list - what devices are to get
 * @names: number of elements of @of that are in use.
 * @of: one for each name, in the order in which they were given.
 */
struct xrdma_vectors_list {
	u32 names;
	struct xrdma_vectors_of of[XRDMA_VECTORS_NAMES];
};

static struct xrdma_vectors_list xrdma_vectors_list;
static DEFINE_MUTEX(xrdma_vectors_list_mutex);

static struct xrdma_vectors_of *
xrdma_vectors_find(struct xrdma_vectors_list *list, const char *device)
{
	u32 i;

	for (i = 0; i < list->names; i++)
		if (!strcmp(list->of[i].device, device))
			return &list->of[i];
	return NULL;
}

static int xrdma_vectors_set_one(struct xrdma_vectors_list *list,
				 const char *device, u32 count)
{
	struct xrdma_vectors_of *of = xrdma_vectors_find(list, device);

	if (!of) {
		if (list->names == XRDMA_VECTORS_NAMES)
			return -ENOSPC;
		of = &list->of[list->names++];
		strscpy(of->device, device);
	}
	of->count = count;
	return 0;
}

static void xrdma_vectors_remove(struct xrdma_vectors_list *list,
				 const char *device)
{
	struct xrdma_vectors_of *of = xrdma_vectors_find(list, device);

	if (!of)
		return;
	list->names--;
	memmove(of, of + 1, (&list->of[list->names] - of) * sizeof(*of));
}

/* One element of the text, "DEVICE:COUNT" or, to take it out, "DEVICE:". */
static int xrdma_vectors_parse_one(struct xrdma_vectors_list *list, char *text)
{
	char *device = strim(text);
	char *colon = strrchr(device, ':');
	u32 count;
	int ret;

	if (!colon || colon == device ||
	    colon - device >= IB_DEVICE_NAME_MAX)
		return -EINVAL;
	*colon = '\0';
	/* No device can be added by such a name. */
	if (strpbrk(device, "% \t\n"))
		return -EINVAL;
	if (!colon[1]) {
		xrdma_vectors_remove(list, device);
		return 0;
	}
	ret = kstrtou32(colon + 1, 10, &count);
	return ret ?: xrdma_vectors_set_one(list, device, count);
}

/*
 * Sets what the text names and leaves the rest; an empty text takes all out. All of
 * it or, on failure, nothing: -EINVAL, -ERANGE, -ENOSPC, -ENOMEM.
 */
static int xrdma_vectors_set(const char *val, const struct kernel_param *kp)
{
	struct xrdma_vectors_list *list;
	char *text, *rest, *one;
	int ret = 0;

	text = kstrdup(val, GFP_KERNEL);
	list = kmalloc_obj(*list, GFP_KERNEL);
	if (!text || !list) {
		ret = -ENOMEM;
		goto free;
	}
	mutex_lock(&xrdma_vectors_list_mutex);
	*list = xrdma_vectors_list;
	rest = strim(text);
	if (!*rest) {
		list->names = 0;
		rest = NULL;
	}
	while (!ret && (one = strsep(&rest, ",")))
		ret = xrdma_vectors_parse_one(list, one);
	if (!ret)
		xrdma_vectors_list = *list;
	mutex_unlock(&xrdma_vectors_list_mutex);
free:
	kfree(list);
	kfree(text);
	return ret;
}

static int xrdma_vectors_get(char *page, const struct kernel_param *kp)
{
	int len = 0;
	u32 i;

	mutex_lock(&xrdma_vectors_list_mutex);
	for (i = 0; i < xrdma_vectors_list.names; i++)
		len += sysfs_emit_at(page, len, "%s%s:%u", i ? "," : "",
				     xrdma_vectors_list.of[i].device,
				     xrdma_vectors_list.of[i].count);
	mutex_unlock(&xrdma_vectors_list_mutex);
	return len + sysfs_emit_at(page, len, "\n");
}

static const struct kernel_param_ops xrdma_vectors_ops = {
	.set = xrdma_vectors_set,
	.get = xrdma_vectors_get,
};

module_param_cb(device_vectors, &xrdma_vectors_ops, NULL, 0644);
__MODULE_PARM_TYPE(device_vectors, "string");
MODULE_PARM_DESC(device_vectors,
		 "Completion vectors of devices yet to be added: DEVICE:COUNT,... (comp_vectors for all others)");

/* What the parameter says of @device; @otherwise if nothing. Process context. */
__u32 xrdma_vectors_wanted(const char *device, __u32 otherwise)
{
	const struct xrdma_vectors_of *of;

	mutex_lock(&xrdma_vectors_list_mutex);
	of = xrdma_vectors_find(&xrdma_vectors_list, device);
	if (of)
		otherwise = of->count;
	mutex_unlock(&xrdma_vectors_list_mutex);
	return otherwise;
}

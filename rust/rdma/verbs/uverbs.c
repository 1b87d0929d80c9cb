// SPDX-License-Identifier: GPL-2.0
/*
 * uverbs: how the driver's own methods find their implementation in Rust, and
 * events for a file. container_of() and the walk over a list are macros.
 */
#include <linux/container_of.h>
#include <linux/list.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/uverbs_std_types.h>

#include "verbs/uverbs.h"

/* The methods are static. The structure of the device leads them to Rust. */
void xrdma_uverbs_init(struct xrdma_uverbs *uverbs,
		       const struct uapi_definition *methods,
		       const struct xrdma_rcv_qp_ops *rcv_qp)
{
	*uverbs = (struct xrdma_uverbs){
		.defs = { UAPI_DEF_CHAIN(methods), {} },
		.rcv_qp = rcv_qp,
	};
}

/* For the methods of a device that xrdma_uverbs_init() was called for. */
const struct xrdma_rcv_qp_ops *xrdma_rcv_qp_ops(const struct ib_device *dev)
{
	return container_of(dev->driver_def, struct xrdma_uverbs, defs[0])->rcv_qp;
}

/*
 * Gives one file an event, as ib_dispatch_event() gives it to all: uverbs has a
 * handler in the device's list for each asynchronous event file, and takes any
 * event with any element. The file's own handler is the one that lies in the
 * object of its asynchronous event file, whose size uverbs gave to the core.
 * Process context; the file must exist.
 */
void xrdma_uverbs_notify(struct ib_uverbs_file *ufile, struct ib_device *dev,
			 u32 type, u32 element)
{
	/* An ib_uverbs_async_event_file, which begins with its uobject. */
	struct ib_uobject *file = (struct ib_uobject *)smp_load_acquire(&ufile->default_async_file);
	struct ib_event event = {
		.device = dev,
		.event = (enum ib_event_type)type,
		.element.port_num = element,
	};
	struct ib_event_handler *handler;
	unsigned long first, last;

	if (!file)
		return;
	first = (unsigned long)file;
	last = first + file->uapi_object->type_attrs->obj_size - sizeof(*handler);
	down_read(&dev->event_handler_rwsem);
	list_for_each_entry(handler, &dev->event_handler_list, list) {
		if ((unsigned long)handler >= first && (unsigned long)handler <= last)
			handler->handler(handler, &event);
	}
	up_read(&dev->event_handler_rwsem);
}

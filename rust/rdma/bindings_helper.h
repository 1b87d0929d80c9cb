/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Input of bindgen for crate `rdma`. Only items of include/rdma,
 * include/uapi/rdma, rust/helpers and rust/rdma become Rust items. Every other
 * type comes from the `kernel` crate's own bindings (see bindgen_parameters).
 */
#include <rdma/ib_verbs.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_umem.h>
#include <rdma/rdma_netlink.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/uverbs_types.h>

#include "../helpers/helpers.h"
#include "../helpers/ib.h"
#include "services/call.h"
#include "services/dim.h"
#include "services/ends.h"
#include "services/irq.h"
#include "services/mem.h"
#include "services/mem/on_demand.h"
#include "services/mem/persistent.h"
#include "services/net/arrival.h"
#include "services/net/netdev.h"
#include "services/net/route.h"
#include "services/net/sender.h"
#include "services/net/skb.h"
#include "services/net/train.h"
#include "services/net/udp.h"
#include "services/percpu.h"
#include "services/process.h"
#include "services/rcu/held.h"
#include "services/rcu/table.h"
#include "services/ring.h"
#include "services/timer.h"
#include "services/work.h"
#include "verbs/cq.h"
#include "verbs/device.h"
#include "verbs/events.h"
#include "verbs/gid.h"
#include "verbs/link.h"
#include "verbs/restrack.h"
#include "verbs/umem.h"
#include "verbs/uverbs.h"
#include "verbs/vector.h"
